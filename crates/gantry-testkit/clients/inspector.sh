#!/bin/sh
# Runs the MCP Inspector's command line with the Node 22 that npm installed beside it: the Inspector
# needs Node >= 22.19. Arguments are the Inspector's own; the result is one JSON object on stdout, and a
# server that asks for a login is a failure, not a prompt.
set -eu

modules=$(cd "$(dirname "$0")" && pwd)/node_modules
launcher=$modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js

# The Inspector keeps state; a test must neither read nor leave any in the home folder.
export MCP_STORAGE_DIR="${MCP_STORAGE_DIR:-$modules/.inspector}"

# npm installs only the package that fits this machine.
for node in "$modules"/node-linux-*/bin/node "$modules"/node-*darwin-*/bin/node; do
    if [ -x "$node" ] && [ -f "$launcher" ]; then
        exec "$node" "$launcher" --cli --format json --quiet --stored-auth-only "$@"
    fi
done

echo "inspector.sh: no Inspector or no Node 22 in $modules; run 'npm ci' in its folder" >&2
exit 2
