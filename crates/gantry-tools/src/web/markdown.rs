//! HTML as Markdown, for reading.
//!
//! A page is read as a row of tags and text, never as a tree: no depth can exhaust the stack, no size takes more than
//! linear time, and tags that nobody closed do no harm. What browsers would make of broken markup does not matter here;
//! the words, headings, links, lists, code and tables do.

mod blocks;
mod entities;
mod spans;
mod table;
mod tokens;

use blocks::Writer;
use gantry_egress::Url;
use tokens::Tokens;

pub(super) use entities::decoded;

/// Bytes of Markdown. Addresses that become absolute can make it longer than the page was.
const MARKDOWN_BYTES: usize = super::answer::BODY_BYTES;

/// Characters of a title.
const TITLE_CHARS: usize = 300;

/// A page in Markdown.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) title: Option<String>,
    pub(super) truncated: bool,
}

/// Converts a page that is at this address.
pub(super) fn convert(html: &str, url: &Url) -> Page {
    let mut writer = Writer::new(url);
    let mut truncated = false;
    for token in Tokens::new(html) {
        writer.take(token);
        if writer.len() > MARKDOWN_BYTES {
            truncated = true;
            break;
        }
    }
    let (text, title) = writer.finish();
    Page { text, title, truncated }
}

/// The words of a piece of HTML on one line, cut after so many characters.
pub(super) fn plain(html: &str, most: usize) -> String {
    let mut words = String::new();
    for token in Tokens::new(html) {
        match token {
            tokens::Token::Text(text) => words.push_str(&decoded(text)),
            tokens::Token::Open(tag) if !spans::is_inline(&tag.name) => words.push(' '),
            tokens::Token::Open(_) | tokens::Token::Close(_) | tokens::Token::Title(_) => {}
        }
    }
    one_line(&words, most)
}

/// A text with single blanks in place of all its white space.
fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests;
