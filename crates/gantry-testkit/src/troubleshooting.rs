//! The page of the mistakes that users make most in a configuration, with the exact messages of the program.

use anyhow::{Context as _, Result, bail};
use std::fmt::Write as _;
use std::path::Path;

const INTRODUCTION: &str = "# Troubleshooting the configuration

Generated from the program by `cargo xtask reference`. Each section shows a mistake, the program's message, and what to do.

`gantry config check` reports the problems of all files and ends with exit code 2. `gantry config show` says which
value applies and where it comes from. An editor that uses [the schema](configuration.md#completion-in-editors) shows most of these mistakes while
you type.
";

/// A mistake, the file that has it, and what to do.
const MISTAKES: [(&str, &str, &str); 15] = [
    (
        "An unknown key",
        "mcpServers:\n  github: { comand: npx }\n",
        "Correct the key. The message suggests the nearest known key, or lists all known keys. [The reference](reference/config.md) describes each key.",
    ),
    (
        "A value of the wrong type",
        "defaults: { toolTimeout: 30s }\n",
        "Write times as whole numbers of milliseconds: `toolTimeout: 30000`.",
    ),
    (
        "A text where a list is needed",
        "tools: { workspace: { toolsAllowed: read_file } }\n",
        "Write `[read_file]`. For an empty list, write `[]`: a key without a value is not a list.",
    ),
    (
        "A tool name with a space",
        "tools: { workspace: { toolsDenied: [\"delete file\"] } }\n",
        "Names of tools contain no spaces. In a glob, `*` stands for any text: `\"delete_*\"`.",
    ),
    (
        "A variable that is not set",
        "server: { bind: \"${GANTRY_ADDRESS}\" }\n",
        "Set the variable in the environment or in `.env` beside the file, or write a default. In the entry of an MCP server, a REST tool or an API, this is not an error: Gantry switches off only that entry, and `gantry doctor` says so.",
    ),
    (
        "A duplicate key",
        "server: { bind: 127.0.0.1:7420 }\nserver: { bind: 0.0.0.0:7420 }\n",
        "Keep one of the two.",
    ),
    (
        "An id that is used twice",
        "mcpServers: { files: { command: npx } }\ntools: { files: { kind: builtin, builtinPolicy: { name: fs_read } } }\n",
        "MCP servers, entries of `tools` and files `tools/<id>/tool.json` must have different ids. Choose another id for one of them.",
    ),
    (
        "A queue that does not exist",
        "queues: { disk: { concurrent: 2 } }\nmcpServers: { github: { command: npx, queue: dsik } }\n",
        "Correct the name, or add the queue under `queues`.",
    ),
    (
        "An address without http:// or https://",
        "mcpServers: { remote: { url: \"mcp.example.com\" } }\n",
        "Write the whole address: `https://mcp.example.com/mcp`. The message does not show your address, because it may contain a key.",
    ),
    (
        "A server with both a command and an address",
        "mcpServers: { github: { command: npx, url: \"https://mcp.example.com/mcp\" } }\n",
        "Keep `command` if Gantry starts the program, or `url` if the server already runs there.",
    ),
    (
        "A server without a command or an address",
        "mcpServers: { github: { args: [\"-y\", \"@mcp/github\"] } }\n",
        "Add `command: npx`, or `url`.",
    ),
    (
        "A missing key",
        "policies:\n  - { name: no-deletes, tools: [\"delete_*\"] }\n",
        "Add the key: `decide: deny`.",
    ),
    (
        "A condition that is not valid",
        "policies:\n  - { name: no-keys, tools: [\"*\"], decide: deny, when: \"arg.path == 'x'\" }\n",
        "Write the condition in CEL. It may use `args`, `tool`, `agent`, `principal`, `project` and `role`.",
    ),
    (
        "A policy that fails its own example",
        "policies:\n  - name: no-keys\n    tools: [\"*_file\"]\n    when: \"args.path.endsWith('.pem')\"\n    decide: deny\n    examples: { deny: [{ path: key.txt }] }\n",
        "Correct the policy or the example. `gantry policy test` checks every example.",
    ),
    (
        "A workspace that does not exist",
        "workspace: ./gone\n",
        "Create the folder, or name another one. A relative path starts at the folder of the configuration.",
    ),
];

/// The page. The folder is an empty one, in which nothing is left.
///
/// # Errors
/// A mistake is accepted, or the folder cannot be written.
pub fn page(folder: &Path) -> Result<String> {
    let file = folder.join("gantry.yaml");
    let mut page = String::from(INTRODUCTION);
    for (title, text, advice) in MISTAKES {
        std::fs::write(&file, text).context("the folder cannot be written")?;
        let Err(error) = gantry::check_configuration(folder) else { bail!("accepted: {title}") };
        let message = error.to_string().replace(&folder.display().to_string(), "/home/you/project");
        write!(page, "\n## {title}\n\n```yaml\n{text}```\n\n```text\n{message}\n```\n\n{advice}\n")?;
    }
    std::fs::remove_file(file)?;
    Ok(page)
}
