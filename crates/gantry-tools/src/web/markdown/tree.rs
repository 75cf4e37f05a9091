//! A page as a tree that is safe to convert: bounded in depth, in nodes and in what its text can grow to.
//!
//! Only elements that Markdown can show are in it. Tags that are not closed end where their parent does: broken markup
//! need not come out as a browser shows it, but its words do.

use super::one_line;
use gantry_egress::Url;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Limit: elements within each other. Deeper ones lose their marks, not their words. The writer recurses, so this
/// keeps it from exhausting the stack.
const DEPTH: usize = 256;

/// Limit: lists and quotes within each other, likewise.
const INDENTS: usize = 12;

/// Limit: nodes of a page.
const NODES: usize = 300_000;

/// Limit: bytes that the Markdown of a page can come to, estimated high.
const GROWN_BYTES: usize = 32 * 1024 * 1024;

/// What one level of a list or a quote adds to a line, and what an element adds, at most.
const INDENT_BYTES: usize = 8;
const ELEMENT_BYTES: usize = 16;

/// Limit: how long a page is read. The tokenizer takes linear time; each tag looks through the elements that are open.
const READING: Duration = Duration::from_secs(5);

/// Limit: bytes of the address that a page names for its links to start from.
const BASE_BYTES: usize = 8192;

/// Limit: characters of the words in place of a picture.
const ALT_CHARS: usize = 200;

/// Elements that only help to find one's way on a page, or cannot be read.
const DROPPED: [&str; 17] = [
    "audio", "canvas", "datalist", "dialog", "iframe", "nav", "noembed", "noframes", "noscript", "object",
    "script", "select", "style", "svg", "template", "textarea", "video",
];

/// Elements that begin a paragraph, and thereby end one.
#[rustfmt::skip]
pub(super) const BLOCKS: [&str; 33] = [
    "address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "menu", "ol", "p", "pre", "section", "summary", "table", "ul",
];

pub(super) const TABLE_PARTS: [&str; 8] = ["table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th"];

/// Elements within a line that have a mark in Markdown.
const MARKED: [&str; 9] = ["a", "b", "strong", "i", "em", "code", "kbd", "samp", "tt"];

/// The only attributes that are kept, so that a tag with a million others takes no memory.
const ATTRIBUTES: [&str; 5] = ["alt", "class", "href", "src", "start"];

pub(super) type NodeId = usize;

/// The page itself, which is the first node.
pub(super) const DOCUMENT: NodeId = 0;

pub(super) enum Node {
    Text(String),
    Element(Element),
}

/// An element that Markdown can show.
pub(super) struct Element {
    pub(super) name: &'static str,
    /// The one attribute that it is shown with: the address of a link or a picture, the first number of a list, the
    /// language of code. Empty if there is none.
    pub(super) attribute: String,
    pub(super) children: Vec<NodeId>,
}

#[derive(Default)]
struct Tag {
    name: String,
    attributes: BTreeMap<&'static str, String>,
}

/// An element that is not closed yet.
struct Open {
    name: String,
    node: NodeId,
    /// How many lists and quotes it is in.
    indents: usize,
}

/// A page as it is converted, and the state of reading it.
pub(super) struct Tree {
    nodes: Vec<Node>,
    pub(super) title: Option<String>,
    /// Whether reading stopped at a limit.
    pub(super) truncated: bool,
    address: Option<Url>,
    /// What links start from instead, where the page says so.
    base: Option<Url>,
    open: Vec<Open>,
    /// The element that is left out, and how many of that name are open.
    dropping: Option<(String, usize)>,
    in_title: bool,
    /// The tag that is being read, and the attribute whose value comes next, if it is kept.
    tag: Tag,
    attribute: Option<&'static str>,
    started: Instant,
    grown: usize,
}

