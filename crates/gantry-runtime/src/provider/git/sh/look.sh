aside
stage "$@"
identify
say "$ref" "$head" "$merge" "$tree" "$author"
say_changes
