# git_push: sends one commit to one branch of one address. No program of the repository runs beside the credential.
spec=$1 address=$2
shift 2
exec git push --porcelain --no-verify --no-follow-tags --recurse-submodules=no "$@" "$address" "$spec"
