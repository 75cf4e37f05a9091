# git_commit: commits exactly the tree that was judged, on exactly the commit that was judged, or nothing.
judged_ref=$1 judged_head=$2 judged_merge=$3 judged_tree=$4 judged_author=$5
shift 5
stage "$@"
identify
[ "$ref" = "$judged_ref" ] && [ "$head" = "$judged_head" ] || exit 43
[ "$merge" = "$judged_merge" ] && [ "$tree" = "$judged_tree" ] && [ "$author" = "$judged_author" ] || exit 43

merging='MERGE_HEAD MERGE_MSG MERGE_MODE'
for name in $merging; do
    [ ! -e "$dir/$name" ] || cp -p "$dir/$name" "$work/$name" || exit
done

# Hooks get the copy of the index, as they do from git when it commits some files only.
(
    unset GIT_LITERAL_PATHSPECS
    git commit --quiet --cleanup=whitespace --file=/run/gantry/message >&2
) || exit 44

new=$(head_commit)
parent=$(git rev-parse --quiet --verify "$new^1" || :)
now=$(git symbolic-ref --quiet HEAD || :)
made() {
    git log -1 --no-show-signature --encoding=UTF-8 --format="$1" "$new"
}

# Whether the commit has the tree, the parents, the author and the message that were judged. Unquoted, the words stand
# with one blank between them.
is_as_judged() {
    [ "$(made %T)" = "$tree" ] && [ "$now" = "$ref" ] || return
    [ "$(made %P)" = "$(echo $head $(printf %s "$merge" | tr ',' ' '))" ] || return
    [ "$(made '%an <%ae>')" = "$author" ] || return
    [ "$(made %B | git stripspace)" = "$(git stripspace </run/gantry/message)" ]
}

if ! is_as_judged; then
    if [ -n "$parent" ]; then
        git update-ref -m 'commit: taken back' HEAD "$parent" "$new" || exit 46
    else
        git update-ref -d HEAD "$new" || exit 46
    fi
    for name in $merging; do
        [ ! -e "$work/$name" ] || cp -p "$work/$name" "$dir/$name"
    done
    exit 45
fi

# The copy takes the place of the index by git's own rule: whoever makes the lock may replace it. The time of the copy
# stays, for git tells by it which files it has to look at again.
adopt() {
    (set -C && : >"$index.lock") 2>/dev/null || return
    if [ "$(fingerprint)" = "$before" ] && cp -p "$work/index" "$index.lock"; then
        mv "$index.lock" "$index"
    else
        rm -f "$index.lock"
        return 1
    fi
}

# Somebody changed the index meanwhile: only what was committed is brought up to date in theirs.
follow() {
    unset GIT_INDEX_FILE
    git diff-tree -r -z --no-renames --name-only "$old" "$tree" |
        git reset --quiet --pathspec-from-file=- --pathspec-file-nul >&2
}

warning=
[ "$mode" = staged ] || adopt || follow ||
    warning='the commit was made, but git_status shows its files as changed until `git reset` has run'
say "$ref" "$new" "$(git log -1 --no-show-signature --format=%s "$new")" "$warning"
# The commit is made, whatever can be said about it.
say_changes || :
