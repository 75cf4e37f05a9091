//! Tables for people: columns as wide as their content, cut to the terminal, with notes below rows.

use super::{eprint, print, print_json, sanitize, wants_colour};
use serde::Serialize;
use std::io::{self, IsTerminal as _};

/// The width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 120;

/// The widest column besides the last. A longer cell is cut on a terminal and overflows its column elsewhere.
const MAX_COLUMN: usize = 60;

/// The light of a server as the first cell of a row; [`table`] colours its dot.
pub(crate) fn light(light: &str) -> String {
    format!("● {light}")
}

/// Colours the dot at the beginning of a line.
fn painted(line: String) -> String {
    let Some(rest) = line.strip_prefix('●').filter(|_| wants_colour()) else { return line };
    let code = match rest.split_whitespace().next() {
        Some("green") => "32",
        Some("yellow") => "33",
        Some("red") => "31",
        _ => "90",
    };
    format!("\x1b[{code}m●\x1b[0m{rest}")
}

/// A column of a table of values.
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
/// or file nothing is cut. A note gets a line of its own below its row and is never cut.
pub(crate) fn print_table<T>(items: &[T], columns: &[Column<T>], note: impl Fn(&T) -> Option<String>) {
    let shown = shown_columns(items, columns);
    let head: Vec<&str> = shown.iter().map(|(column, _)| column.title).collect();
    let row = |n: usize| shown.iter().filter_map(|(_, cells)| cells.get(n).cloned()).collect();
    let rows: Vec<RowWithNote> = items.iter().enumerate().map(|(n, item)| (row(n), note(item))).collect();
    table_with_notes(&head, &rows);
}

/// The columns that say something, with their cells.
fn shown_columns<'a, T>(items: &[T], columns: &'a [Column<T>]) -> Vec<(&'a Column<T>, Vec<String>)> {
    let cells = |column: &Column<T>| items.iter().map(column.cell).collect::<Vec<_>>();
    let is_shown = |(column, cells): &(&Column<T>, Vec<String>)| {
        column.hidden_if.is_empty() || !cells.iter().all(|cell| column.hidden_if.contains(&cell.as_str()))
    };
    columns.iter().map(|column| (column, cells(column))).filter(is_shown).collect()
}

/// Writes rows as a table.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) {
    let rows: Vec<RowWithNote> = rows.iter().map(|cells| (cells.clone(), None)).collect();
    table_with_notes(head, &rows);
}

/// The cells of a row, and a note for the line below it.
type RowWithNote = (Vec<String>, Option<String>);

/// The same with notes, which are never cut.
fn table_with_notes(head: &[&str], rows: &[RowWithNote]) {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for (cells, _) in rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(sanitize(cell).chars().count().min(MAX_COLUMN));
        }
    }
    let terminal = terminal_width();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let title = line(&head, &widths, terminal);
    print(&if wants_colour() { format!("\x1b[1m{title}\x1b[0m") } else { title });
    for (cells, note) in rows {
        print(&painted(line(cells, &widths, terminal)));
        if let Some(note) = note {
            print(&format!("  └ {}", sanitize(note)));
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

fn line(row: &[String], widths: &[usize], terminal: Option<usize>) -> String {
    let mut line = String::new();
    for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
        if n > 0 {
            line.push_str("  ");
        }
        let is_last = n + 1 == widths.len();
        let cell = sanitize(cell);
        let shown = match terminal {
            None => cell,
            Some(terminal) if is_last => truncate(&cell, terminal.saturating_sub(line.chars().count())),
            Some(_) => truncate(&cell, *width),
        };
        line.push_str(&shown);
        if !is_last {
            line.push_str(&" ".repeat(width.saturating_sub(shown.chars().count())));
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
    fn lines_are_aligned_cut_and_sanitised() {
        let row = ["a".to_owned(), "bb\x1b[31m".to_owned(), "long text here".to_owned()];
        assert_eq!(line(&row, &[3, 8, 4], Some(24)), "a    bb [31m   long tex…");
        assert_eq!(line(&row, &[3, 4, 4], None), "a    bb [31m  long text here");
    }

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let columns = [
            Column::new("ID", |_: &&str| "a".to_owned()),
            Column::unless("PROJECT", &["default"], |project| (*project).to_owned()),
        ];
        let titles = |projects: &[&'static str]| -> Vec<&str> {
            shown_columns(projects, &columns).iter().map(|(column, _)| column.title).collect()
        };
        assert_eq!(titles(&["default", "other"]), ["ID", "PROJECT"]);
        assert_eq!(titles(&["default", "default"]), ["ID"]);
    }
}
