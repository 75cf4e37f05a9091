//! A page as a tree that is safe to convert: bounded in depth, in nodes and in what its text can grow to.
//!
//! Only elements that Markdown can show are in it. Tags that are not closed end where their parent does: broken markup
//! need not come out as a browser shows it, but its words do.

use super::one_line;
use gantry_egress::Url;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};
use markup5ever::tendril::StrTendril;
use markup5ever::{Attribute, LocalName, QualName, ns};
use markup5ever_rcdom::{Node, NodeData};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Limit: elements within each other. Deeper ones lose their marks, not their words. The converter recurses, so this
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
const BLOCKS: [&str; 33] = [
    "address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "menu", "ol", "p", "pre", "section", "summary", "table", "ul",
];

const TABLE_PARTS: [&str; 8] = ["table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th"];

/// Elements within a line that have a mark in Markdown.
const MARKED: [&str; 9] = ["a", "b", "strong", "i", "em", "code", "kbd", "samp", "tt"];

/// The only attributes that are kept, so that a tag with a million others takes no memory.
const ATTRIBUTES: [&str; 5] = ["alt", "class", "href", "src", "start"];

/// A tag that opens an element.
#[derive(Default)]
struct Tag {
    name: LocalName,
    attributes: BTreeMap<&'static str, String>,
}

/// An element that is not closed yet.
struct Open {
    name: LocalName,
    node: Rc<Node>,
    /// How many lists and quotes it is in.
    indents: usize,
}

/// A page as it is converted, and the state of reading it.
pub(super) struct Tree {
    pub(super) document: Rc<Node>,
    pub(super) title: Option<String>,
    /// Whether reading stopped at a limit.
    pub(super) truncated: bool,
    address: Option<Url>,
    /// What links start from instead, where the page says so.
    base: Option<Url>,
    open: Vec<Open>,
    /// The element that is left out, and how many of that name are open.
    dropping: Option<(LocalName, usize)>,
    in_title: bool,
    /// The tag that is being read, and the attribute whose value comes next, if it is kept.
    tag: Tag,
    attribute: Option<&'static str>,
    started: Instant,
    nodes: usize,
    grown: usize,
}

impl Tree {
    /// Reads a page; with its address, links are kept.
    pub(super) fn parse(html: &str, address: Option<&Url>) -> Self {
        let mut tree = Self {
            document: Node::new(NodeData::Document),
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
            nodes: 0,
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
                self.tag = Tag { name: local_name(name), attributes: BTreeMap::new() };
            }
            CallbackEvent::AttributeName { name } => {
                let kept = ATTRIBUTES.into_iter().find(|kept| kept.as_bytes() == name);
                // Only the first one of a name counts.
                self.attribute = kept.filter(|kept| !self.tag.attributes.contains_key(kept));
                self.tag.attributes.extend(self.attribute.map(|name| (name, String::new())));
            }
            CallbackEvent::AttributeValue { value } => {
                let value = self.attribute.map(|name| (name, String::from_utf8_lossy(value).into_owned()));
                self.tag.attributes.extend(value);
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = std::mem::take(&mut self.tag);
                state = self.start(tag, self_closing);
            }
            CallbackEvent::EndTag { name } => self.end(&local_name(name)),
            CallbackEvent::String { value } => self.text(&String::from_utf8_lossy(value).replace('\0', "")),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        let is_full = self.nodes > NODES || self.grown > GROWN_BYTES;
        self.truncated = is_full || self.started.elapsed() > READING;
        if self.truncated { Some(ControlFlow::Break(())) } else { state.map(ControlFlow::Continue) }
    }

    /// The words without any marks.
    pub(super) fn words(&self) -> String {
        let (mut words, mut waiting) = (String::new(), vec![Rc::clone(&self.document)]);
        while let Some(node) = waiting.pop() {
            if let NodeData::Text { contents } = &node.data {
                words.push_str(&contents.borrow());
            } else if !super::is_element(&node, &MARKED) {
                words.push(' ');
            }
            waiting.extend(node.children.borrow().iter().rev().cloned());
        }
        words
    }

