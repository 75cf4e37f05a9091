//! HTML as Markdown, for an agent to read.
//!
//! `html5gum` reads the tags, `tree` keeps of them what Markdown can show, within limits, and `writer` writes it.

mod tree;
mod writer;

use gantry_egress::Url;
use tree::Tree;

/// Limit: bytes of Markdown. Addresses that become absolute can make it longer than the page was.
const MARKDOWN_BYTES: usize = super::page::BODY_BYTES;

/// Limit: characters of a title.
const TITLE_CHARS: usize = 300;

#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) title: Option<String>,
    /// Whether the page was cut at a limit.
    pub(super) truncated: bool,
}

pub(super) fn convert(html: &str, url: &Url) -> Page {
    let tree = Tree::parse(html, Some(url));
    let mut text = writer::write(&tree);
    let Tree { title, mut truncated, .. } = tree;
    if text.len() > MARKDOWN_BYTES {
        text.truncate(text.floor_char_boundary(MARKDOWN_BYTES));
        truncated = true;
    }
    let title = title.map(|title| one_line(&title, TITLE_CHARS)).filter(|title| !title.is_empty());
    Page { text, title, truncated }
}

/// The words of a piece of HTML on one line, cut after so many characters.
pub(super) fn plain_text(html: &str, most: usize) -> String {
    one_line(&Tree::parse(html, None).words(), most)
}

/// A text with single blanks in place of all its white space.
fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests;
