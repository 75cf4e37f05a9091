# git_push: what would go where, as the repository says now, and as far as it knows what is there.
branch=$1 remote=$2
say_top
[ -n "$branch" ] || branch=$(git symbolic-ref --quiet HEAD) ||
    fail $FAILED 'no branch is checked out; name the branch to push with branch'
branch=${branch#refs/heads/}
case $branch in
    HEAD | @) false ;; # Names of the commit that is checked out, which git takes for no branch.
    *) git check-ref-format "refs/heads/$branch" ;;
esac ||
    fail $INVALID 'branch: this is not the name of a branch, such as main or feature/login'
commit=$(git rev-parse --quiet --verify "refs/heads/$branch^{commit}") ||
    fail $FAILED "there is no branch $branch, or it has no commit yet"
[ -n "$remote" ] || remote=$(
    git config "branch.$branch.pushRemote" || git config remote.pushDefault ||
        git config "branch.$branch.remote" || echo origin
)
url=$(git remote get-url --push --all "$remote") || fail $FAILED \
    "there is no remote $remote; name one that the repository has, or let a person add it with \`git remote add\`"
[ -z "$(git config "remote.$remote.vcs")" ] || fail $DENIED \
    "the remote $remote is reached by a program (remote.$remote.vcs), which is not run; use an https remote"
old=$(git rev-parse --quiet --verify "refs/remotes/$remote/$branch^{commit}" || :)
if [ -n "$old" ]; then
    known=$old
    lost=$(git rev-list --count "$old" --not "$commit") || exit
else
    known=--remotes=$remote
    lost=0
fi
count=$(git rev-list --count "$commit" --not "$known") || exit
say "$branch" "$commit" "$remote" "$url" "$old" "$count" "$lost"
git log -z --no-color --no-show-signature --format='%h %s' --max-count=10 "$commit" --not "$known" --
