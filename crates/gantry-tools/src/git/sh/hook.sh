# The repository's own check before a push, which has no network.
ref=$1 commit=$2 old=$3 remote=$4 url=$5
enter_hooks
[ -n "$old" ] || old=$(printf %s "$commit" | tr '0-9a-f' '0')
printf '%s %s %s %s\n' "$ref" "$commit" "$ref" "$old" | hook pre-push "$remote" "$url" ||
    fail $POSSIBLE "nothing was pushed: the repository's pre-push hook refused it (it runs without a network)"
