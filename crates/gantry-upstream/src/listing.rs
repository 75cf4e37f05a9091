//! What a server has: its tools, resources, templates and prompts, as it defined them.

use crate::output_check::OutputCheck;
use crate::{duplicate_keys, suspicious};
use gantry_core::Tool;
use gantry_core::digest::Digest;
use gantry_core::raw;
use gantry_core::tool::{Annotations, ApprovalRule, ToolSpec};
use gantry_mcp::client::{Connection, UpstreamError, UpstreamInfo};
use gantry_provider::code::METHOD_NOT_FOUND;
use gantry_provider::resources::ListKind;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A tool's name; longer ones are typing accidents or attacks.
const NAME_BYTES: usize = 512;

/// Everything that a server has, as one of its replicas listed it.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) about: UpstreamInfo,
    pub(crate) tools: Vec<Definition>,
    index: HashMap<String, usize>,
    /// The digest of the names and fingerprints of its tools, in any order.
    pub(crate) tools_digest: Digest,
    /// Its resources, templates and prompts, as it sent them.
    items: HashMap<ListKind, Vec<Box<str>>>,
    pub(crate) warnings: Vec<String>,
}

/// A tool as its server defined it.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The parts that Gantry reads.
    pub(crate) spec: ToolSpec,
    /// The digest of all of it: what permits are bound to, and what the lock file pins.
    pub(crate) fingerprint: Digest,
    pub(crate) flags: Vec<String>,
    /// Whether its results are what it says; shared by all listings that have the definition.
    pub(crate) output_check: Arc<OutputCheck>,
}

impl Definition {
    pub(crate) fn raw(&self) -> &str {
        self.spec.raw.as_deref().unwrap_or("{}")
    }
}

impl Listing {
    /// Asks a server for everything that it says it has.
    pub(crate) async fn fetch(connection: &Connection) -> Result<Self, UpstreamError> {
        let about = connection.info().clone();
        let mut warnings = Vec::new();
        let has = |what: &str| offers(&about, what);
        // Tools are asked for in any case: some servers have them without saying so.
        let tools = fetch_list(connection, ListKind::Tools, has("tools"), &mut warnings).await?;
        let mut items = HashMap::new();
        for kind in [ListKind::Resources, ListKind::Templates, ListKind::Prompts] {
            if has(if kind == ListKind::Prompts { "prompts" } else { "resources" }) {
                items.insert(kind, fetch_list(connection, kind, false, &mut warnings).await?);
            }
        }
        Ok(Self { items, ..Self::from_tools(about, tools, warnings) })
    }

    /// Asks a session of a server for its tools only.
    pub(super) async fn fetch_tools(connection: &Connection) -> Result<Self, UpstreamError> {
        let tools = connection.list(ListKind::Tools).await?;
        Ok(Self::from_tools(connection.info().clone(), tools, Vec::new()))
    }

    fn from_tools(about: UpstreamInfo, raws: Vec<Box<str>>, mut warnings: Vec<String>) -> Self {
        let mut tools: Vec<Definition> = Vec::with_capacity(raws.len());
        let mut index = HashMap::new();
        for (n, raw) in raws.into_iter().enumerate() {
            match read_definition(&raw) {
                Ok(definition) if index.contains_key(&definition.spec.name) => {
                    let name = definition.spec.name;
                    warnings.push(format!("tool {name:?} is listed twice; the first one counts"));
                }
                Ok(definition) => {
                    index.insert(definition.spec.name.clone(), tools.len());
                    tools.push(definition);
                }
                Err(why) => {
                    warnings.push(format!("tool number {} cannot be read and is left out: {why}", n + 1))
                }
            }
        }
        Self { about, tools_digest: digest_tools(&tools), tools, index, items: HashMap::new(), warnings }
    }

