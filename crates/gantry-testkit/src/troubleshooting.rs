//! The page of the mistakes that users make most in a configuration, with the exact messages of the program.

use anyhow::{Context as _, Result, bail};
use std::fmt::Write as _;
use std::path::Path;

const INTRODUCTION: &str = "# Troubleshooting the configuration

Generated from the program by `cargo xtask reference`: the messages are the program's own.

`gantry config check` reports every problem of all files at once and ends with exit code 2; `gantry config show` says which
value applies and where it comes from. An editor that knows [the schema](configuration.md#completion-in-editors) shows most of these while
you type.
";

/// A mistake, the file that has it, and what to do.
const MISTAKES: [(&str, &str, &str); 15] = [
    (
        "An unknown key",
        "mcpServers:\n  github: { comand: npx }\n",
        "Correct the key. The nearest one is suggested; where none is near, all are listed. [The reference](reference/config.md) describes each.",
    ),
    (
        "A value of the wrong type",
        "defaults: { toolTimeout: 30s }\n",
        "Times are whole numbers of milliseconds: `toolTimeout: 30000`.",
    ),
    (
        "A text where a list is needed",
        "tools: { workspace: { toolsAllowed: read_file } }\n",
        "Write `[read_file]`. A key without a value is no list either; `[]` is the empty one.",
    ),
    (
        "A pattern that is none",
        "tools: { workspace: { toolsDenied: [\"delete file\"] } }\n",
        "Names of tools have no spaces. `*` stands for any text: `\"delete_*\"`.",
    ),
    (
        "A variable that is not set",
        "server: { bind: \"${GANTRY_ADDRESS}\" }\n",
        "Set it in the environment or in `.env` beside the file, or write a default. In the entry of an MCP server, a REST tool or an API it switches off that entry only, and `gantry doctor` says so.",
    ),
    (
        "A key that is there twice",
        "server: { bind: 127.0.0.1:7420 }\nserver: { bind: 0.0.0.0:7420 }\n",
        "Keep one of them.",
    ),
    (
        "An id that is taken",
        "mcpServers: { files: { command: npx } }\ntools: { files: { kind: builtin, builtinPolicy: { name: fs_read } } }\n",
        "MCP servers and entries of `tools` share their ids, also with files `tools/<id>/tool.json`. Choose another id for one of them.",
    ),
    (
        "A queue that does not exist",
        "queues: { disk: { concurrent: 2 } }\nmcpServers: { github: { command: npx, queue: dsik } }\n",
        "Correct the name, or add the queue under `queues`.",
    ),
    (
        "An address that is none",
        "mcpServers: { remote: { url: \"mcp.example.com\" } }\n",
        "Write the whole address: `https://mcp.example.com/mcp`. It is not quoted in the message, because it may hold a key.",
    ),
    (
        "Two ways to reach a server",
        "mcpServers: { github: { command: npx, url: \"https://mcp.example.com/mcp\" } }\n",
        "Keep `command` for a program that Gantry starts, or `url` for one that listens.",
    ),
    (
        "No way to reach a server",
        "mcpServers: { github: { args: [\"-y\", \"@mcp/github\"] } }\n",
        "Add `command: npx`, or `url`.",
    ),
    (
        "A required key that is missing",
        "policies:\n  - { name: no-deletes, tools: [\"delete_*\"] }\n",
        "Add it: `decide: deny`.",
    ),
    (
        "A condition that cannot be read",
        "policies:\n  - { name: no-keys, tools: [\"*\"], decide: deny, when: \"arg.path == 'x'\" }\n",
        "Conditions are CEL over `args`, `tool`, `agent`, `principal`, `project` and `role`.",
    ),
    (
        "A rule that fails its own example",
        "policies:\n  - name: no-keys\n    tools: [\"*_file\"]\n    when: \"args.path.endsWith('.pem')\"\n    decide: deny\n    examples: { deny: [{ path: key.txt }] }\n",
        "Correct the rule or the example. `gantry policy test` shows every example.",
    ),
    (
        "A workspace that is not there",
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
