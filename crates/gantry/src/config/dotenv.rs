//! Where variables come from: the process and a `.env` file beside the configuration.

use std::collections::HashMap;
use std::ffi::OsString;

use super::expand::is_name;

/// The environment: that of this process, or a fixed one, so that loading is a function of its arguments under test.
#[derive(Debug, Clone)]
pub enum Env {
    Process,
    Fixed(HashMap<String, OsString>),
}

impl Env {
    pub(super) fn var(&self, name: &str) -> Option<OsString> {
        match self {
            Self::Process => std::env::var_os(name),
            Self::Fixed(variables) => variables.get(name).cloned(),
        }
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self::Fixed(variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect())
    }
}

/// What `${…}` can refer to. The process wins over the file.
pub(super) struct Variables<'a> {
    env: &'a Env,
    file: HashMap<String, String>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(env: &'a Env) -> Self {
        Self { env, file: HashMap::new() }
    }

    pub(super) fn with_file(self, file: HashMap<String, String>) -> Self {
        Self { file, ..self }
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<String>, String> {
        match self.env.var(name) {
            Some(value) => match value.into_string() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(format!("${{{name}}} is not UTF-8 text in the environment; set it to text")),
            },
            None => Ok(self.file.get(name).cloned()),
        }
    }
}

/// Reads `KEY=value` lines, as a shell would where it matters: `export` is skipped, `#` starts a comment, single quotes
/// are literal, double quotes know `\n`, `\r`, `\t`, `\"`, `\\` and `\$`, quoted values may span lines, and the last
/// value of a name wins. Nothing is expanded. An error is the line that cannot be read, and why.
pub(super) fn parse_dotenv(text: &str) -> Result<HashMap<String, String>, (usize, &'static str)> {
    let mut variables = HashMap::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let bad = |message| (line, message);
        let (first, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = first.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            rest = after;
            line += 1;
            continue;
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        let name = name.trim_start();
        let exported = name.strip_prefix("export").filter(|name| name.starts_with([' ', '\t']));
        let name = exported.unwrap_or(name).trim();
        if !trimmed.contains('=') || !is_name(name) {
            return Err(bad("expected KEY=value, with a name of letters, digits and _"));
        }
        let (value, after) = dotenv_value(value).map_err(bad)?;
        variables.insert(name.to_owned(), value);
        let read = rest.get(..rest.len() - after.len()).unwrap_or_default();
        line += read.matches('\n').count();
        rest = after;
    }
    Ok(variables)
}

/// The value at the start of a text, and the text after its line.
fn dotenv_value(text: &str) -> Result<(String, &str), &'static str> {
    let start = text.trim_start_matches([' ', '\t']);
    let (value, rest) = match start.chars().next() {
        Some('"') => double_quoted(start)?,
        Some('\'') => {
            let inside = start.strip_prefix('\'').and_then(|start| start.split_once('\''));
            inside.map(|(value, rest)| (value.to_owned(), rest)).ok_or("a single quote is not closed")?
        }
        _ => {
            let (value, after) = text.split_once('\n').unwrap_or((text, ""));
            let uncommented = |value, mark| str::split(value, mark).next().unwrap_or(value);
            let value = [" #", "\t#"].into_iter().fold(value, uncommented);
            return Ok((value.trim().to_owned(), after));
        }
    };
    let (tail, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let tail = tail.trim();
    if tail.is_empty() || tail.starts_with('#') {
        Ok((value, after))
    } else {
        Err("text follows the closing quote")
    }
}

fn double_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut chars = text.chars();
    chars.next();
    while let Some(next) = chars.next() {
        match next {
            '"' => return Ok((value, chars.as_str())),
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(escaped @ ('"' | '\\' | '$')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => break,
            },
            other => value.push(other),
        }
    }
    Err("a double quote is not closed")
}
