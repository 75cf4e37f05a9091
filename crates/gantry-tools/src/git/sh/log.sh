# git_log: commits, each as a fixed number of fields.
rev=$1
shift
say_top
if [ -n "$rev" ]; then
    revs=$(git rev-parse --revs-only "$rev" --) && [ -n "$revs" ] ||
        fail $INVALID "$rev is not a revision of this repository, nor a range such as main..topic"
else
    revs=$(head_commit)
    [ -n "$revs" ] || exit 0
fi
exec git log $revs -z --no-color --no-show-signature --no-follow --no-patch --decorate=short \
    --format='%H%x00%h%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%s%x00%b' "$@"
