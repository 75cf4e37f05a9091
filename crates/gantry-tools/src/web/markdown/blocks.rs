//! What makes lines: headings, paragraphs, lists, quotes, code, tables.

use super::entities::decoded;
use super::spans::{self, Kind, Spans};
use super::table::Table;
use super::tokens::{Tag, Token};
use super::{MARKDOWN_BYTES, TITLE_CHARS, one_line};
use gantry_egress::Url;

/// Lists and quotes within each other that are kept, and those that are indented.
const LEVELS: usize = 256;
const INDENTED: usize = 12;

/// Characters of the words in place of a picture.
const ALT_CHARS: usize = 200;

/// Elements that only help to find one's way on a page, or cannot be read.
const DROPPED: [&str; 8] = ["nav", "select", "datalist", "dialog", "object", "canvas", "audio", "video"];

#[derive(Debug)]
enum Level {
    Quote,
    Bullets,
    /// With the number of the next item.
    Numbers(usize),
}

/// Writes Markdown.
#[derive(Debug)]
pub(super) struct Writer {
    /// The page's own address, and what it says links start from.
    address: Url,
    base: Option<Url>,
    out: String,
    title: Option<String>,
    spans: Spans,
    levels: Vec<Level>,
    table: Table,
    /// The element that is left out, and how many of it are open.
    dropping: Option<(String, usize)>,
    /// White space counts.
    verbatim: bool,
    /// Within a heading, which is one line.
    heading: bool,
    /// Line ends that are due before the next word, and what the new line begins with.
    breaks: usize,
    lead: String,
}

