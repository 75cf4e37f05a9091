//! What stands within a line: links, emphasis, code.
//!
//! A span is marked when it closes, because only then it is known whether there is anything in it.

/// Spans that may be open at once; more are read as plain text.
const SPANS: usize = 32;

/// Characters of the text of a link.
const LINK_CHARS: usize = 500;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Link(String),
    Strong,
    Emphasis,
    Code,
}

impl Kind {
    /// Any link, to close one with.
    pub(super) const LINK: Self = Self::Link(String::new());

    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The kind of span that an element is, apart from links.
pub(super) fn kind(name: &str) -> Option<Kind> {
    match name {
        "strong" | "b" => Some(Kind::Strong),
        "em" | "i" | "cite" | "dfn" | "var" => Some(Kind::Emphasis),
        "code" | "kbd" | "samp" | "tt" => Some(Kind::Code),
        _ => None,
    }
}

/// Whether words go on across the edge of an element.
pub(super) fn is_inline(name: &str) -> bool {
    kind(name).is_some()
        || matches!(
            name,
            "a" | "span"
                | "abbr"
                | "mark"
                | "small"
                | "big"
                | "sub"
                | "sup"
                | "u"
                | "s"
                | "del"
                | "ins"
                | "q"
                | "font"
        )
        || matches!(
            name,
            "time"
                | "label"
                | "bdi"
                | "bdo"
                | "data"
                | "wbr"
                | "ruby"
                | "rb"
                | "rt"
                | "rp"
                | "img"
                | "input"
                | "button"
        )
        || matches!(name, "nobr" | "strike" | "acronym" | "picture" | "source" | "meta" | "link" | "base")
}

/// The spans that are open, each with where its first word begins, once there is one.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<(Kind, Option<usize>)>);

impl Spans {
    pub(super) fn open(&mut self, kind: Kind) {
        if self.0.len() < SPANS {
            self.0.push((kind, None));
        }
    }

    /// A word begins here.
    pub(super) fn word_at(&mut self, place: usize) {
        for (_, start) in self.0.iter_mut().rev().take_while(|(_, start)| start.is_none()) {
            *start = Some(place);
        }
    }

    /// Forgets all spans: what is written stays as it is.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Closes the innermost span of a kind, and those within it, by marking its text.
    pub(super) fn close(&mut self, kind: &Kind, text: &mut String) {
        let Some(at) = self.0.iter().rposition(|(open, _)| open.is_like(kind)) else { return };
        let Some((kind, Some(start))) = self.0.drain(at..).next() else { return };
        let Some(inner) = text.get(start..) else { return };
        let words = inner.trim_end();
        let blank = if words.len() < inner.len() { " " } else { "" };
        let marked = match kind {
            Kind::Link(href) => format!("[{}]({href}){blank}", super::one_line(words, LINK_CHARS)),
            // A mark does not reach over lines.
            Kind::Strong | Kind::Emphasis | Kind::Code if words.contains('\n') => return,
            Kind::Strong => format!("**{words}**{blank}"),
            Kind::Emphasis => format!("_{words}_{blank}"),
            Kind::Code if words.contains('`') => format!("``{words}``{blank}"),
            Kind::Code => format!("`{words}`{blank}"),
        };
        text.truncate(start);
        text.push_str(&marked);
    }
}
