# git_commit: what would be committed, by whom, on what.
aside
stage "$@"
say "$ref" "$head" "$merge" "$tree" "$author"
say_changes
