# How hooks of the repository run: as git runs them.

# Goes to the top of the files, with the environment that git gives to hooks.
enter_hooks() {
    GIT_PREFIX=$(git rev-parse --show-prefix) || exit
    cd "./$(git rev-parse --show-cdup)" || exit
    export GIT_PREFIX GIT_EDITOR=:
}

# Runs a hook, if there is one.
hook() {
    hook=$(git rev-parse --git-path "hooks/$1") || return
    shift
    [ ! -f "$hook" ] || [ ! -x "$hook" ] || "$hook" "$@" >&2
}
