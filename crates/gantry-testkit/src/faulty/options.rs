//! What the faulty server is told to be: how it is reached, which era it speaks, and which fault it has.

use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The help text.
pub const USAGE: &str = "\
Usage: faulty [TRANSPORT] [OPTION]…

An MCP server that misbehaves on request. Over a socket it prints its URL on one line and runs until standard input ends.

Transports (stdio unless one is given; port 0 is any):
  --tcp PORT                 Lines over TCP
  --http PORT                Streamable HTTP at /mcp
  --sse PORT                 HTTP+SSE at /sse and /messages
  --ws PORT                  WebSocket, subprotocol `mcp`

Options:
  --era legacy|modern|dual   What it speaks (default legacy)
  --revision DATE            The only legacy version it knows
  --journal FILE             Where tools write down what really happened
  --page N                   Entries on a page of a list (default: all)
  --tool NAME                Has one more tool, of this name; may be given several times
  --definition-version N     Changes the description of the tool `versioned` (default 1)
  --instructions TEXT        What it says of itself

Faults:
  --never-start              Reads, never answers
  --start-after MS           Reads nothing before this time has passed
  --slow-ping MS             Answers ping, and server/discover, after this time
  --refuse                   Over streamable HTTP answers all with 401, and quotes the Authorization header
  --exit-on-start            Exits with code 3 before anything else
  --exit-mid-call            Exits with code 7 on any call, as the tool `die` does
  --close-socket-on-call     Closes the connection on any call, as the tool `hang-up` does
  --exit-on-discover         Exits with code 4 on server/discover
  --silent-on-discover       Never answers server/discover
  --latch                    Dual, but refuses initialize on a connection that has seen server/discover
  --lying-schema             Has tools with schemas that are none, and one that breaks its own outputSchema
  --rich-results             Has tools with results that older versions do not know: an array, a link, rows
  --poison                   Has tools with hidden, reordering and control characters, and endless descriptions
  --stderr-flood             Writes megabytes to standard error before it serves, and more with each call
  --endless-pages            Every page of a list has a next one (one entry a page unless --page says more)
  --empty-cursor             The cursor of the second page is the empty text
  --spawn-grandchild MARKER  Starts a process in a session of its own with MARKER as an argument
";

/// Everything the command line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub(super) kind: Kind,
    pub(super) port: u16,
    pub(super) era: Era,
    pub(super) faults: BTreeSet<Fault>,
    pub(super) revision: Option<String>,
    pub(super) journal: Option<PathBuf>,
    pub(super) page: Option<usize>,
    pub(super) tools: Vec<String>,
    pub(super) definition_version: Option<u64>,
    pub(super) instructions: Option<String>,
    pub(super) start_after: Duration,
    pub(super) slow_ping: Duration,
    pub(super) grandchild: Option<String>,
    pub(super) sleeper: Option<String>,
}

/// How it is reached.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines on standard input and output.
    #[default]
    Stdio,
    /// Lines over TCP.
    Tcp,
    /// Streamable HTTP.
    Http,
    /// The older HTTP+SSE.
    Sse,
    /// One message a frame.
    Ws,
}

/// Which eras it speaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With a handshake, up to 2025-11-25.
    #[default]
    Legacy,
    /// Without, 2026-07-28.
    Modern,
    /// Whatever the client speaks.
    Dual,
}

/// A fault that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Reads, never answers.
    NeverStart,
    /// Refuses everything over HTTP.
    Refuse,
    /// Exits before anything else.
    ExitOnStart,
    /// Exits on any call.
    ExitMidCall,
    /// Closes the connection on any call.
    CloseSocketOnCall,
    /// Exits on `server/discover`.
    ExitOnDiscover,
    /// Never answers `server/discover`.
    SilentOnDiscover,
    /// Refuses `initialize` after `server/discover`.
    Latch,
    /// Schemas that are none.
    LyingSchema,
    /// Results that older versions do not know.
    RichResults,
    /// Descriptions that hide or run on.
    Poison,
    /// Noise on standard error.
    StderrFlood,
    /// Lists without an end.
    EndlessPages,
    /// A cursor without a character.
    EmptyCursor,
}

