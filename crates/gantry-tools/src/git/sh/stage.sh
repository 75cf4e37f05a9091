# What git_commit would commit: a copy of the index, with what the call adds to it. The index itself is not touched.
mode=$1
shift
say_top
work=${TMPDIR:-/tmp}/gantry-git
mkdir "$work" || exit
dir=$(git rev-parse --absolute-git-dir) || exit
index=$(git rev-parse --git-path index) || exit
case $index in /*) ;; *) index=$PWD/$index ;; esac
objects=$(git rev-parse --git-path objects) || exit
ref=$(git symbolic-ref --quiet HEAD || :)
head=$(head_commit)

# Reads what is being merged. Tools may have written that file, so only commits count, by their full ids. Those
# that the branch has already are nothing to merge; git leaves them out as well.
merge=
bad_merge() {
    fail $FAILED \
        'MERGE_HEAD does not list commits of this repository; let a person look at it, or end the merge with `git merge --abort`'
}
read_merge() {
    while read -r id || [ -n "$id" ]; do
        case $id in '' | *[!0-9a-f]*) bad_merge ;; esac
        id=$(git rev-parse --quiet --verify "$id^{commit}") || bad_merge
        git merge-base --is-ancestor "$id" "$head" || merge=$merge$id,
    done
}
[ -z "$head" ] || [ ! -f "$dir/MERGE_HEAD" ] || read_merge <"$dir/MERGE_HEAD"

# The author is the one of the repository's configuration, else the one of Gantry's. The committer is the same, so that
# the commit names only a person whom the approver has seen.
said() {
    found=$(git config "author.$1" || :)
    [ -n "$found" ] || found=$(git config "user.$1" || :)
    printf %s "${found:-$2}"
}
GIT_AUTHOR_NAME=$(said name "$GANTRY_NAME")
GIT_AUTHOR_EMAIL=$(said email "$GANTRY_EMAIL")
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL
export GIT_COMMITTER_NAME="$GIT_AUTHOR_NAME" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL"
author=$(git var GIT_AUTHOR_IDENT) || exit
# The time at the end is not yet that of the commit.
author=${author% * *}

fingerprint() {
    [ ! -e "$index" ] || git hash-object --stdin <"$index"
}

# For scripts that only look: new objects go where they are gone with the run.
aside() {
    mkdir "$work/objects" || exit
    ln -s "$(cd "$objects" && pwd)" "$work/known" || exit
    export GIT_OBJECT_DIRECTORY="$work/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$work/known"
}

stage() {
    before=$(fingerprint)
    [ ! -e "$index" ] || cp -p "$index" "$work/index" || exit
    export GIT_INDEX_FILE="$work/index"
    # What is hidden has a cover here, which a job may have staged: the commit leaves these files as they are.
    [ -z "$merge" ] || on_hidden '' git diff-index --cached --quiet "$head" -- ||
        fail $DENIED 'the merge changes files that are hidden from tools; let a person commit it'
    on_hidden '' git rm -r -f --cached --quiet --ignore-unmatch -- || exit
    case $mode in
        all) (cd "./$(git rev-parse --show-cdup)" && on_hidden exclude, git add --all --) || exit ;;
        files) on_hidden exclude, git add --all -- "$@" || exit ;;
    esac
    on_hidden '' git reset --quiet -- || exit
    [ -z "$(git ls-files --unmerged)" ] ||
        fail $FAILED 'files are in conflict (git_status names them); resolve them and name them in files'
    tree=$(git write-tree) || exit
    if [ -n "$head" ]; then
        old=$(git rev-parse --verify "$head^{tree}") || exit
    else
        old=$(git hash-object -t tree /dev/null) || exit
    fi
    # What an approval rests on. None of them has a line break in it, so that no two plans are the same text.
    plan=$(printf '%s\n' "$ref" "$head" "$merge" "$tree" "$author")
}

# Submodules count, also those that the repository's configuration ignores.
say_changes() {
    git diff-tree -r -z --raw --numstat --abbrev=10 --find-renames --no-ext-diff --no-textconv \
        --ignore-submodules=none "$old" "$tree"
}