    /// Takes a tag that opens an element. The result is how the tokenizer has to read what comes next.
    fn start(&mut self, tag: Tag, self_closing: bool) -> Option<State> {
        let next = match &*tag.name {
            "script" => Some(State::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" | "noscript" => Some(State::RawText),
            "title" | "textarea" => Some(State::RcData),
            _ => None,
        };
        // An element closes itself only in foreign markup, which also has no raw text.
        let is_empty = &*tag.name == "svg" && self_closing;
        if let Some((dropped, open)) = &mut self.dropping {
            *open += usize::from(*dropped == tag.name && !is_empty);
            return next.filter(|_| &**dropped != "svg");
        }
        if &*tag.name == "title" && self.title.is_none() {
            self.title = Some(String::new());
            self.in_title = true;
        } else if &*tag.name == "title" || DROPPED.contains(&&*tag.name) {
            self.dropping = (!is_empty).then_some((tag.name, 1));
        } else if self.is_verbatim() {
            self.start_verbatim(&tag);
        } else {
            self.start_shown(&tag);
        }
        next
    }

    fn end(&mut self, name: &LocalName) {
        if let Some((dropped, open)) = &mut self.dropping {
            *open -= usize::from(dropped == name);
            if *open == 0 {
                self.dropping = None;
            }
            return;
        }
        self.in_title = false;
        // No tag within a cell closes what is around the table.
        let is_edge = |open: &str| match TABLE_PARTS.contains(&&**name) {
            true => open == "table",
            false => TABLE_PARTS.contains(&open),
        };
        let is_last = |open: &Open| open.name == *name || is_edge(&open.name);
        if let Some(at) = self.open.iter().rposition(is_last)
            && self.open.get(at).is_some_and(|open| open.name == *name)
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
        let name = &*tag.name;
        self.end_implied(name);
        match name {
            // Only the first one counts.
            "base" if self.base.is_none() => {
                let href = attribute(tag, "href").filter(|href| href.len() <= BASE_BYTES);
                self.base = href.and_then(|href| self.address.as_ref()?.join(href).ok());
            }
            "br" | "hr" => drop(self.element(name, Vec::new())),
            "img" => self.picture(tag),
            "a" => {
                let address = attribute(tag, "href").and_then(|href| self.absolute(href));
                self.push(tag, address.map(|url| make_attribute("href", &url)).into_iter().collect());
            }
            "ol" => {
                let start = attribute(tag, "start").filter(|start| start.len() <= 4);
                self.push(tag, start.map(|start| make_attribute("start", start)).into_iter().collect());
            }
            "pre" => {
                self.push(tag, language_class(tag));
                // The converter marks code only. No tag has this name, so only the end of the outer element closes it.
                if let Some(indents) = self.open.last().map(|open| open.indents) {
                    let node = self.element("code", Vec::new());
                    self.open.push(Open { name: LocalName::from(""), node, indents });
                }
            }
            _ if BLOCKS.contains(&name) || TABLE_PARTS.contains(&name) || MARKED.contains(&name) => {
                self.push(tag, Vec::new());
            }
            _ => {}
        }
    }

    /// Whether white space counts here, and marks do not.
    fn is_verbatim(&self) -> bool {
        self.open.last().is_some_and(|open| open.name.is_empty())
    }

    /// Within code, only the name of its language is of interest.
    fn start_verbatim(&mut self, tag: &Tag) {
        match (&*tag.name, self.open.last().map(|open| &open.node.data)) {
            ("br", _) => self.text("\n"),
            ("code", Some(NodeData::Element { attrs, .. })) => attrs.borrow_mut().extend(language_class(tag)),
            _ => {}
        }
    }

    /// Opens an element, unless it would be too deep.
    fn push(&mut self, tag: &Tag, attributes: Vec<Attribute>) {
        let shown = match &*tag.name {
            "kbd" | "samp" | "tt" => "code",
            "menu" => "ul",
            // There are no tables in the cells of a table.
            "table" if self.open.iter().any(|open| matches!(&*open.name, "td" | "th")) => "div",
            name => name,
        };
        let (_, outer) = self.place();
        let indents = outer + usize::from(matches!(shown, "li" | "blockquote"));
        if self.open.len() >= DEPTH || indents > INDENTS {
            return;
        }
        let node = self.element(shown, attributes);
        self.open.push(Open { name: tag.name.clone(), node, indents });
    }

    fn picture(&mut self, tag: &Tag) {
        let alt = one_line(attribute(tag, "alt").unwrap_or_default(), ALT_CHARS);
        match attribute(tag, "src").and_then(|src| self.absolute(src)) {
            Some(url) if !alt.is_empty() => {
                drop(self.element("img", vec![make_attribute("src", &url), make_attribute("alt", &alt)]));
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

    fn element(&mut self, name: &str, attributes: Vec<Attribute>) -> Rc<Node> {
        let node = Node::new(NodeData::Element {
            name: QualName::new(None, ns!(html), LocalName::from(name)),
            attrs: RefCell::new(attributes),
            template_contents: RefCell::new(None),
            mathml_annotation_xml_integration_point: false,
        });
        // The converter joins neighbours of one kind in quadratic time; with an empty text between them it does not.
        let (parent, _) = self.place();
        if parent.children.borrow().last().is_some_and(|last| matches!(last.data, NodeData::Element { .. })) {
            self.append(text_node(""), 0);
        }
        self.append(Rc::clone(&node), ELEMENT_BYTES);
        node
    }

    fn text(&mut self, text: &str) {
        if self.dropping.is_some() {
            return;
        }
        if self.in_title {
            return self.title.get_or_insert_default().push_str(text);
        }
        let (parent, _) = self.place();
        // The line end after the tag is not part of the code.
        let is_first = self.is_verbatim() && parent.children.borrow().is_empty();
        let text = if is_first { text.strip_prefix('\n').unwrap_or(text) } else { text };
        let room = self.grow(text.len());
        let (text, _) = text.split_at(text.floor_char_boundary(room));
        let last = parent.children.borrow().last().cloned();
        match last.as_ref().map(|last| &last.data) {
            Some(NodeData::Text { contents }) => contents.borrow_mut().push_slice(text),
            _ if text.is_empty() => {}
            _ => self.append(text_node(text), 0),
        }
    }

    /// Where the next node goes, and how far its lines are indented.
    fn place(&self) -> (Rc<Node>, usize) {
        let last = self.open.last().map(|open| (Rc::clone(&open.node), open.indents));
        last.unwrap_or_else(|| (Rc::clone(&self.document), 0))
    }

    fn append(&mut self, node: Rc<Node>, bytes: usize) {
        let (parent, _) = self.place();
        node.parent.set(Some(Rc::downgrade(&parent)));
        parent.children.borrow_mut().push(node);
        self.nodes += 1;
        self.grow(bytes);
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

fn text_node(text: &str) -> Rc<Node> {
    Node::new(NodeData::Text { contents: RefCell::new(StrTendril::from_slice(text)) })
}

fn local_name(name: &[u8]) -> LocalName {
    LocalName::from(&*String::from_utf8_lossy(name))
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attributes.get(name).map(String::as_str)
}

fn make_attribute(name: &str, value: &str) -> Attribute {
    let name = QualName::new(None, ns!(), LocalName::from(name));
    Attribute { name, value: StrTendril::from_slice(value) }
}

/// The language of code, as highlighters write it into the class.
fn language_class(tag: &Tag) -> Vec<Attribute> {
    let classes = attribute(tag, "class").unwrap_or_default().split_whitespace();
    let starts = ["language-", "lang-", "highlight-source-"];
    let named_so = |class: &str| starts.iter().find_map(|start| class.strip_prefix(start)).map(str::to_owned);
    let is_name = |name: &String| {
        name.len() <= 20 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+#-_".contains(&b))
    };
    let language = classes.filter_map(named_so).find(is_name);
    language.map(|language| make_attribute("class", &format!("language-{language}"))).into_iter().collect()
}
