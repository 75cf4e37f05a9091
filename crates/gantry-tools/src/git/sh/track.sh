# After a push: what is known of the remote.
git update-ref -m 'update by push' "$1" "$2"
