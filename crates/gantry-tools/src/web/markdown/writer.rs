//! Writes the tree of a page as Markdown.
//!
//! Each element becomes a piece of text. The line ends at the edges of a piece say how far it has to be from its
//! neighbours: none for words in a line, one for an item of a list, two for a paragraph.

use super::one_line;
use super::tree::{BLOCKS, DOCUMENT, Element, Node, NodeId, TABLE_PARTS, Tree};

pub(super) fn write(tree: &Tree) -> String {
    let text = tree.element(DOCUMENT).map(|document| Writer { tree }.children(document)).unwrap_or_default();
    text.trim().to_owned()
}

struct Writer<'a> {
    tree: &'a Tree,
}

impl Writer<'_> {
    /// What is in an element, as one piece.
    fn children(&self, element: &Element) -> String {
        let mut piece = String::new();
        let is_block = is_block(element.name);
        let mut number = element.attribute.parse().unwrap_or(1_usize).max(1);
        for &child in &element.children {
            match self.tree.node(child) {
                Some(Node::Text(text)) => push_words(&mut piece, text, is_block),
                Some(Node::Element(inner)) if inner.name == "br" => {
                    piece.truncate(piece.trim_end_matches(' ').len());
                    piece.push_str("  \n");
                }
                Some(Node::Element(inner)) if inner.name == "li" && element.name == "ol" => {
                    push_piece(&mut piece, &self.item(inner, &format!("{number}. ")));
                    number += 1;
                }
                Some(Node::Element(inner)) => push_piece(&mut piece, &self.piece(inner, element.name)),
                None => {}
            }
        }
        piece
    }

    fn piece(&self, element: &Element, parent: &str) -> String {
        match element.name {
            "hr" => "\n\n- - -\n\n".to_owned(),
            "img" => {
                format!("![{}]({})", escaped(self.plain(element).trim()), destination(&element.attribute))
            }
            "a" => self.link(element),
            "b" | "strong" => marked(&self.children(element), "**"),
            "i" | "em" => marked(&self.children(element), "*"),
            "code" => code(&self.plain(element)),
            "pre" => fenced(&self.plain(element), &element.attribute),
            "li" => self.item(element, "- "),
            "ul" | "ol" if parent == "li" => within(&self.children(element), "\n"),
            "blockquote" => {
                let quoted = self.children(element);
                let lines: Vec<String> = quoted.trim().lines().map(|line| format!("> {line}")).collect();
                within(&lines.join("\n"), "\n\n")
            }
            "table" => self.table(element),
            name => match heading(name) {
                Some(marks) => self.heading(element, marks),
                None if is_block(name) => within(&self.children(element), "\n\n"),
                None => self.children(element),
            },
        }
    }

    fn heading(&self, element: &Element, marks: &str) -> String {
        let words = self.children(element);
        if words.trim().is_empty() { String::new() } else { format!("\n\n{marks} {}\n\n", words.trim()) }
    }

    /// An item of a list, with further lines under its first word.
    fn item(&self, element: &Element, marker: &str) -> String {
        let content = self.children(element);
        let mut item = format!("\n{marker}");
        for (n, line) in content.trim().lines().enumerate() {
            if n > 0 {
                item.push('\n');
                item.push_str(&" ".repeat(if line.is_empty() { 0 } else { marker.len() }));
            }
            item.push_str(line);
        }
        item.push('\n');
        item
    }

    /// A link with words in it; the tree has made its address absolute.
    fn link(&self, element: &Element) -> String {
        let inner = self.children(element);
        let words = inner.trim();
        if element.attribute.is_empty() || words.is_empty() {
            return if element.attribute.is_empty() { inner } else { String::new() };
        }
        let blank = if inner.ends_with(char::is_whitespace) { " " } else { "" };
        format!("[{words}]({}){blank}", destination(&element.attribute))
    }

    /// The words of an element as they stand.
    fn plain(&self, element: &Element) -> String {
        let mut words = String::new();
        for &child in &element.children {
            match self.tree.node(child) {
                Some(Node::Text(text)) => words.push_str(text),
                Some(Node::Element(inner)) => words.push_str(&self.plain(inner)),
                None => {}
            }
        }
        words
    }

    /// A table whose columns are not padded to one width, so that one wide cell does not multiply. Cells with several
    /// lines are paragraphs, unless the table has headings: without, it is mostly there for the layout.
    fn table(&self, table: &Element) -> String {
        let (mut paragraphs, mut rows, mut has_headings) = (Vec::new(), Vec::new(), false);
        for child in self.rows_and_others(table) {
            let Some(row) = self.tree.element(child).filter(|row| row.name == "tr") else {
                paragraphs.push(self.text_of(child, table.name));
                continue;
            };
            let is_cell =
                |id: &NodeId| self.tree.element(*id).is_some_and(|cell| matches!(cell.name, "td" | "th"));
            let cells: Vec<NodeId> = row.children.iter().copied().filter(is_cell).collect();
            has_headings |=
                cells.iter().any(|cell| self.tree.element(*cell).is_some_and(|cell| cell.name == "th"));
            rows.push(cells.into_iter().map(|cell| self.text_of(cell, row.name)).collect::<Vec<_>>());
        }
        rows.retain(|cells| cells.iter().any(|cell| !cell.is_empty()));
        if !has_headings && rows.iter().flatten().any(|cell| cell.contains('\n')) {
            paragraphs.extend(rows.drain(..).flatten());
        }
        let mut lines = Vec::new();
        for cells in rows {
            let cells: Vec<String> =
                cells.iter().map(|cell| one_line(cell, usize::MAX).replace('|', "\\|")).collect();
            lines.push(format!("| {} |", cells.join(" | ")));
            if lines.len() == 1 {
                lines.push(format!("|{}", "---|".repeat(cells.len())));
            }
        }
        paragraphs.push(lines.join("\n"));
        paragraphs.retain(|paragraph| !paragraph.is_empty());
        within(&paragraphs.join("\n\n"), "\n\n")
    }

    /// What a table and its sections consist of.
    fn rows_and_others(&self, table: &Element) -> Vec<NodeId> {
        let section = |id: &NodeId| {
            self.tree.element(*id).filter(|part| matches!(part.name, "thead" | "tbody" | "tfoot"))
        };
        let parts = table.children.iter();
        parts.flat_map(|id| section(id).map_or_else(|| vec![*id], |part| part.children.clone())).collect()
    }

    fn text_of(&self, id: NodeId, parent: &str) -> String {
        let mut text = String::new();
        match self.tree.node(id) {
            Some(Node::Text(words)) => push_words(&mut text, words, true),
            Some(Node::Element(element)) => text = self.piece(element, parent),
            None => {}
        }
        text.trim().to_owned()
    }
}

