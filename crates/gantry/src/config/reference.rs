//! The reference page of the configuration, written from the key table.

use std::fmt::{self, Write as _};

use super::table::{Fallback, Key, Kind, Number, ROOT, Zero};

/// A file that uses every key of this version.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// The reference page in Markdown.
pub fn reference() -> String {
    let mut page = String::new();
    // Writing to a `String` cannot fail; an error here would mean a broken `Display`.
    match write_page(&mut page) {
        Ok(()) => page,
        Err(fmt::Error) => String::new(),
    }
}

fn write_page(page: &mut String) -> fmt::Result {
    page.push_str(INTRODUCTION);
    writeln!(page, "\n## Top level\n")?;
    write_section(page, ROOT, "")?;
    writeln!(page, "\n## Keys of later versions\n")?;
    writeln!(page, "These keys are reserved. A file that has one of them is refused.\n")?;
    write_later(page, ROOT, "")?;
    writeln!(page, "\n## A complete example\n\n```yaml\n{EXAMPLE}```")
}

const INTRODUCTION: &str = "\
# Configuration reference

Generated from the program; do not edit.

Gantry reads `gantry.yaml`, `gantry.yml`, `gantry.json` or `gantry.toml`: the file that `--config` names, else the one
that `$GANTRY_CONFIG` names, else the one in the working folder. Two of them in one folder are an error. Without a file,
every key has its default. A file may have up to 1 MiB.

Unknown keys, duplicate keys and values of the wrong type are errors, reported together with their lines.

`${VAR}` in a text is replaced by the variable VAR, and `${VAR:-default}` by `default` when VAR is unset or empty. The
environment of the process is asked first, then a file `.env` beside the configuration. The value of a variable is not
expanded again. `$${` writes `${`. An unset variable without a default is an error; in the entry of an MCP server it
switches off that server only. There, `${env:VAR}` is read as `${VAR}`, as editors write it. Where a number or a truth value is
expected, a text with a variable in it may spell one: `toolTimeout: ${TIMEOUT:-60000}`. Anything else in `${…}` stays
as it is.

The data folder is the one that `--data` names, else the one that `$GANTRY_DATA` names, else `.gantry` beside the
configuration.

In limits and timeouts, 0 means the default, never \"without limit\".
";

fn write_section(page: &mut String, keys: &'static [Key], path: &str) -> fmt::Result {
    writeln!(page, "| key | type | default | meaning | example |\n|---|---|---|---|---|")?;
    for key in keys.iter().filter(|key| !matches!(key.kind, Kind::Later)) {
        let row = [format!("`{}`", key.name), noun(&key.kind), fallback(key), meaning(key), example(key)];
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        writeln!(page, "| {} |", cells.join(" | "))?;
    }
    for key in keys {
        if let Some((inner, suffix)) = inner(&key.kind) {
            let path = join(path, key.name) + suffix;
            writeln!(page, "\n## `{path}`\n\n{}\n", key.meaning)?;
            write_section(page, inner, &path)?;
        }
    }
    Ok(())
}

fn write_later(page: &mut String, keys: &'static [Key], path: &str) -> fmt::Result {
    for key in keys {
        if matches!(key.kind, Kind::Later) {
            writeln!(page, "- `{}`", join(path, key.name))?;
        }
        if let Some((inner, suffix)) = inner(&key.kind) {
            write_later(page, inner, &(join(path, key.name) + suffix))?;
        }
    }
    Ok(())
}

/// The keys under a key, and how its path goes on.
fn inner(kind: &'static Kind) -> Option<(&'static [Key], &'static str)> {
    match kind {
        Kind::Section(keys) | Kind::Catalogue(keys) => Some((keys, "")),
        Kind::Named(keys) => Some((keys, ".<name>")),
        Kind::Servers(keys) => Some((keys, ".<id>")),
        Kind::Items(keys) => Some((keys, "[]")),
        Kind::PerTool(_)
        | Kind::Secrets(_)
        | Kind::Flag
        | Kind::Number(_)
        | Kind::Text(_)
        | Kind::Texts(..)
        | Kind::Queue
        | Kind::QueueOrNone
        | Kind::Choice(..)
        | Kind::Gated
        | Kind::Arguments
        | Kind::Later => None,
    }
}

fn noun(kind: &Kind) -> String {
    let mut noun = kind.noun();
    if let Kind::PerTool(value) = kind {
        noun = format!("{noun}, each {}", value.noun());
    }
    if let Some(number) = number(kind) {
        noun = format!("{noun}, at most {}", number.max);
    }
    noun
}

fn number(kind: &Kind) -> Option<&Number> {
    if let Kind::Number(number) | Kind::PerTool(Kind::Number(number)) = kind { Some(number) } else { None }
}

fn fallback(key: &Key) -> String {
    match key.default {
        Fallback::Required => "required".to_owned(),
        Fallback::Flag(flag) => format!("`{flag}`"),
        Fallback::Number(number) => format!("`{number}`"),
        Fallback::Text(text) => format!("`{text}`"),
        Fallback::Absent(words) => words.to_owned(),
    }
}

fn meaning(key: &Key) -> String {
    match number(&key.kind).map(|number| number.zero) {
        Some(Zero::Off) => format!("{} 0 is off.", key.meaning),
        Some(Zero::Refused) => format!("{} At least 1.", key.meaning),
        Some(Zero::Default) | None => key.meaning.to_owned(),
    }
}

fn example(key: &Key) -> String {
    if key.example.is_empty() { "see below".to_owned() } else { format!("`{}`", key.example) }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
