//! HTML as Markdown, for an agent to read.
//!
//! `html5gum` reads the tags, `htmd` writes the Markdown. Between them stands a tree of our own making with limits: the
//! tree that `htmd` has `html5ever` build takes quadratic time on nested tags and multiplies unclosed ones (9 KB become
//! 480,000 nodes), and `htmd` recurses and pads tables (210 KB become 200 MB), so a hostile page could stop the process.

mod tree;

use gantry_egress::Url;
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::options::{BulletListMarker, HrStyle, Options};
use htmd::{Element, HtmlToMarkdown, Node};
use markup5ever::Attribute;
use markup5ever_rcdom::NodeData;
use std::rc::Rc;
use std::sync::LazyLock;
use tree::Tree;

/// Limit: bytes of Markdown. Addresses that become absolute can make it longer than the page was.
const MARKDOWN_BYTES: usize = super::page::BODY_BYTES;

/// Limit: characters of a title.
const TITLE_CHARS: usize = 300;

/// A page in Markdown.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) title: Option<String>,
    /// Whether the page was cut at a limit.
    pub(super) truncated: bool,
}

static CONVERTER: LazyLock<HtmlToMarkdown> = LazyLock::new(|| {
    let options = Options {
        hr_style: HrStyle::Dashes,
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let builder = HtmlToMarkdown::builder().options(options);
    builder
        .add_handler(vec!["a"], |handlers: &dyn Handlers, element: Element<'_>| link(handlers, &element))
        .add_handler(vec!["table"], |handlers: &dyn Handlers, element: Element<'_>| table(handlers, &element))
        .build()
});

/// Converts a page that is at this address.
pub(super) fn convert(html: &str, url: &Url) -> Page {
    let Tree { document, title, mut truncated, .. } = Tree::parse(html, Some(url));
    let mut text = CONVERTER.tree_to_markdown(&document);
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

/// A link with words in it; the tree has made its address absolute.
fn link(handlers: &dyn Handlers, element: &Element<'_>) -> Option<HandlerResult> {
    let inner = handlers.walk_children(element.node);
    let words = inner.content.trim();
    match element.attrs {
        [] => Some(inner),
        _ if words.is_empty() => None,
        [Attribute { value, .. }, ..] => {
            let address = value.replace('(', "%28").replace(')', "%29");
            let blank = if inner.content.ends_with(char::is_whitespace) { " " } else { "" };
            Some(format!("[{words}]({address}){blank}").into())
        }
    }
}

/// A table whose columns are not padded to one width. Cells with several lines are paragraphs, unless the table has
/// headings: without, it is mostly there for the layout.
fn table(handlers: &dyn Handlers, element: &Element<'_>) -> Option<HandlerResult> {
    let text_of = |node: &Rc<Node>| {
        handlers.handle(node).map_or_else(String::new, |done| done.content.trim().to_owned())
    };
    let (mut paragraphs, mut rows, mut has_headings) = (Vec::new(), Vec::new(), false);
    for child in rows_and_others(element.node) {
        if !is_element(&child, &["tr"]) {
            paragraphs.push(text_of(&child));
            continue;
        }
        let cells = child.children.borrow();
        has_headings |= cells.iter().any(|cell| is_element(cell, &["th"]));
        let cells: Vec<String> =
            cells.iter().filter(|cell| is_element(cell, &["td", "th"])).map(text_of).collect();
        rows.push(cells);
    }
    rows.retain(|cells| cells.iter().any(|cell| !cell.is_empty()));
    if !has_headings && rows.iter().flatten().any(|cell| cell.contains('\n')) {
        paragraphs.extend(rows.into_iter().flatten());
        rows = Vec::new();
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
    Some(format!("\n\n{}\n\n", paragraphs.join("\n\n")).into())
}

/// What a table and its sections consist of.
fn rows_and_others(table: &Node) -> Vec<Rc<Node>> {
    let sections = ["thead", "tbody", "tfoot"];
    let parts = table.children.borrow();
    parts
        .iter()
        .flat_map(|part| {
            if is_element(part, &sections) { part.children.borrow().clone() } else { vec![Rc::clone(part)] }
        })
        .collect()
}

fn is_element(node: &Node, names: &[&str]) -> bool {
    matches!(&node.data, NodeData::Element { name, .. } if names.contains(&&*name.local))
}

#[cfg(test)]
mod tests;
