//! Terminal output: data on standard output, messages and questions on standard error.

mod json;
mod table;
mod text;

pub(crate) use json::{pretty_json, print_json, truncate_lines};
pub(crate) use table::{Column, print_list, print_table};
pub(crate) use text::{fields, plural, sanitize, sanitize_lines, shell_word, thousands, timestamp};

use crate::exit::UsageError;
use anyhow::Context as _;
use serde::Serialize;
use std::io::{self, IsTerminal, Write as _};
use std::sync::OnceLock;

static STDOUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Writes a line of data to standard output. An error is kept for [`stdout_error`], which decides the exit code.
pub(crate) fn print(line: &str) {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    keep_error(written);
}

fn keep_error(written: io::Result<()>) {
    if let Err(error) = written {
        STDOUT_ERROR.set(error).ok();
    }
}

/// The first error of writing to standard output. A reader that went away (`| head`) shows as a broken pipe, which is
/// no failure, but a reason to stop.
pub(crate) fn stdout_error() -> Option<&'static io::Error> {
    STDOUT_ERROR.get()
}

/// Writes text from outside to standard output: unchanged into a pipe or file, sanitised on a terminal.
pub(crate) fn print_untrusted(text: &str) {
    if io::stdout().is_terminal() { print(&sanitize_lines(text)) } else { print(text) }
}

pub(crate) fn eprint(line: &str) {
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Writes a question to standard error and leaves the cursor behind it.
pub(crate) fn prompt(question: &str) {
    let mut out = io::stderr().lock();
    write!(out, "{question} ").and_then(|()| out.flush()).ok();
}

/// Writes a value to standard output as JSON, or else as the lines that describe it.
pub(crate) fn print_value<T: Serialize>(value: &T, json: bool, describe: impl FnOnce(&T) -> Vec<String>) {
    if json {
        return print_json(value);
    }
    describe(value).iter().for_each(|line| print(&sanitize(line)));
}

/// Whether questions can be asked: standard input and standard error are terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal; without one, the error says what to do instead.
pub(crate) fn confirm(question: &str, instead: &str) -> anyhow::Result<bool> {
    if !is_interactive() {
        return Err(UsageError(format!("there is no terminal to ask on; {instead}")).into());
    }
    eprint(&format!("{question} Type y to accept."));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The text in a colour or weight, if it is for a terminal that wants colours.
pub(crate) fn coloured(out: &impl IsTerminal, code: &str, text: &str) -> String {
    let wanted = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
