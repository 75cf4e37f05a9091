//! Every key of the configuration: its type, default, meaning and example, once.
//!
//! `check` judges a file by this table, `build` takes the defaults from it, and `reference` prints it. A key that is
//! promised for later is listed as [`Kind::Later`]: it is refused by name, because a setting that is quietly ignored
//! may be the one that was meant to forbid something. What other programs write into the same files, and what forbids
//! nothing, is [`Kind::Inert`].

mod keys;

pub(super) use keys::{AGENT_JSON, FRONT_MATTER, ROOT, TOOLS};

use super::text::Rule;

/// One key of a section.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Fallback,
    pub(super) meaning: &'static str,
    /// A value as YAML would write it in flow style.
    pub(super) example: &'static str,
}

/// What a key holds.
#[derive(Debug)]
pub(super) enum Kind {
    /// A group with these keys.
    Section(&'static [Key]),
    /// A group that maps names of the user's choice to groups with these keys.
    Named(&'static [Key]),
    /// A group that maps the ids of MCP servers to groups with these keys. A variable that is not set switches off the
    /// server that needs it, and nothing else.
    Servers(&'static [Key]),
    /// A group that maps the names of REST services, of which the rule says what they look like, to groups with these
    /// keys. A variable that is not set switches off the one that needs it, and nothing else.
    Services(Rule, &'static [Key]),
    /// A group that maps the names of security schemes to groups with some of these keys.
    Credentials(&'static [Key]),
    /// A group that maps the ids of providers to groups whose keys depend on their `kind`.
    Catalogue(&'static Catalogue),
    /// A group that maps the names of projects to groups with these keys.
    Projects(&'static [Key]),
    /// A list of patterns, or a group with these keys.
    AgentTools(&'static [Key]),
    /// A group that maps names of the user's choice to tools.
    Aliases,
    /// A list of groups with these keys; their `name` is unique.
    Items(&'static [Key]),
    /// A group that maps tool names to values.
    PerTool(&'static Kind),
    /// A group that maps operations of an API to values.
    PerOperation(&'static Kind),
    /// A group of names and texts that no message ever shows; the rule is for the names.
    Secrets(Rule),
    Flag,
    Number(Number),
    Text(Rule),
    /// A text that stays as it is written: `${…}` in it is no variable.
    Verbatim,
    /// A JSON object that stays as it is written.
    Object,
    /// Any value; variables are put into its texts.
    Json,
    /// A list of texts, with at least so many of them.
    Texts(Rule, usize),
    /// The name of a queue of this file.
    Queue,
    /// The same, or null for none. TOML has no null, so false is accepted too.
    QueueOrNone,
    /// One of these words; the second list names words of later versions.
    Choice(&'static [&'static str], &'static [&'static str]),
    /// A list of these words.
    Choices(&'static [&'static str]),
    /// `all`, `none` or a list of patterns.
    Gated,
    /// A list of argument objects.
    Arguments,
    /// Promised for a later version.
    Later,
    /// Written by others into the same file. It is named in a warning, in these words.
    Inert(&'static str),
    /// Written by others to take something away, which nothing here does: only true, which takes nothing, is read. The
    /// words say what to do.
    Granted(&'static str),
    /// Known and never taken here; the words say why, and what to do.
    Refused(&'static str),
}

/// The keys of an entry of the catalogue.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// Of Gantry's own workspace tools.
    pub(super) own: &'static [Key],
    pub(super) builtin: &'static [Key],
    pub(super) mcp: &'static [Key],
}

/// A whole number, its unit and its bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub(super) unit: Unit,
    pub(super) zero: Zero,
    pub(super) max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Plain,
    Milliseconds,
    Bytes,
    Tokens,
    Megabytes,
    Seconds,
}

/// What 0 means. It is never "without limit".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero {
    Default,
    Off,
    Refused,
}

/// What holds when a key is absent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fallback {
    Required,
    Flag(bool),
    Number(u64),
    Text(&'static str),
    /// No value of its own; these words say what happens instead.
    Absent(&'static str),
}

impl Kind {
    /// The type in the words of messages and of the reference page.
    pub(super) fn noun(&self) -> String {
        match self {
            Self::Section(_)
            | Self::Named(_)
            | Self::Servers(_)
            | Self::Services(..)
            | Self::Catalogue(_)
            | Self::Projects(_) => "a group of keys".to_owned(),
            Self::Credentials(_) => "a group of security schemes and what is shown for each".to_owned(),
            Self::AgentTools(keys) => {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                format!("a list of tool names and globs, or a group with {}", names.join(", "))
            }
            Self::Aliases => "a group of names and tools".to_owned(),
            Self::Items(_) => "a list of groups of keys".to_owned(),
            Self::PerTool(_) => "a group of tool names and values".to_owned(),
            Self::PerOperation(_) => "a group of operations and values".to_owned(),
            Self::Secrets(rule) => format!("a group of texts, each under {}", rule.noun()),
            Self::Flag => "true or false".to_owned(),
            Self::Number(number) => number.unit.noun().to_owned(),
            Self::Text(rule) => rule.noun().to_owned(),
            Self::Verbatim => Rule::Any.noun().to_owned(),
            Self::Object => "a JSON object".to_owned(),
            Self::Json => "any value".to_owned(),
            Self::Texts(rule, 0) => format!("a list, each {}", rule.noun()),
            Self::Texts(rule, min) => format!("a list of at least {min}, each {}", rule.noun()),
            Self::Queue => "the name of a queue".to_owned(),
            Self::QueueOrNone => "the name of a queue, or null".to_owned(),
            Self::Choice(words, _) => words.join(" or "),
            Self::Choices(words) => format!("a list, each {}", words.join(" or ")),
            Self::Gated => r#""all", "none" or a list of tool names"#.to_owned(),
            Self::Arguments => "a list of argument objects".to_owned(),
            Self::Later | Self::Inert(_) | Self::Granted(_) | Self::Refused(_) => String::new(),
        }
    }
}

impl Key {
    /// Whether it can be used.
    pub(super) fn is_offered(&self) -> bool {
        !matches!(self.kind, Kind::Later | Kind::Inert(_) | Kind::Granted(_) | Kind::Refused(_))
    }
}

impl Unit {
    fn noun(self) -> &'static str {
        match self {
            Self::Plain => "a whole number",
            Self::Milliseconds => "a whole number of milliseconds",
            Self::Bytes => "a whole number of bytes",
            Self::Tokens => "a whole number of tokens",
            Self::Megabytes => "a whole number of megabytes",
            Self::Seconds => "a whole number of seconds",
        }
    }
}