impl Writer {
    pub(super) fn new(base: &Url) -> Self {
        Self {
            address: base.clone(),
            base: None,
            out: String::new(),
            title: None,
            spans: Spans::default(),
            levels: Vec::new(),
            table: Table::default(),
            dropping: None,
            verbatim: false,
            heading: false,
            breaks: 1,
            lead: String::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// The text and the title.
    pub(super) fn finish(mut self) -> (String, Option<String>) {
        if self.verbatim {
            self.close("pre");
        }
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        (self.out, self.title.filter(|title| !title.is_empty()))
    }

    pub(super) fn take(&mut self, token: Token<'_>) {
        if let Some((name, open)) = &mut self.dropping {
            match token {
                Token::Open(tag) if tag.name == *name => *open += 1,
                Token::Close(closed) if closed == *name => *open = open.saturating_sub(1),
                Token::Open(_) | Token::Close(_) | Token::Text(_) | Token::Title(_) => {}
            }
            if *open == 0 {
                self.dropping = None;
            }
            return;
        }
        match token {
            Token::Text(text) if self.verbatim => self.verbatim_text(&decoded(text)),
            Token::Text(text) => self.text(&decoded(text)),
            Token::Title(title) if self.title.is_none() => {
                self.title = Some(one_line(&decoded(title), TITLE_CHARS));
            }
            Token::Title(_) => {}
            Token::Open(tag) if DROPPED.contains(&tag.name.as_str()) => self.dropping = Some((tag.name, 1)),
            Token::Open(tag) if self.verbatim => self.open_verbatim(&tag),
            Token::Open(tag) => self.open(&tag),
            Token::Close(name) if self.verbatim && name != "pre" => {}
            Token::Close(name) => self.close(&name),
        }
    }

    fn open(&mut self, tag: &Tag<'_>) {
        if let Some(kind) = spans::kind(&tag.name) {
            return self.spans.open(kind);
        }
        match tag.name.as_str() {
            "a" => self.open_link(tag),
            "img" => self.picture(tag),
            // Only the first one counts.
            "base" if self.base.is_none() => {
                self.base = tag.attribute("href").and_then(|href| self.address.join(&href).ok());
            }
            "br" => self.break_line(1),
            "hr" => {
                self.break_line(2);
                self.word("---");
                self.break_line(2);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.open_heading(&tag.name),
            "ul" | "menu" => self.open_level(Level::Bullets),
            "ol" => {
                let first = tag.attribute("start").and_then(|start| start.parse().ok());
                self.open_level(Level::Numbers(first.unwrap_or(1)));
            }
            "blockquote" => self.open_level(Level::Quote),
            "li" => self.item(),
            "pre" if !self.is_one_line() => self.open_code(tag),
            "table" => {
                self.break_line(2);
                self.table.open();
            }
            "tr" if self.table.is_outermost() => self.end_row(),
            "td" | "th" if self.table.is_outermost() => self.cell(),
            name => self.edge(name),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(kind) = spans::kind(name) {
            return self.spans.close(&kind, &mut self.out);
        }
        match name {
            "a" => self.spans.close(&Kind::LINK, &mut self.out),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.heading = false;
                self.lead.clear();
                self.break_line(2);
            }
            "ul" | "menu" | "ol" => self.close_level(|level| !matches!(level, Level::Quote)),
            "blockquote" => self.close_level(|level| matches!(level, Level::Quote)),
            "pre" if self.verbatim => self.close_code(),
            "td" | "th" if self.table.is_outermost() => {
                self.table.end_cell(&mut self.out);
                self.spans.clear();
            }
            "tr" if self.table.is_outermost() => self.end_row(),
            "table" => {
                if self.table.is_outermost() {
                    self.end_row();
                }
                self.table.depth = self.table.depth.saturating_sub(1);
                self.break_line(2);
            }
            name => self.edge(name),
        }
    }

    /// The beginning or the end of an element about which there is nothing to say but whether a line ends there.
    fn edge(&mut self, name: &str) {
        match name {
            "p" | "section" | "article" | "figure" | "header" | "footer" | "main" | "aside" | "details"
            | "fieldset" | "form" | "dl" | "address" => self.break_line(2),
            _ if spans::is_inline(name) => {}
            "td" | "th" => self.blank(),
            _ => self.break_line(1),
        }
    }

    fn text(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.blank();
        }
        for (n, word) in text.split_whitespace().enumerate() {
            if n > 0 {
                self.out.push(' ');
            }
            match self.table.in_cell {
                true => self.word(&word.replace('|', "\\|")),
                false => self.word(word),
            }
        }
        if text.ends_with(char::is_whitespace) {
            self.blank();
        }
    }

    fn word(&mut self, word: &str) {
        self.start_line();
        self.spans.word_at(self.out.len());
        self.out.push_str(word);
    }

    /// One blank between words, none at the beginning of a line.
    fn blank(&mut self) {
        if self.breaks == 0 && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
    }

    /// Whether there are no line ends here.
    fn is_one_line(&self) -> bool {
        self.table.in_cell || self.heading
    }

    /// Line ends that come before the next word; two make a paragraph.
    fn break_line(&mut self, breaks: usize) {
        if self.is_one_line() {
            self.blank();
        } else {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// Writes the line ends that are due, and what the line begins with.
    fn start_line(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        if breaks > 0 {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            if !self.out.is_empty() {
                self.out.extend(std::iter::repeat_n('\n', breaks));
            }
            // The mark of an item stands where the lines below it are indented.
            let outer = if self.lead.ends_with(". ") || self.lead.starts_with("- ") { 1 } else { 0 };
            self.out.push_str(&self.indent(outer));
        }
        self.out.push_str(&std::mem::take(&mut self.lead));
    }

    /// What lines begin with here, without so many of the innermost levels.
    fn indent(&self, without: usize) -> String {
        let shown = self.levels.len().saturating_sub(without).min(INDENTED);
        let levels = self.levels.iter().take(shown);
        levels.map(|level| if matches!(level, Level::Quote) { "> " } else { "  " }).collect()
    }

    fn open_link(&mut self, tag: &Tag<'_>) {
        self.spans.close(&Kind::LINK, &mut self.out);
        if let Some(url) = tag.attribute("href").and_then(|href| self.absolute(&href)) {
            self.spans.open(Kind::Link(url));
        }
    }

    fn picture(&mut self, tag: &Tag<'_>) {
        let alt = one_line(&tag.attribute("alt").unwrap_or_default(), ALT_CHARS);
        if alt.is_empty() {
            return;
        }
        match tag.attribute("src").and_then(|src| self.absolute(&src)) {
            Some(url) => self.word(&format!("![{alt}]({url})")),
            None => self.word(&alt),
        }
    }

    /// An address that can be followed from anywhere.
    fn absolute(&self, href: &str) -> Option<String> {
        let url = self.base.as_ref().unwrap_or(&self.address).join(href.trim()).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.into())
    }

    fn open_heading(&mut self, name: &str) {
        self.break_line(2);
        if self.is_one_line() {
            return;
        }
        let level = name.bytes().last().map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
        self.lead = format!("{} ", "#".repeat(level));
        self.heading = true;
    }

    fn open_level(&mut self, level: Level) {
        let in_list = self.levels.iter().any(|level| !matches!(level, Level::Quote));
        self.break_line(if in_list && !matches!(level, Level::Quote) { 1 } else { 2 });
        if self.levels.len() < LEVELS {
            self.levels.push(level);
        }
    }

    fn close_level(&mut self, is_it: impl Fn(&Level) -> bool) {
        if let Some(at) = self.levels.iter().rposition(is_it) {
            self.levels.truncate(at);
        }
        self.lead.clear();
        self.break_line(if self.levels.is_empty() { 2 } else { 1 });
    }

    fn item(&mut self) {
        self.break_line(1);
        if self.is_one_line() {
            return;
        }
        self.lead = match self.levels.last_mut() {
            Some(Level::Numbers(next)) => {
                let number = *next;
                *next = next.saturating_add(1);
                format!("{number}. ")
            }
            Some(Level::Bullets) => "- ".to_owned(),
            Some(Level::Quote) | None => String::new(),
        };
    }

    fn cell(&mut self) {
        self.table.end_cell(&mut self.out);
        self.spans.clear();
        let (first_of_row, first_of_table) = self.table.is_at_start();
        if first_of_row {
            self.breaks = if first_of_table { 2 } else { 1 };
            self.word("|");
        }
        self.out.push(' ');
        self.table.in_cell = true;
    }

    fn end_row(&mut self) {
        let line = self.indent(0);
        if self.table.end_row(&mut self.out, &line) {
            self.breaks = self.breaks.max(1);
        }
        self.spans.clear();
    }

    fn open_code(&mut self, tag: &Tag<'_>) {
        self.break_line(2);
        self.word("```");
        self.out.push_str(&language(tag));
        self.out.push('\n');
        self.out.push_str(&self.indent(0));
        self.verbatim = true;
    }

    /// Within code, only the name of its language is of interest.
    fn open_verbatim(&mut self, tag: &Tag<'_>) {
        let fence = format!("```\n{}", self.indent(0));
        match tag.name.as_str() {
            "code" if self.out.ends_with(&fence) => {
                let end = self.out.len().saturating_sub(fence.len() - 3);
                self.out.truncate(end);
                self.out.push_str(&language(tag));
                self.out.push('\n');
                self.out.push_str(&self.indent(0));
            }
            "br" => self.verbatim_text("\n"),
            _ => {}
        }
    }

    fn verbatim_text(&mut self, text: &str) {
        let indent = self.indent(0);
        let opened = self.out.ends_with(&format!("\n{indent}"));
        // The line end after the tag is not part of the code.
        let text = if opened { text.strip_prefix('\n').unwrap_or(text) } else { text };
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                self.out.push('\n');
                self.out.push_str(&indent);
            }
            self.out.push_str(line);
            if self.out.len() > MARKDOWN_BYTES {
                return;
            }
        }
    }

    fn close_code(&mut self) {
        self.verbatim = false;
        let indent = self.indent(0);
        self.out.truncate(self.out.trim_end().len());
        self.out.push('\n');
        self.out.push_str(&indent);
        self.out.push_str("```");
        self.break_line(2);
    }
}

/// The language of code, as highlighters write it into the class.
fn language(tag: &Tag<'_>) -> String {
    let class = tag.attribute("class").unwrap_or_default();
    let named = class.split_whitespace().find_map(|class| {
        ["language-", "lang-", "highlight-source-"].iter().find_map(|start| class.strip_prefix(start))
    });
    let is_name = |name: &&str| {
        name.len() <= 20 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+#-_".contains(&b))
    };
    named.filter(is_name).unwrap_or_default().to_owned()
}
