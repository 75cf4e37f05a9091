# After a push: what is known of the remote.
git update-ref --no-deref -m 'update by push' "$1" "$2"
