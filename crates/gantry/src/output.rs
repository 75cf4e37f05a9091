//! What people read: data on standard output, talk on standard error, tables without frills.

mod pretty;

pub(crate) use pretty::{pretty, within};

use gantry_core::invisible;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::sync::OnceLock;

/// The widest line of a table on a terminal that does not say how wide it is.
const WIDTH: usize = 120;

/// The widest column besides the last; what is longer is cut on a terminal, and out of line elsewhere.
const COLUMN: usize = 60;

/// Why standard output takes nothing any more.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes a line of data. What goes wrong is kept for [`lost`], because every command ends in one place.
pub(crate) fn data(line: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        // The first error is the one to tell.
        LOST.set(error).ok();
    }
}

/// Why standard output takes nothing any more, if it does not. A reader that went away (`| head`) shows as a broken
/// pipe, which is no failure, but a reason to stop.
pub(crate) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Writes a text that somebody else wrote: as it is, but to a terminal without what that would obey.
pub(crate) fn text(text: &str) {
    if io::stdout().is_terminal() { data(&clean_lines(text)) } else { data(text) }
}

/// Writes a line of talk.
pub(crate) fn talk(line: &str) {
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Writes a question and stays on its line.
pub(crate) fn ask(question: &str) {
    let mut out = io::stderr().lock();
    // Whoever does not see the question will not answer it either.
    write!(out, "{question} ").and_then(|()| out.flush()).ok();
}

/// A text in bold, for talk to a terminal that wants colour.
pub(crate) fn loud(text: &str) -> String {
    let wanted = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// Whether somebody sits at a terminal who can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Writes a value as indented JSON. What a terminal would obey and no eye would see is escaped, which JSON allows but
/// does not ask for.
pub(crate) fn json(value: &Value) {
    json_of(value);
}

/// The same of anything, which is written piece by piece: it may be far larger than what can be held.
pub(crate) fn json_of(value: &impl Serialize) {
    let mut out = Visible(BufWriter::new(io::stdout().lock()));
    let written = serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from);
    if let Err(error) = written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        LOST.set(error).ok();
    }
}

/// Escapes what a terminal would obey on the way.
struct Visible<W>(W);

impl<W: io::Write> io::Write for Visible<W> {
    /// Takes whole characters, as those who write text do.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            if c == '\n' { shown.push(c) } else { invisible::push_escaped(&mut shown, c) }
        }
        self.0.write_all(shown.as_bytes()).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether standard output is a terminal that wants colour.
pub(crate) fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The light of a server as the first cell of a row, whose dot [`table`] paints.
pub(crate) fn light(light: &str) -> String {
    format!("● {light}")
}

/// Paints the dot that a line begins with, where there are colours.
fn painted(line: String) -> String {
    let Some(rest) = line.strip_prefix('●').filter(|_| colour()) else { return line };
    let code = match rest.split_whitespace().next() {
        Some("green") => "32",
        Some("yellow") => "33",
        Some("red") => "31",
        _ => "90",
    };
    format!("\x1b[{code}m●\x1b[0m{rest}")
}

/// Writes a table: columns as wide as their content, the last one cut to the width of the terminal. What is read by
/// another program is not cut.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) {
    let rows: Vec<Noted> = rows.iter().map(|cells| (cells.clone(), None)).collect();
    noted_table(head, &rows);
}

/// The cells of a row, and what is to be said below it.
pub(crate) type Noted = (Vec<String>, Option<String>);

/// The same with notes on lines of their own, which are never cut.
pub(crate) fn noted_table(head: &[&str], rows: &[Noted]) {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for (cells, _) in rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(clean(cell).chars().count().min(COLUMN));
        }
    }
    let room = room();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let title = line(&head, &widths, room);
    data(&if colour() { format!("\x1b[1m{title}\x1b[0m") } else { title });
    for (cells, note) in rows {
        data(&painted(line(cells, &widths, room)));
        if let Some(note) = note {
            data(&format!("  └ {}", clean(note)));
        }
    }
}

/// The same without columns that say nothing: those, by title, in which every cell is this text.
pub(crate) fn sparse_table(head: &[&str], mut rows: Vec<Noted>, idle: &[(&str, &str)]) {
    let mut head = head.to_vec();
    for (title, nothing) in idle {
        drop_idle(title, nothing, &mut head, &mut rows);
    }
    noted_table(&head, &rows);
}

