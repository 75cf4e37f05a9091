# git_status: where it is, what is under way, and git's own list.
under_way() {
    dir=$(git rev-parse --absolute-git-dir) || exit
    if [ -e "$dir/MERGE_HEAD" ]; then echo merge
    elif [ -d "$dir/rebase-merge" ] || [ -d "$dir/rebase-apply" ]; then echo rebase
    elif [ -e "$dir/CHERRY_PICK_HEAD" ]; then echo cherry-pick
    elif [ -e "$dir/REVERT_HEAD" ]; then echo revert
    elif [ -e "$dir/BISECT_LOG" ]; then echo bisect
    fi
}
say_top
operation=$(under_way) || exit
say "$operation"
on_hidden exclude, git status --porcelain=v2 -z --branch --untracked-files=all --find-renames --ignore-submodules=none --
