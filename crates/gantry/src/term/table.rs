//! Tables for people: columns as wide as their content, cut to the terminal, with notes below rows.

use super::{coloured, eprint, print, print_json, sanitize};
use serde::Serialize;
use std::io::{self, IsTerminal as _};

/// The width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 120;

/// The widest column besides the last. A longer cell is cut on a terminal and overflows its column elsewhere.
const MAX_COLUMN: usize = 60;

/// Colours the dot of the light of a server at the beginning of a line: `● green`.
fn with_coloured_dot(line: String) -> String {
    let Some(rest) = line.strip_prefix('●') else { return line };
    let code = match rest.split_whitespace().next() {
        Some("green") => "32",
        Some("yellow") => "33",
        Some("red") => "31",
        _ => "90",
    };
    format!("{}{rest}", coloured(&io::stdout(), code, "●"))
}

pub(crate) struct Column<T> {
    title: &'static str,
    cell: fn(&T) -> String,
    hidden_if: &'static [&'static str],
}

impl<T> Column<T> {
    pub(crate) const fn new(title: &'static str, cell: fn(&T) -> String) -> Self {
        Self { title, cell, hidden_if: &[] }
    }

    /// A column that is left out if each of its cells is one of these texts.
    pub(crate) const fn unless(
        title: &'static str,
        hidden_if: &'static [&'static str],
        cell: fn(&T) -> String,
    ) -> Self {
        Self { title, cell, hidden_if }
    }

    /// The sanitised cells and the width of the column; `None` if it is hidden.
    fn render(&self, items: &[T]) -> Option<(Vec<String>, usize)> {
        let cells: Vec<String> = items.iter().map(|item| sanitize(&(self.cell)(item))).collect();
        if !self.hidden_if.is_empty() && cells.iter().all(|cell| self.hidden_if.contains(&cell.as_str())) {
            return None;
        }
        let widest = cells.iter().map(|cell| cell.chars().count().min(MAX_COLUMN)).max();
        Some((cells, widest.unwrap_or_default().max(self.title.chars().count())))
    }
}

/// Writes the values as a table, or as JSON. An empty list is shown as the message `empty` on standard error.
pub(crate) fn print_list<T: Serialize>(items: &[T], columns: &[Column<T>], empty: &str, json: bool) {
    if json {
        print_json(&items);
    } else if items.is_empty() {
        eprint(empty);
    } else {
        print_table(items, columns, |_| None);
    }
}

/// Writes values as a table: columns as wide as their content, the last one cut to the width of the terminal. In a pipe
/// or file nothing is cut. A note gets a line of its own below its row and is never cut. No values make no table.
pub(crate) fn print_table<T>(items: &[T], columns: &[Column<T>], note: impl Fn(&T) -> Option<String>) {
    if items.is_empty() {
        return;
    }
    let terminal = terminal_width();
    let rendered = columns.iter().filter_map(|column| Some((column.title, column.render(items)?)));
    let rendered: Vec<_> = rendered.map(|(title, (cells, width))| (title, cells, width)).collect();
    let titles = line(rendered.iter().map(|(title, _, width)| (*title, *width)), terminal);
    print(&coloured(&io::stdout(), "1", &titles));
    for (n, item) in items.iter().enumerate() {
        let cells = rendered.iter().filter_map(|(_, cells, width)| Some((cells.get(n)?.as_str(), *width)));
        print(&with_coloured_dot(line(cells, terminal)));
        if let Some(note) = note(item) {
            print(&format!("  └ {}", sanitize(&note)));
        }
    }
}

/// The width of the terminal on standard output; `None` if that is no terminal.
fn terminal_width() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let reported = rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col));
    let from_env = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    reported.filter(|columns| *columns > 0).or_else(from_env).or(Some(DEFAULT_WIDTH))
}

/// Cells with the widths of their columns on one line.
fn line<'a>(cells: impl Iterator<Item = (&'a str, usize)>, terminal: Option<usize>) -> String {
    let (mut line, mut cells) = (String::new(), cells.peekable());
    while let Some((cell, width)) = cells.next() {
        let is_last = cells.peek().is_none();
        let shown = match terminal {
            None => cell.to_owned(),
            Some(terminal) if is_last => truncate(cell, terminal.saturating_sub(line.chars().count())),
            Some(_) => truncate(cell, width),
        };
        line.push_str(&shown);
        if !is_last {
            line.push_str(&" ".repeat(width.saturating_sub(shown.chars().count()) + 2));
        }
    }
    line.trim_end().to_owned()
}

fn truncate(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_cut() {
        let row = |widths: [usize; 3]| ["a", "bb [31m", "long text here"].into_iter().zip(widths);
        assert_eq!(line(row([3, 8, 4]), Some(24)), "a    bb [31m   long tex…");
        assert_eq!(line(row([3, 4, 4]), None), "a    bb [31m  long text here");
        let column = Column::new("ID", |text: &&str| (*text).to_owned());
        assert_eq!(column.render(&["bb\x1b[31m"]), Some((vec!["bb [31m".to_owned()], 7)));
    }

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let column = Column::unless("PROJECT", &["default"], |project: &&str| (*project).to_owned());
        assert!(column.render(&["default", "other"]).is_some());
        assert!(column.render(&["default", "default"]).is_none());
    }
}