fn drop_idle(title: &str, nothing: &str, head: &mut Vec<&str>, rows: &mut [Noted]) {
    let Some(at) = head.iter().position(|cell| *cell == title) else { return };
    if rows.iter().all(|(cells, _)| cells.get(at).is_none_or(|cell| cell == nothing)) {
        head.remove(at);
        rows.iter_mut().filter(|(cells, _)| at < cells.len()).for_each(|(cells, _)| drop(cells.remove(at)));
    }
}

/// How wide a line may be, where somebody looks at a terminal.
fn room() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let asked = rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col));
    let said = || std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.filter(|columns| *columns > 0).or_else(said).or(Some(WIDTH))
}

fn line(row: &[String], widths: &[usize], room: Option<usize>) -> String {
    let mut line = String::new();
    for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
        if n > 0 {
            line.push_str("  ");
        }
        let is_last = n + 1 == widths.len();
        let cell = clean(cell);
        let shown = match room {
            None => cell,
            Some(room) if is_last => cut(&cell, room.saturating_sub(line.chars().count())),
            Some(_) => cut(&cell, *width),
        };
        line.push_str(&shown);
        if !is_last {
            line.push_str(&" ".repeat(width.saturating_sub(shown.chars().count())));
        }
    }
    line.trim_end().to_owned()
}

/// A moment of the API, which is UTC, as people read it.
pub(crate) fn moment(rfc3339: &str) -> String {
    rfc3339.chars().take(19).collect::<String>().replace('T', " ")
}

/// A name as it is typed on a command line.
pub(crate) fn shell_word(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./@:".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", clean(name).replace('\'', r"'\''"))
}

/// A cell on one line, with nothing in it that a terminal would obey or an eye would miss.
pub(crate) fn clean(cell: &str) -> String {
    cell.chars().map(|c| if invisible::is_invisible(c) { ' ' } else { c }).collect()
}

/// A text of several lines, with nothing in it that a terminal would obey. What joins letters or emoji stays.
pub(crate) fn clean_lines(text: &str) -> String {
    let kept = |c: char| if invisible::is_control(c) && c != '\t' { ' ' } else { c };
    text.lines().map(|line| line.chars().map(kept).collect::<String>()).collect::<Vec<_>>().join("\n")
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_cut_and_obey_nobody() {
        let row = ["a".to_owned(), "bb\x1b[31m".to_owned(), "long text here".to_owned()];
        assert_eq!(line(&row, &[3, 8, 4], Some(24)), "a    bb [31m   long tex…");
        assert_eq!(line(&row, &[3, 4, 4], None), "a    bb [31m  long text here");
    }

    #[test]
    fn json_is_written_with_nothing_in_it_that_a_terminal_obeys() {
        let value = serde_json::json!({ "ä": ["\x1b[31m", "a\u{202e}b", "x\ny\u{7f}"] });
        let mut out = Visible(Vec::new());
        serde_json::to_writer_pretty(&mut out, &value).unwrap();
        let text = String::from_utf8(out.0).unwrap();
        assert!(!text.chars().any(|c| c != '\n' && invisible::is_invisible(c)), "{text:?}");
        assert!(text.starts_with("{\n  \"ä\": [\n    \""), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let row = |project: &str| (vec!["a".to_owned(), project.to_owned(), "x".to_owned()], None);
        let (mut head, mut rows) = (vec!["ID", "PROJECT", "X"], vec![row("default"), row("other")]);
        drop_idle("PROJECT", "default", &mut head, &mut rows);
        assert_eq!(head, ["ID", "PROJECT", "X"]);
        rows.pop();
        drop_idle("PROJECT", "default", &mut head, &mut rows);
        assert_eq!((head, rows), (vec!["ID", "X"], vec![(vec!["a".to_owned(), "x".to_owned()], None)]));
    }

    #[test]
    fn names_can_be_typed() {
        for (name, typed) in
            [("a-b/c", "a-b/c"), ("my server", "'my server'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(shell_word(name), typed);
        }
    }

    #[test]
    fn texts_keep_their_lines_and_obey_nobody() {
        assert_eq!(clean_lines("a\tb\x1b[2J\nc\u{9b}1m\u{202e}d\r\n"), "a\tb [2J\nc 1m d");
        assert_eq!(clean_lines("👩\u{200d}🚀"), "👩\u{200d}🚀");
    }

    #[test]
    fn two_names_that_differ_look_different_in_a_table() {
        assert_eq!(clean("read\u{200b}_file\u{feff}"), "read _file ");
    }
}
