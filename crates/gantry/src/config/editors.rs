//! What editors write into their files of MCP servers, read as what it means here, or named as having no effect.

use super::tree::{Entry, Node, Value};
use std::fmt::Display;

/// Keys of editors that mean the same as one of Gantry's.
const RENAMED: [(&str, &str); 8] = [
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("transport", "type"),
    ("transportType", "type"),
    ("disabledTools", "toolsDenied"),
    ("excludeTools", "toolsDenied"),
    ("enabledTools", "toolsAllowed"),
    ("includeTools", "toolsAllowed"),
];

/// Keys of editors that Gantry has no use for, and what to do instead.
const WITHOUT_EFFECT: [(&str, &str); 10] = [
    ("alwaysAllow", "\"approvals\" and \"policies\" decide who is asked"),
    ("autoApprove", "\"approvals\" and \"policies\" decide who is asked"),
    ("trust", "\"approvals\" and \"policies\" decide who is asked"),
    ("timeout", "its unit differs between editors; write \"requestTimeoutMs\""),
    (
        "envFile",
        "write the variables into \"env\", as ${VAR}, and their values into .env beside the configuration",
    ),
    ("oauth", "write the token into \"headers\", as ${VAR}"),
    ("dev", "it is for editors"),
    ("gallery", "it is for editors"),
    ("name", "the id is its name"),
    ("version", "it is for editors"),
];

/// Reads a file of an editor as a configuration. Returns lines and what to say about them.
pub(super) fn adopt_file(root: &mut Node) -> Vec<(usize, String)> {
    let Value::Map(entries) = &mut root.value else { return Vec::new() };
    entries.retain(|entry| entry.key != "$schema");
    rename(entries, "servers", "mcpServers");
    let mut warnings = Vec::new();
    entries.retain(|entry| {
        let kept = entry.key != "inputs";
        if !kept {
            let advice = "Gantry asks nobody for them; write ${VAR} where ${input:…} stands and set VAR";
            warnings.push((entry.line, format!("inputs has no effect; {advice}")));
        }
        kept
    });
    warnings
}

/// Reads the entry of a server as an editor writes it. Returns lines and what to say about them.
pub(super) fn adopt_server(node: &mut Node, path: &impl Display) -> Vec<(usize, String)> {
    let Value::Map(entries) = &mut node.value else { return Vec::new() };
    for (from, to) in RENAMED {
        rename(entries, from, to);
    }
    let mut warnings = Vec::new();
    entries.retain(|entry| {
        let known = WITHOUT_EFFECT.iter().find(|(key, _)| *key == entry.key);
        if let Some((key, advice)) = known {
            warnings.push((entry.line, format!("{path}.{key} has no effect; {advice}")));
        }
        known.is_none()
    });
    warnings
}

/// Gives a key its name here, unless that is taken; then the other one stays and is refused as unknown.
pub(super) fn rename(entries: &mut [Entry], from: &str, to: &str) {
    if entries.iter().any(|entry| entry.key == to) {
        return;
    }
    if let Some(entry) = entries.iter_mut().find(|entry| entry.key == from) {
        to.clone_into(&mut entry.key);
    }
}
