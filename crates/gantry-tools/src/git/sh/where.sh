# git_push: what would go where, as the repository says now.
branch=$1 remote=$2
say_top
no_commit=48
[ -n "$branch" ] || {
    branch=$(git symbolic-ref --quiet HEAD) || exit 47
    no_commit=52
}
branch=${branch#refs/heads/}
commit=$(git rev-parse --quiet --verify "refs/heads/$branch^{commit}") || fail "$no_commit" "$branch"
[ -n "$remote" ] || remote=$(
    git config "branch.$branch.pushRemote" || git config remote.pushDefault ||
        git config "branch.$branch.remote" || echo origin
)
say "$branch" "$commit" "$remote"
url=$(git remote get-url --push --all "$remote") || fail 49 "$remote"
say "$url" "$(git config "remote.$remote.vcs")"
git config -z --get-all "remote.$remote.fetch" || :
