# git_commit: what would be committed, by whom, on what.
aside
stage "$@"
say "$plan"
say_changes
