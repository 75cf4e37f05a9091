# git_diff: which files differ, a field with nothing in it, and how.
staged=$1 context=$2
say_top
tree() {
    [ -z "$1" ] || git rev-parse --quiet --verify "$1^{tree}"
}
from=$(tree "$3") || fail $INVALID "$3 is not a revision of this repository"
to=$(tree "$4") || fail $INVALID "$4 is not a revision of this repository"
shift 4
compare() {
    on_hidden exclude, git diff $how --no-color --no-ext-diff --no-textconv --find-renames --no-relative --submodule=short \
        --ignore-submodules=none --src-prefix=a/ --dst-prefix=b/ $staged $from $to -- "$@"
}
how='--raw --numstat --abbrev=10 -z'
compare "$@" || exit
say ''
how="--patch --unified=$context"
compare "$@"
