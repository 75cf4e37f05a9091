# git_push: which commits would go, as far as this repository knows what is there.
commit=$1 tracking=$2 remote=$3
old=
[ -z "$tracking" ] || old=$(git rev-parse --quiet --verify "$tracking^{commit}" || :)
if [ -n "$old" ]; then
    known=$old
    lost=$(git rev-list --count "$old" --not "$commit") || exit
else
    known=--remotes=$remote
    lost=0
fi
count=$(git rev-list --count "$commit" --not "$known") || exit
say "$old" "$count" "$lost"
git log -z --no-color --no-show-signature --format='%h %s' --max-count=10 "$commit" --not "$known" --
