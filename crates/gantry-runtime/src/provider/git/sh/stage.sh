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
merge=
[ ! -e "$dir/MERGE_HEAD" ] || merge=$(tr '\n' ',' <"$dir/MERGE_HEAD")

# Those who do not say in the repository who they are.
git config user.name >/dev/null || export GIT_AUTHOR_NAME="$GANTRY_NAME" GIT_COMMITTER_NAME="$GANTRY_NAME"
git config user.email >/dev/null || export GIT_AUTHOR_EMAIL="$GANTRY_EMAIL" GIT_COMMITTER_EMAIL="$GANTRY_EMAIL"

# Who commits; the time at the end is not yet that of the commit.
identify() {
    author=$(git var GIT_AUTHOR_IDENT) || exit
    author=${author% * *}
}

fingerprint() {
    [ ! -e "$index" ] || git hash-object --stdin <"$index"
}

# Who only looks puts new objects where they are gone with the run.
aside() {
    mkdir "$work/objects" || exit
    ln -s "$(cd "$objects" && pwd)" "$work/known" || exit
    export GIT_OBJECT_DIRECTORY="$work/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$work/known"
}

stage() {
    before=$(fingerprint)
    [ ! -e "$index" ] || cp -p "$index" "$work/index" || exit
    export GIT_INDEX_FILE="$work/index"
    case $mode in
        all) (cd "./$(git rev-parse --show-cdup)" && git add --all) || exit ;;
        files) git add --all -- "$@" || exit ;;
    esac
    [ -z "$(git ls-files --unmerged)" ] || exit 42
    tree=$(git write-tree) || exit
    old=$(git rev-parse --quiet --verify 'HEAD^{tree}' || git hash-object -t tree /dev/null)
}

say_changes() {
    git diff-tree -r -z --raw --numstat --abbrev=10 --find-renames --no-ext-diff --no-textconv "$old" "$tree"
}
