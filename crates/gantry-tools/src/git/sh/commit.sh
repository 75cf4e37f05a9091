# git_commit: commits exactly the tree that was judged, on exactly the commit that was judged, or nothing. The hooks run
# first; then the commit is built from what was judged, and the branch goes to it if it is still where it was.
judged=$1
shift
# What belongs to a linked worktree or to a submodule may be protected.
[ -w "$dir" ] || fail $DENIED 'this part of the repository is protected from tools; let a person commit here'
stage "$@"
[ "$plan" = "$judged" ] || fail $OUTDATED \
    'the files or the branch have changed since the commit was approved, and nothing was committed; call again'
message=$(git stripspace </run/gantry/message) || exit

# What moves: the branch, or HEAD itself if none is checked out.
at=${ref:-HEAD}
where_it_is() {
    git show-ref --verify --hash "$at" 2>/dev/null || :
}

# The hooks get the copy of the index, as they do from git when it commits some files only.
draft=$dir/COMMIT_EDITMSG
ask() {
    hook "$@" || {
        echo "(the hook $1 refused)" >&2
        return 1
    }
}
ask_hooks() {
    ask pre-commit && printf '%s\n' "$message" >"$draft" &&
        ask prepare-commit-msg "$draft" message && ask commit-msg "$draft"
}

# Ends if the branch is not where it was. One that was moved meanwhile, by a hook or by a person, is not moved back: it is
# not known whose commit that would undo.
check_unmoved() {
    now=$(where_it_is)
    [ "$now" != "$head" ] || return 0
    echo "($at was at ${head:-no commit} and is at ${now:-no commit} now)" >&2
    fail $POSSIBLE \
        'what was approved was not committed: a hook or another process moved the branch meanwhile, and it stays moved; see git_log'
}

end_refused() {
    fail $POSSIBLE \
        'nothing was committed; a hook of the repository refused it, or git did, and hooks may have changed files'
}

# Whether all is still as it was judged.
compare() {
    if [ "$(git symbolic-ref --quiet HEAD || :)" != "$ref" ]; then
        echo '(another branch is checked out now)'
    elif [ "$(git write-tree)" != "$tree" ]; then
        echo '(what it changed:)'
        git diff-index --cached --name-status --no-renames --ignore-submodules=none "$tree"
    elif [ "$(git stripspace <"$draft")" != "$message" ]; then
        echo '(what it made of the message:)'
        git stripspace <"$draft"
    else
        return 0
    fi >&2
    return 1
}

enter_hooks
refused=
ask_hooks </dev/null || refused=yes
check_unmoved
[ -z "$refused" ] || end_refused
compare || fail $POSSIBLE \
    'a hook of the repository changed what was approved, so nothing was committed; look at git_status and call again'

set --
for parent in $head $(printf %s "$merge" | tr , ' '); do
    set -- "$@" -p "$parent"
done
new=$(printf '%s\n' "$message" | git commit-tree "$tree" "$@") || end_refused
subject=$(git log -1 --no-show-signature --format=%s "$new") || end_refused
git update-ref --no-deref -m "commit: $subject" "$at" "$new" "$head" || {
    check_unmoved
    end_refused
}

# From here on the commit is made: nothing below ends the script, and what goes wrong becomes a warning.
warning=
warn() {
    warning=${warning:+$warning; }$1
}

# Whether this was the last of several commits to pick or to revert: git keeps a list, and there is nothing after its
# first line.
is_last_pick() {
    git rev-parse --quiet --verify CHERRY_PICK_HEAD >/dev/null ||
        git rev-parse --quiet --verify REVERT_HEAD >/dev/null || return
    [ -f "$dir/sequencer/todo" ] && ! { read -r line && read -r line; } <"$dir/sequencer/todo"
}

# What was under way is done with the commit, as after one of git's own.
conclude() {
    ! is_last_pick || rm -r "$dir/sequencer" || return
    for name in CHERRY_PICK_HEAD REVERT_HEAD AUTO_MERGE; do
        git update-ref --no-deref -d "$name" || return
    done
    rm -f "$dir/MERGE_HEAD" "$dir/MERGE_MSG" "$dir/MERGE_MODE" "$dir/SQUASH_MSG"
}

# The copy takes the place of the index by git's own rule: the process that makes the lock may replace it. The time of the copy
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

# Another process changed the index meanwhile: only what was committed is brought up to date in its version.
follow() {
    git diff-tree -r -z --no-renames --name-only --ignore-submodules=none "$old" "$tree" |
        git --literal-pathspecs reset --quiet --pathspec-from-file=- --pathspec-file-nul "$new" >&2
}

unset GIT_INDEX_FILE
conclude || warn 'git still says that a merge or a pick is under way'
[ "$mode" = staged ] || adopt || follow || warn 'git_status shows its files as changed until `git reset` has run'
git rerere >&2 || warn 'git could not note how conflicts were resolved'
hook post-commit </dev/null || warn 'the hook post-commit failed'
now=$(head_commit)
[ "$now" = "$new" ] ||
    warn "a hook or another process has moved HEAD on to ${now:-no commit}, which was not approved with this call"
say "$ref" "$new" "$subject" "${warning:+the commit was made, but $warning}"
say_changes || :
