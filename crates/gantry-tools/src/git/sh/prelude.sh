# What the scripts of the git tools share. They are POSIX sh and use nothing but git and
# cp, ln, mkdir, mv, rm, tr.

# Prints fields that end in NUL.
say() {
    printf '%s\0' "$@"
}

# Ends with a code that says what is wrong, and prints what it is about.
fail() {
    printf '%s\n' "$2" >&2
    exit "$1"
}

# Says where the files of the repository are. Everything begins with it, so that no repository is a plain failure.
say_top() {
    top=$(git rev-parse --show-toplevel) || exit
    say "$top"
}

# The commit that is checked out; nothing before the first one.
head_commit() {
    git rev-parse --quiet --verify 'HEAD^{commit}' || :
}