const FAULTS: [(&str, Fault); 14] = [
    ("--never-start", Fault::NeverStart),
    ("--refuse", Fault::Refuse),
    ("--exit-on-start", Fault::ExitOnStart),
    ("--exit-mid-call", Fault::ExitMidCall),
    ("--close-socket-on-call", Fault::CloseSocketOnCall),
    ("--exit-on-discover", Fault::ExitOnDiscover),
    ("--silent-on-discover", Fault::SilentOnDiscover),
    ("--latch", Fault::Latch),
    ("--lying-schema", Fault::LyingSchema),
    ("--rich-results", Fault::RichResults),
    ("--poison", Fault::Poison),
    ("--stderr-flood", Fault::StderrFlood),
    ("--endless-pages", Fault::EndlessPages),
    ("--empty-cursor", Fault::EmptyCursor),
];

const KINDS: [(&str, Kind); 4] =
    [("--tcp", Kind::Tcp), ("--http", Kind::Http), ("--sse", Kind::Sse), ("--ws", Kind::Ws)];

impl Options {
    /// Reads a command line.
    ///
    /// # Errors
    /// A word is unknown, or its value is missing or makes no sense.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            if let Some((_, fault)) = FAULTS.iter().find(|(flag, _)| *flag == arg) {
                options.faults.insert(*fault);
                continue;
            }
            let value = args.next().with_context(|| format!("`{arg}` is unknown or lacks its value"))?;
            options.set(&arg, value)?;
        }
        if options.has(Fault::Latch) {
            options.era = Era::Dual;
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: String) -> Result<()> {
        if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == flag) {
            (self.kind, self.port) = (*kind, number(flag, &value)?);
            return Ok(());
        }
        match flag {
            "--era" => self.era = Era::parse(&value)?,
            "--revision" => self.revision = Some(value),
            "--journal" => self.journal = Some(value.into()),
            "--page" => self.page = Some(number::<usize>(flag, &value)?.max(1)),
            "--tool" => self.tools.push(value),
            "--definition-version" => self.definition_version = Some(number(flag, &value)?),
            "--instructions" => self.instructions = Some(value),
            "--slow-ping" => self.slow_ping = Duration::from_millis(number(flag, &value)?),
            "--start-after" => self.start_after = Duration::from_millis(number(flag, &value)?),
            "--spawn-grandchild" => self.grandchild = Some(value),
            super::grandchild::SLEEPER => self.sleeper = Some(value),
            _ => bail!("`{flag}` is unknown"),
        }
        Ok(())
    }

    /// Whether it has this fault.
    #[must_use]
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}

impl Kind {
    /// The option that asks for it, which a port follows; `None` for stdio.
    #[must_use]
    pub fn flag(self) -> Option<&'static str> {
        KINDS.iter().find(|(_, kind)| *kind == self).map(|(flag, _)| *flag)
    }
}

impl Era {
    fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "legacy" => Self::Legacy,
            "modern" => Self::Modern,
            "dual" => Self::Dual,
            _ => bail!("`{text}` is no era; they are legacy, modern and dual"),
        })
    }
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T> {
    value.parse().ok().with_context(|| format!("`{value}` is no number for `{flag}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn every_flag_that_is_documented_is_known() {
        for line in USAGE.lines().filter_map(|line| line.trim_start().strip_prefix("--")) {
            let mut words = line.split("  ").next().unwrap_or_default().split(' ');
            let flag = words.next().unwrap_or_default();
            let value = words.next().map(|value| if value.contains('|') { "dual" } else { "1" });
            let args = [Some(format!("--{flag}")), value.map(str::to_owned)];
            Options::parse(args.into_iter().flatten()).unwrap();
        }
        assert!(FAULTS.iter().all(|(flag, _)| USAGE.contains(flag)));
    }

    #[test]
    fn a_latch_is_a_server_of_both_eras() {
        assert_eq!(parse("--latch").unwrap().era, Era::Dual);
    }

    #[test]
    fn what_is_unknown_is_named() {
        assert!(format!("{:#}", parse("--tpc 1").unwrap_err()).contains("--tpc"));
        assert!(format!("{:#}", parse("--tcp x").unwrap_err()).contains("`x`"));
        assert!(format!("{:#}", parse("--page").unwrap_err()).contains("--page"));
    }
}
