# git_diff: which files differ, a field with nothing in it, and how.
staged=$1 context=$2 from=$3 to=$4
shift 4
say_top
tree() {
    [ -z "$1" ] || git rev-parse --quiet --verify "$1^{tree}" || fail 41 "$1"
}
from=$(tree "$from") || exit
to=$(tree "$to") || exit
compare() {
    git diff $how --no-color --no-ext-diff --no-textconv --find-renames --no-relative --submodule=short \
        --ignore-submodules=none --src-prefix=a/ --dst-prefix=b/ $staged $from $to -- "$@"
}
how='--raw --numstat --abbrev=10 -z'
compare "$@" || exit
say ''
how="--patch --unified=$context"
compare "$@"
