# What the scripts of the git tools share. They are POSIX sh and use nothing but git and
# cp, ln, mkdir, mv, rm, tr.

# Prints fields that end in NUL.
say() {
    printf '%s\0' "$@"
}

# Ends with what is wrong in the last field. The code says of what kind that is; script.rs knows the same codes.
INVALID=41 FAILED=42 OUTDATED=43 POSSIBLE=44 DENIED=45
fail() {
    say "$2"
    exit "$1"
}

# Says where the files of the repository are. Everything begins with it, so that no repository is a plain failure.
say_top() {
    command -v git >/dev/null ||
        fail $FAILED 'git is not installed where the sandbox can see it; ask a person to install git'
    top=$(git rev-parse --show-toplevel) || fail $FAILED \
        'there is no repository here, or it is kept outside of the workspace; name a folder of one with path, or use `git init`'
    say "$top"
}

# Runs a command with what is hidden from tools at its end, as pathspecs with this magic; not at all if nothing is hidden and
# there is no magic. A cover is in place of these files: what git would show or commit of them is not true.
on_hidden() {
    magic=$1
    shift
    given=$#
    while IFS= read -r path; do
        case $path in "$top"/*) ;; *) continue ;; esac
        # What git ignores it leaves out anyway, and complains of where it is named.
        [ -n "$magic" ] && git check-ignore --quiet -- "$path" ||
            set -- "$@" ":(top,${magic}literal)${path#"$top"/}"
    done <<END
$GANTRY_HIDDEN
END
    if [ -n "$magic" ] || [ $# -gt "$given" ]; then "$@"; fi
}

# The commit that is checked out; nothing before the first one.
head_commit() {
    git rev-parse --quiet --verify 'HEAD^{commit}' || :
}