fn is_block(name: &str) -> bool {
    name.is_empty() || BLOCKS.contains(&name) || TABLE_PARTS.contains(&name)
}

fn heading(name: &str) -> Option<&'static str> {
    let level = name.strip_prefix('h')?.parse().ok()?;
    "######".get(..level)
}

/// A piece at this distance from its neighbours. An empty one keeps them apart too.
fn within(piece: &str, edge: &str) -> String {
    match piece.trim() {
        "" => edge.to_owned(),
        trimmed => format!("{edge}{trimmed}{edge}"),
    }
}

/// Appends a piece. Between two pieces are the line ends of that one which has more of them.
fn push_piece(text: &mut String, piece: &str) {
    let bare = piece.trim_start_matches('\n');
    let before = piece.len() - bare.len();
    if before > 0 {
        text.truncate(text.trim_end_matches(' ').len());
    }
    let after = text.len() - text.trim_end_matches('\n').len();
    if !text.is_empty() {
        text.extend(std::iter::repeat_n('\n', before.saturating_sub(after)));
    } else if before > 0 {
        text.push_str(piece);
        return;
    }
    let is_after_blank = text.ends_with([' ', '\n']);
    text.push_str(if is_after_blank && before == 0 { bare.trim_start_matches(' ') } else { bare });
}

/// Appends words, with single blanks for their white space and with escapes for what Markdown would read as marks.
fn push_words(text: &mut String, words: &str, is_block: bool) {
    let is_line_start = text.ends_with('\n') || (text.is_empty() && is_block);
    let mut line = String::with_capacity(words.len());
    let mut is_after_blank = is_line_start || text.ends_with(' ');
    for char in words.chars() {
        let is_blank = char.is_ascii_whitespace();
        if !(is_blank && is_after_blank) {
            line.push(if is_blank { ' ' } else { char });
        }
        is_after_blank = is_blank;
    }
    let escaped = escaped(&line);
    if is_line_start {
        text.push_str(&escaped_start(&escaped));
    } else {
        text.push_str(&escaped);
    }
}

/// Words in which no mark of Markdown means anything.
fn escaped(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    let mut chars = words.chars().peekable();
    while let Some(char) = chars.next() {
        let is_mark = match char {
            '\\' | '*' | '_' | '`' | '[' | ']' => true,
            '<' => chars.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next)),
            _ => false,
        };
        if is_mark {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

/// The same at the start of a line, where it would begin a heading, a list, a quote or a fence.
fn escaped_start(line: &str) -> String {
    let is_apart = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let digits = line.len() - line.trim_start_matches(|char: char| char.is_ascii_digit()).len();
    let at = match line.chars().next() {
        Some('#') if is_apart(line.trim_start_matches('#')) => Some(0),
        Some('-' | '+') if line.get(1..).is_some_and(is_apart) || line.starts_with("--") => Some(0),
        Some('>' | '=') => Some(0),
        Some('~') if line.starts_with("~~~") => Some(0),
        Some('0'..='9') if digits < 10 => {
            let rest = line.get(digits..).and_then(|rest| rest.strip_prefix(['.', ')']));
            rest.is_some_and(is_apart).then_some(digits)
        }
        _ => None,
    };
    let mut line = line.to_owned();
    if let Some(at) = at {
        line.insert(at, '\\');
    }
    line
}

/// A piece between two marks. White space at its edges stays outside, where Markdown wants it.
fn marked(piece: &str, mark: &str) -> String {
    let words = piece.trim();
    if words.is_empty() {
        return piece.chars().take(1).filter(|char| *char == ' ').collect();
    }
    let blank = |is_there: bool| if is_there { " " } else { "" };
    let (before, after) = (piece.starts_with(char::is_whitespace), piece.ends_with(char::is_whitespace));
    format!("{}{mark}{words}{mark}{}", blank(before), blank(after))
}

fn code(words: &str) -> String {
    let words = one_line(words, usize::MAX);
    if words.is_empty() {
        return words;
    }
    let fence = "`".repeat(longest_run(&words) + 1);
    let blank = if words.starts_with('`') || words.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{words}{blank}{fence}")
}

fn fenced(code: &str, language: &str) -> String {
    let code = code.strip_suffix('\n').unwrap_or(code);
    let fence = "`".repeat(3.max(longest_run(code) + 1));
    format!("\n\n{fence}{language}\n{code}\n{fence}\n\n")
}

/// The length of the longest row of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or_default()
}

/// An address whose parentheses do not end the link.
fn destination(address: &str) -> String {
    address.replace('(', "%28").replace(')', "%29")
}