impl Tree {
    /// Reads a page; with its address, links are kept.
    pub(super) fn parse(html: &str, address: Option<&Url>) -> Self {
        let mut tree = Self {
            nodes: vec![Node::Element(Element { name: "", attribute: String::new(), children: Vec::new() })],
            title: None,
            truncated: false,
            address: address.cloned(),
            base: None,
            open: Vec::new(),
            dropping: None,
            in_title: false,
            tag: Tag::default(),
            attribute: None,
            started: Instant::now(),
            grown: 0,
        };
        let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| tree.take(&event));
        let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
        while let Some(Ok(ControlFlow::Continue(state))) = tokenizer.next() {
            tokenizer.set_state(state);
        }
        drop(tokenizer);
        tree
    }

    /// Takes a part of the page. The result is how the tokenizer has to read what comes next, where that changes, or
    /// that it has to stop.
    fn take(&mut self, event: &CallbackEvent<'_>) -> Option<ControlFlow<(), State>> {
        let mut state = None;
        match *event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Tag { name: text_of(name), attributes: BTreeMap::new() };
            }
            CallbackEvent::AttributeName { name } => {
                let kept = ATTRIBUTES.into_iter().find(|kept| kept.as_bytes() == name);
                // Only the first one of a name counts.
                self.attribute = kept.filter(|kept| !self.tag.attributes.contains_key(kept));
                self.tag.attributes.extend(self.attribute.map(|name| (name, String::new())));
            }
            CallbackEvent::AttributeValue { value } => {
                let value = self.attribute.map(|name| (name, text_of(value)));
                self.tag.attributes.extend(value);
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                state = self.start(tag, self_closing);
            }
            CallbackEvent::EndTag { name } => self.end(&text_of(name)),
            CallbackEvent::String { value } => self.text(&text_of(value).replace('\0', "")),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        let is_full = self.nodes.len() > NODES || self.grown > GROWN_BYTES;
        self.truncated = is_full || self.started.elapsed() > READING;
        if self.truncated { Some(ControlFlow::Break(())) } else { state.map(ControlFlow::Continue) }
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The element of this id; none if it is a text.
    pub(super) fn element(&self, id: NodeId) -> Option<&Element> {
        match self.nodes.get(id) {
            Some(Node::Element(element)) => Some(element),
            Some(Node::Text(_)) | None => None,
        }
    }

    /// The words without any marks.
    pub(super) fn words(&self) -> String {
        let (mut words, mut waiting) = (String::new(), vec![DOCUMENT]);
        while let Some(node) = waiting.pop().and_then(|id| self.node(id)) {
            match node {
                Node::Text(text) => words.push_str(text),
                Node::Element(element) => {
                    if !MARKED.contains(&element.name) {
                        words.push(' ');
                    }
                    waiting.extend(element.children.iter().rev());
                }
            }
        }
        words
    }

    /// Takes a tag that opens an element. The result is how the tokenizer has to read what comes next.
    fn start(&mut self, tag: Tag, self_closing: bool) -> Option<State> {
        let next = match tag.name.as_str() {
            "script" => Some(State::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" | "noscript" => Some(State::RawText),
            "title" | "textarea" => Some(State::RcData),
            _ => None,
        };
        // An element closes itself only in foreign markup, which also has no raw text.
        let is_empty = tag.name == "svg" && self_closing;
        if let Some((dropped, open)) = &mut self.dropping {
            *open += usize::from(*dropped == tag.name && !is_empty);
            return next.filter(|_| dropped != "svg");
        }
        if tag.name == "title" && self.title.is_none() {
            self.title = Some(String::new());
            self.in_title = true;
        } else if tag.name == "title" || DROPPED.contains(&tag.name.as_str()) {
            self.dropping = (!is_empty).then_some((tag.name, 1));
        } else if self.is_verbatim() {
            self.start_verbatim(&tag);
        } else {
            self.start_shown(&tag);
        }
        next
    }

    fn end(&mut self, name: &str) {
        if let Some((dropped, open)) = &mut self.dropping {
            *open -= usize::from(dropped == name);
            if *open == 0 {
                self.dropping = None;
            }
            return;
        }
        self.in_title = false;
        // No tag within a cell closes what is around the table.
        let is_edge = |open: &str| match TABLE_PARTS.contains(&name) {
            true => open == "table",
            false => TABLE_PARTS.contains(&open),
        };
        let is_last = |open: &Open| open.name == name || is_edge(&open.name);
        if let Some(at) = self.open.iter().rposition(is_last)
            && self.open.get(at).is_some_and(|open| open.name == name)
        {
            self.open.truncate(at);
        }
    }

    /// Ends the elements that cannot go on when this one begins, up to the edges that it does not reach beyond.
    fn end_implied(&mut self, name: &str) {
        let (ended, edges): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu", "table", "td", "th"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl", "table", "td", "th"]),
            "td" | "th" => (&["td", "th", "caption"], &["table"]),
            "tr" => (&["tr", "caption"], &["table"]),
            "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot", "tr", "caption"], &["table"]),
            "a" => (&["a"], &TABLE_PARTS),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => (&["p", "h1", "h2", "h3", "h4", "h5", "h6"], &BLOCKS),
            _ if BLOCKS.contains(&name) => (&["p"], &BLOCKS),
            _ => return,
        };
        let mut outermost = None;
        for (at, open) in self.open.iter().enumerate().rev() {
            if ended.contains(&&*open.name) {
                outermost = Some(at);
            } else if edges.contains(&&*open.name) {
                break;
            }
        }
        self.open.truncate(outermost.unwrap_or(self.open.len()));
    }

    fn start_shown(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        self.end_implied(name);
        match name {
            // Only the first one counts.
            "base" if self.base.is_none() => {
                let href = attribute(tag, "href").filter(|href| href.len() <= BASE_BYTES);
                self.base = href.and_then(|href| self.address.as_ref()?.join(href).ok());
            }
            "br" | "hr" => {
                let name = if name == "br" { "br" } else { "hr" };
                self.add(name, String::new());
            }
            "img" => self.picture(tag),
            "a" => {
                let address = attribute(tag, "href").and_then(|href| self.absolute(href));
                self.push(tag, address.unwrap_or_default());
            }
            "ol" => {
                let start = attribute(tag, "start").filter(|start| start.len() <= 4);
                self.push(tag, start.unwrap_or_default().to_owned());
            }
            "pre" => {
                // No tag has an empty name, so only the end of the element itself closes what is verbatim.
                if let Some(node) = self.push(tag, language(tag)) {
                    let (_, indents) = self.place();
                    self.open.push(Open { name: String::new(), node, indents });
                }
            }
            _ => {
                self.push(tag, String::new());
            }
        }
    }

    /// Whether white space counts here, and marks do not.
    fn is_verbatim(&self) -> bool {
        self.open.last().is_some_and(|open| open.name.is_empty())
    }

    /// Within code, only the name of its language is of interest.
    fn start_verbatim(&mut self, tag: &Tag) {
        match tag.name.as_str() {
            "br" => self.text("\n"),
            "code" => {
                let (place, _) = self.place();
                if let Some(Node::Element(code)) = self.nodes.get_mut(place)
                    && code.attribute.is_empty()
                {
                    code.attribute = language(tag);
                }
            }
            _ => {}
        }
    }

    /// Opens an element that Markdown can show, unless it would be too deep.
    fn push(&mut self, tag: &Tag, attribute: String) -> Option<NodeId> {
        let shown = match tag.name.as_str() {
            "kbd" | "samp" | "tt" => Some("code"),
            "menu" => Some("ul"),
            // There are no tables in the cells of a table.
            "table" if self.open.iter().any(|open| matches!(open.name.as_str(), "td" | "th")) => Some("div"),
            name => BLOCKS.into_iter().chain(TABLE_PARTS).chain(MARKED).find(|known| *known == name),
        }?;
        let (_, outer) = self.place();
        let indents = outer + usize::from(matches!(shown, "li" | "blockquote"));
        if self.open.len() >= DEPTH || indents > INDENTS {
            return None;
        }
        let node = self.add(shown, attribute);
        self.open.push(Open { name: tag.name.clone(), node, indents });
        Some(node)
    }

    fn picture(&mut self, tag: &Tag) {
        let alt = one_line(attribute(tag, "alt").unwrap_or_default(), ALT_CHARS);
        match attribute(tag, "src").and_then(|src| self.absolute(src)) {
            Some(url) if !alt.is_empty() => {
                let picture = self.add("img", url);
                let alt = self.make(Node::Text(alt));
                self.adopt(picture, alt);
            }
            Some(_) | None => self.text(&alt),
        }
    }

    /// An address that can be followed from anywhere.
    fn absolute(&mut self, href: &str) -> Option<String> {
        let url = self.base.as_ref().or(self.address.as_ref())?.join(href.trim()).ok()?;
        self.grown += url.as_str().len();
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.into())
    }

    /// Adds an element where the page is.
    fn add(&mut self, name: &'static str, attribute: String) -> NodeId {
        let node = self.make(Node::Element(Element { name, attribute, children: Vec::new() }));
        self.adopt(self.place().0, node);
        self.grow(ELEMENT_BYTES);
        node
    }

    fn make(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn adopt(&mut self, parent: NodeId, child: NodeId) {
        if let Some(Node::Element(parent)) = self.nodes.get_mut(parent) {
            parent.children.push(child);
        }
    }

    fn text(&mut self, text: &str) {
        if self.dropping.is_some() {
            return;
        }
        if self.in_title {
            return self.title.get_or_insert_default().push_str(text);
        }
        let (parent, _) = self.place();
        let last = self.element(parent).and_then(|parent| parent.children.last().copied());
        // The line end after the tag is not part of the code.
        let is_first = self.is_verbatim() && last.is_none();
        let text = if is_first { text.strip_prefix('\n').unwrap_or(text) } else { text };
        let room = self.grow(text.len());
        let (text, _) = text.split_at(text.floor_char_boundary(room));
        match last.and_then(|last| self.nodes.get_mut(last)) {
            Some(Node::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => {
                let node = self.make(Node::Text(text.to_owned()));
                self.adopt(parent, node);
            }
        }
    }

    /// Where the next node goes, and how far its lines are indented.
    fn place(&self) -> (NodeId, usize) {
        self.open.last().map_or((DOCUMENT, 0), |open| (open.node, open.indents))
    }

    /// Counts what these bytes come to when each of them is a line. The result is how many of them there is room for.
    fn grow(&mut self, bytes: usize) -> usize {
        let (_, indents) = self.place();
        let each = 1 + INDENT_BYTES * indents;
        let room = GROWN_BYTES.saturating_sub(self.grown) / each;
        self.grown = self.grown.saturating_add(bytes.saturating_mul(each));
        room
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attributes.get(name).map(String::as_str)
}

/// The language of code, as highlighters write it into the class.
fn language(tag: &Tag) -> String {
    let classes = attribute(tag, "class").unwrap_or_default().split_whitespace();
    let starts = ["language-", "lang-", "highlight-source-"];
    let mut names = classes.filter_map(|class| starts.iter().find_map(|start| class.strip_prefix(start)));
    let is_name = |name: &&str| {
        name.len() <= 20 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+#-_".contains(&b))
    };
    names.find(is_name).unwrap_or_default().to_owned()
}