    /// Goes on with the checks of results that an earlier listing began, for tools that are defined as they were there.
    pub(crate) fn keep_output_checks(&mut self, earlier: Option<&Self>) {
        let Some(earlier) = earlier else { return };
        for tool in &mut self.tools {
            let known = earlier.tool(&tool.spec.name);
            if let Some(known) = known.filter(|known| known.fingerprint == tool.fingerprint) {
                tool.output_check = Arc::clone(&known.output_check);
            }
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Definition> {
        self.index.get(name).and_then(|n| self.tools.get(*n))
    }

    /// The definition of a tool, if it is exactly the one that was judged.
    pub(super) fn definition(&self, tool: &Tool) -> Option<&Definition> {
        self.tool(&tool.key.tool).filter(|definition| definition.fingerprint == tool.fingerprint)
    }

    /// Whether it has a tool exactly as it was judged.
    pub(super) fn defines(&self, tool: &Tool) -> bool {
        self.definition(tool).is_some()
    }

    pub(crate) fn offers(&self, capability: &str) -> bool {
        offers(&self.about, capability)
    }

    pub(crate) fn items(&self, kind: ListKind) -> &[Box<str>] {
        self.items.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether another listing says the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.tools_digest == other.tools_digest && self.about == other.about && self.items == other.items
    }

    /// The tools that another listing has otherwise, or that only one of the two has.
    pub(super) fn differing<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        let of = |these: &'a Self, those: &'a Self| {
            let differs = |tool: &&Definition| {
                those.tool(&tool.spec.name).is_none_or(|found| found.fingerprint != tool.fingerprint)
            };
            these.tools.iter().filter(differs).map(|tool| tool.spec.name.as_str())
        };
        of(self, other).chain(of(other, self)).collect()
    }

    /// What looks suspicious, tool by tool.
    pub(crate) fn flags(&self) -> Vec<String> {
        let named = |tool: &Definition| {
            let name = tool.spec.name.clone();
            tool.flags.clone().into_iter().map(move |flag| format!("tool {name:?}: {flag}"))
        };
        let said = self.about.instructions.as_deref().unwrap_or_default();
        self.tools.iter().flat_map(named).chain(suspicious::scan_text(said, "instructions")).collect()
    }

    #[cfg(test)]
    pub(super) fn for_tests(instructions: Option<&str>, raws: Vec<Box<str>>) -> Self {
        let about = UpstreamInfo {
            version: gantry_mcp::Version::MODERN,
            capabilities: "{}".into(),
            server_info: None,
            instructions: instructions.map(str::to_owned),
        };
        Self::from_tools(about, raws, Vec::new())
    }
}

fn offers(about: &UpstreamInfo, capability: &str) -> bool {
    raw::member(&about.capabilities, capability).is_some_and(|value| value.starts_with('{'))
}

/// Asks for one list. What a server refuses to list it does not have, unless it has promised it.
async fn fetch_list(
    connection: &Connection,
    kind: ListKind,
    promised: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<Box<str>>, UpstreamError> {
    match connection.list(kind).await {
        Err(UpstreamError::Rpc(error)) if !promised => {
            if error.code != METHOD_NOT_FOUND {
                warnings.push(format!("{} was answered with an error: {error}", kind.method()));
            }
            Ok(Vec::new())
        }
        other => other,
    }
}

/// Reads what Gantry has to know of a definition; the rest of it is passed on unread.
fn read_definition(text: &str) -> Result<Definition, String> {
    let members = raw::members(text).ok_or("it is not an object")?;
    let find = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
    let string = |key: &str| find(key).and_then(raw::string).map(std::borrow::Cow::into_owned);
    let value = |key: &str| match find(key) {
        Some(text) => {
            serde_json::from_str::<Value>(text).map(Some).map_err(|error| format!("{key}: {error}"))
        }
        None => Ok(None),
    };
    if let Some(key) = duplicate_keys::find_duplicate_key(text) {
        return Err(format!(
            "the key {key:?} appears twice in one object, and readers differ in which one counts"
        ));
    }
    let name = string("name").filter(|name| !name.is_empty()).ok_or("it has no name")?;
    if name.len() > NAME_BYTES {
        return Err(format!("its name is longer than {NAME_BYTES} bytes"));
    }
    let annotations = find("annotations").unwrap_or("{}");
    let spec = ToolSpec {
        title: string("title").or_else(|| raw::string_member(annotations, "title").map(Into::into)),
        description: string("description").unwrap_or_default(),
        input_schema: value("inputSchema")?.unwrap_or_else(|| serde_json::json!({ "type": "object" })).into(),
        output_schema: value("outputSchema")?.map(Into::into),
        annotations: read_hints(annotations),
        approval_rule: ApprovalRule::Never,
        name,
        raw: Some(text.into()),
        target: None,
    };
    let (fingerprint, flags) = (spec.fingerprint(), suspicious::scan(text));
    Ok(Definition { spec, fingerprint, flags, output_check: Arc::default() })
}

/// A digest of the names and fingerprints of tools, in any order.
fn digest_tools(tools: &[Definition]) -> Digest {
    let mut names: Vec<(&str, &Digest)> =
        tools.iter().map(|tool| (tool.spec.name.as_str(), &tool.fingerprint)).collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    let parts = names.iter().flat_map(|(name, fingerprint)| [name.as_bytes(), fingerprint.as_bytes()]);
    Digest::of_parts(&parts.collect::<Vec<_>>())
}

fn read_hints(annotations: &str) -> Annotations {
    let hint = |key: &str| match raw::member(annotations, key) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    Annotations {
        read_only_hint: hint("readOnlyHint"),
        destructive_hint: hint("destructiveHint"),
        idempotent_hint: hint("idempotentHint"),
        open_world_hint: hint("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(raws: &[&str]) -> Listing {
        Listing::for_tests(None, raws.iter().map(|raw| (*raw).into()).collect())
    }

    #[test]
    fn a_definition_is_read_and_kept_whole() {
        let text = r#"{"name":"a","title":"A","inputSchema":{"type":"object","x":1.10},"vendor":{"k":1e400},
            "annotations":{"readOnlyHint":true,"destructiveHint":"maybe","other":1}}"#;
        let listing = listing(&[text]);
        let tool = listing.tool("a").unwrap();
        assert_eq!(tool.raw(), text);
        assert_eq!(tool.spec.title.as_deref(), Some("A"));
        assert_eq!(
            tool.spec.annotations,
            Annotations { read_only_hint: Some(true), ..Annotations::default() }
        );
        assert!(listing.warnings.is_empty());
    }

    #[test]
    fn one_definition_that_cannot_be_read_leaves_the_others() {
        let listing = listing(&[
            "7",
            r#"{"title":"no name"}"#,
            r#"{"name":"a"}"#,
            r#"{"name":"b","inputSchema":{"n":1e999}}"#,
            r#"{"name":"a","x":1}"#,
        ]);
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(listing.warnings.len(), 4, "{:?}", listing.warnings);
    }

    #[test]
    fn a_definition_that_readers_would_read_differently_is_left_out() {
        let listing = listing(&[
            r#"{"name":"a","description":"kind","description":"cruel"}"#,
            r#"{"name":"b","vendor":1e400,"inputSchema":{"properties":{"x":{},"x":{}}}}"#,
            r#"{"name":"c","vendor":{"n":123456789012345678901234567890,"m":1e400}}"#,
        ]);
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!(names, ["c"], "odd numbers cost nothing");
        let twice = |warning: &&String| warning.contains("appears twice in one object");
        assert_eq!(listing.warnings.iter().filter(twice).count(), 2, "{:?}", listing.warnings);
    }

    #[test]
    fn checks_of_results_go_on_for_as_long_as_a_definition_stays() {
        let (before, mut now) = (
            listing(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#]),
            listing(&[r#"{"name":"a"}"#, r#"{"name":"b","x":1}"#]),
        );
        now.keep_output_checks(Some(&before));
        let is_kept = |name| {
            let [before, now] = [&before, &now].map(|listing| &listing.tool(name).unwrap().output_check);
            Arc::ptr_eq(before, now)
        };
        assert_eq!(["a", "b"].map(is_kept), [true, false]);
    }

    #[test]
    fn the_order_of_tools_and_keys_makes_no_other_listing() {
        let (a, b) = (r#"{"name":"a","x":1}"#, r#"{"name":"b"}"#);
        let other = listing(&[b, r#"{"x":1,"name":"a"}"#]);
        let same = |raws: &[&str]| listing(raws).tools_digest == other.tools_digest;
        assert!(same(&[a, b]) && listing(&[a, b]).differing(&other).is_empty());
        assert!(!same(&[a]));
        assert!(!same(&[r#"{"name":"a","x":2}"#, b]));
        let (mine, third) = (listing(&[r#"{"name":"a","x":2}"#, r#"{"name":"c"}"#]), ["a", "b", "c"]);
        assert!(mine.differing(&other).into_iter().eq(third), "{:?}", mine.differing(&other));
    }
}
