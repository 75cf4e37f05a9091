# The repository's own check before a push, which has no network.
ref=$1 commit=$2 old=$3 remote=$4 url=$5
hook=$(git rev-parse --git-path hooks/pre-push) || exit
[ -f "$hook" ] && [ -x "$hook" ] || exit 0
case $hook in /*) ;; *) hook=$PWD/$hook ;; esac
cd "./$(git rev-parse --show-cdup)" || exit
unset GIT_LITERAL_PATHSPECS
[ -n "$old" ] || old=$(printf %s "$commit" | tr '0-9a-f' '0')
printf '%s %s %s %s\n' "$ref" "$commit" "$ref" "$old" | "$hook" "$remote" "$url" >&2 || exit 50
