//! A tool: what it is called, what it takes, what it may change, and the fingerprint of all that.

use crate::digest::Digest;
use crate::names;
use crate::raw;
use crate::schema::{self, Schema, SchemaText};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What kind of provider a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// Gantry's own.
    Builtin,
    /// An MCP server.
    Mcp,
    /// A REST or OpenAPI service.
    Rest,
    /// An agent.
    Agent,
}

impl ToolKind {
    /// The word used in results, the ledger and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Mcp => "mcp",
            Self::Rest => "rest",
            Self::Agent => "agent",
        }
    }
}

/// What calling a tool may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Nothing.
    Read,
    /// Something.
    Write,
    /// Something that cannot be got back.
    Destructive,
}

impl Effect {
    /// The word used in policies, the ledger and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    /// Whether a call must be on record before it is dispatched.
    #[must_use]
    pub fn needs_intent(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// The provider's own hints about a tool, as MCP words them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whether it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether it may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether calling it again with the same arguments changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether it reaches beyond a closed set of things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Annotations {
    /// What calling the tool may change. A missing hint counts as the worse case, short of destruction.
    #[must_use]
    pub fn effect(&self) -> Effect {
        if self.destructive_hint == Some(true) {
            Effect::Destructive
        } else if self.read_only_hint == Some(true) {
            Effect::Read
        } else {
            Effect::Write
        }
    }
}

/// When a tool itself asks for a person, whatever policies say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalRule {
    /// Never.
    Never,
    /// Always.
    Always,
    /// It depends on the arguments and the state of the world; the provider is asked for each call.
    Depends,
}

impl ApprovalRule {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::Depends => "depends",
        }
    }
}

/// A tool in its provider's words.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name as the provider spells it.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What it does and when to use it.
    pub description: String,
    /// What it takes.
    pub input_schema: SchemaText,
    /// What it returns, if it says so.
    pub output_schema: Option<SchemaText>,
    /// Hints.
    pub annotations: Annotations,
    /// When it asks for a person.
    pub approval_rule: ApprovalRule,
    /// The definition word for word, the text of a JSON object, where the provider has one: clients are shown this,
    /// with nothing lost of what Gantry does not know.
    pub raw: Option<Arc<str>>,
    /// Where its calls go, where the definition does not say it.
    pub target: Option<Target>,
}

/// Where the calls of a tool go, and how. Another target is another tool to whoever said yes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// In words for people, without secrets: `DELETE https://api.example.com/pets/{id}`.
    pub shown: Arc<str>,
    /// Of all that decides it.
    pub digest: Digest,
}

impl ToolSpec {
    /// The digest of everything that a person or a model judged the tool by.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        let definition = match &self.raw {
            Some(raw) => {
                raw::object([("definition", &**raw), ("ownRule", &raw::quoted(self.approval_rule.as_str()))])
            }
            None => {
                let null = "null";
                let title = self.title.as_deref().map(raw::quoted);
                let target = self.target.as_ref().map(|target| raw::quoted(&target.digest.to_string()));
                let members = [
                    ("name", &*raw::quoted(&self.name)),
                    ("title", title.as_deref().unwrap_or(null)),
                    ("description", &*raw::quoted(&self.description)),
                    ("inputSchema", self.input_schema.as_str()),
                    ("outputSchema", self.output_schema.as_ref().map_or(null, SchemaText::as_str)),
                    ("annotations", &*serde_json::json!(self.annotations).to_string()),
                    ("ownRule", &*raw::quoted(self.approval_rule.as_str())),
                ];
                raw::object(members.into_iter().chain(target.as_deref().map(|target| ("target", target))))
            }
        };
        // A definition with numbers that cannot be judged exactly still has a fingerprint: that of its text.
        let canonical = crate::json::canonical(&definition).map_or(definition, |c| c.text().to_owned());
        Digest::of(canonical.as_bytes())
    }
}

/// What a tool is to policy, cache, queues and the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolKey {
    /// The provider's id.
    pub provider: Arc<str>,
    /// The tool's name as the provider spells it.
    pub tool: Arc<str>,
}

/// How calls of a tool are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The time limit, if it has its own.
    pub timeout: Option<Duration>,
    /// The queue that its calls pass, if any.
    pub queue: Option<Arc<str>>,
    /// How long a successful answer may be given again.
    pub cache: Option<Duration>,
}

/// Whether a tool can be called.
#[derive(Debug)]
pub enum Status {
    /// It can; this is its input schema.
    Ready(Schema),
    /// It cannot, for this reason. The rest of its provider is not affected.
    Quarantined(String),
}

/// A tool of a pool.
#[derive(Debug)]
pub struct Tool {
    /// Its identity.
    pub key: ToolKey,
    /// Its displayed name.
    pub name: Arc<str>,
    /// The namespace of its provider.
    pub namespace: Arc<str>,
    /// The kind of its provider.
    pub kind: ToolKind,
    /// Its definition in the provider's words.
    pub spec: ToolSpec,
    /// What it may change.
    pub effect: Effect,
    /// The digest of its definition.
    pub fingerprint: Digest,
    /// How its calls are run.
    pub settings: Settings,
    /// Whether it can be called.
    pub status: Status,
    /// Every spelling that a pattern may mean it by.
    spellings: Vec<Box<str>>,
    /// The name that models are shown, where they do not take the displayed one.
    legal_name: Option<Box<str>>,
    /// Its definition as MCP clients read it, made once.
    definition: Box<str>,
    /// The same for clients that take only objects as structured results, where it differs.
    plain_definition: Option<Box<str>>,
}

/// What a tool is made from besides its spec.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The provider's id.
    pub provider: Arc<str>,
    /// The provider's namespace.
    pub namespace: Arc<str>,
    /// The provider's kind.
    pub kind: ToolKind,
}

impl Tool {
    /// Makes a tool under a displayed name. A definition that cannot be used quarantines the tool.
    #[must_use]
    pub fn new(origin: &Origin, name: String, spec: ToolSpec, settings: Settings) -> Self {
        let status = match Schema::of(&spec.input_schema) {
            Ok(schema) => Status::Ready(schema),
            Err(error) => Status::Quarantined(unusable(&error)),
        };
        let key = ToolKey { provider: Arc::clone(&origin.provider), tool: spec.name.as_str().into() };
        let spellings = spellings(origin, &spec.name, &name);
        let definition: Box<str> = definition(&name, &spec).into();
        let plain_definition = gives_more_than_objects(&spec)
            .then(|| raw::without(&definition, |member| member == "outputSchema").into());
        Self {
            effect: spec.annotations.effect(),
            fingerprint: spec.fingerprint(),
            name: name.into(),
            namespace: Arc::clone(&origin.namespace),
            kind: origin.kind,
            key,
            spec,
            settings,
            status,
            spellings,
            legal_name: None,
            definition,
            plain_definition,
        }
    }

    /// The same tool, which models are shown under this name.
    #[must_use]
    pub(crate) fn with_legal_name(mut self, name: Option<String>) -> Self {
        self.legal_name = name.map(Into::into);
        self.spellings.extend(self.legal_name.clone());
        self
    }

    /// The name that models are shown: the displayed one unless their interfaces refuse it. It means this tool wherever
    /// a spelling is asked for.
    #[must_use]
    pub fn legal_name(&self) -> &str {
        self.legal_name.as_deref().unwrap_or(&self.name)
    }

    /// Every spelling that a pattern may mean the tool by: displayed, sanitised, legal for models, and as its
    /// provider has it.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        self.spellings.iter().map(|s| &**s)
    }

    /// The definition as MCP clients read it, as JSON text.
    #[must_use]
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// The definition for clients of versions in which a structured result is always an object: they refuse a whole
    /// list for one output schema of another kind.
    #[must_use]
    pub fn plain_definition(&self) -> &str {
        self.plain_definition.as_deref().unwrap_or(&self.definition)
    }

    /// What its input schema asks for and nobody checks.
    #[must_use]
    pub fn unenforced(&self) -> &[String] {
        match &self.status {
            Status::Ready(schema) => schema.unenforced(),
            Status::Quarantined(_) => &[],
        }
    }

    /// Why the tool cannot be called, if it cannot, also where only compiling its schema tells. That is work.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        match &self.status {
            Status::Ready(schema) => schema.ensure_compiled().err().map(unusable),
            Status::Quarantined(reason) => Some(reason.clone()),
        }
    }

    /// Why the tool cannot be called, if it is known that it cannot.
    #[must_use]
    pub fn quarantined(&self) -> Option<&str> {
        match &self.status {
            Status::Ready(_) => None,
            Status::Quarantined(reason) => Some(reason),
        }
    }
}

/// What to say of a tool whose schema cannot be used.
pub(crate) fn unusable(error: &schema::Error) -> String {
    format!("its input schema cannot be used: {error}")
}

fn spellings(origin: &Origin, tool: &str, name: &str) -> Vec<Box<str>> {
    let mut all: Vec<Box<str>> = vec![name.into()];
    // A name that is shown as it is may itself look like `@ns/tool`, and is read as that in patterns.
    let read = names::unslashed(name).into_owned();
    for spelling in [read].into_iter().chain(names::spellings(&origin.provider, &origin.namespace, tool)) {
        if !all.iter().any(|known| **known == *spelling) {
            all.push(spelling.into());
        }
    }
    all
}

fn definition(name: &str, spec: &ToolSpec) -> String {
    if let Some(raw) = &spec.raw {
        return if name == spec.name { raw.to_string() } else { raw::with(raw, "name", &raw::quoted(name)) };
    }
    let annotations = serde_json::json!(spec.annotations).to_string();
    let title = spec.title.as_deref().map(raw::quoted);
    let members = [
        ("name", Some(&*raw::quoted(name))),
        ("title", title.as_deref()),
        ("description", Some(&*raw::quoted(&spec.description))),
        ("inputSchema", Some(spec.input_schema.as_str())),
        ("outputSchema", spec.output_schema.as_ref().map(SchemaText::as_str)),
        ("annotations", Some(&*annotations)),
    ];
    raw::object(members.into_iter().filter_map(|(key, value)| Some((key, value?))))
}

fn gives_more_than_objects(spec: &ToolSpec) -> bool {
    let kind = |schema: &SchemaText| {
        raw::string_member(schema.as_str(), "type").is_some_and(|kind| kind == "object")
    };
    spec.output_schema.as_ref().is_some_and(|schema| !kind(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: Option<bool>, destructive: Option<bool>) -> Annotations {
        Annotations { read_only_hint: read_only, destructive_hint: destructive, ..Annotations::default() }
    }

    #[test]
    fn effects_follow_the_hints_and_missing_hints_mean_write() {
        assert_eq!(hints(Some(true), None).effect(), Effect::Read);
        assert_eq!(hints(None, None).effect(), Effect::Write);
        assert_eq!(hints(Some(false), Some(false)).effect(), Effect::Write);
        assert_eq!(hints(None, Some(true)).effect(), Effect::Destructive);
        // Contradicting hints count as the worse one.
        assert_eq!(hints(Some(true), Some(true)).effect(), Effect::Destructive);
    }

    #[test]
    fn the_fingerprint_sees_every_part_of_a_definition_but_not_key_order() {
        let spec = |schema: &str, description: &str, approval_rule| ToolSpec {
            name: "t".into(),
            title: None,
            description: description.into(),
            input_schema: serde_json::from_str::<serde_json::Value>(schema).unwrap().into(),
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule,
            raw: None,
            target: None,
        };
        let base = spec(r#"{"type":"object","title":"x"}"#, "d", ApprovalRule::Never).fingerprint();
        assert_eq!(base, spec(r#"{"title":"x","type":"object"}"#, "d", ApprovalRule::Never).fingerprint());
        assert_ne!(base, spec(r#"{"title":"y","type":"object"}"#, "d", ApprovalRule::Never).fingerprint());
        assert_ne!(base, spec(r#"{"type":"object","title":"x"}"#, "e", ApprovalRule::Never).fingerprint());
        assert_ne!(base, spec(r#"{"type":"object","title":"x"}"#, "d", ApprovalRule::Always).fingerprint());
    }

    #[test]
    fn a_definition_of_its_own_is_shown_word_for_word_under_the_displayed_name() {
        let raw = r#"{"vendor":1.10,"name":"a-b","inputSchema":{"type":"object","x":1e400},"outputSchema":{"type":"array"}}"#;
        let spec = ToolSpec {
            name: "a-b".into(),
            title: None,
            description: String::new(),
            input_schema: serde_json::json!({ "type": "object" }).into(),
            output_schema: Some(serde_json::json!({ "type": "array" }).into()),
            annotations: Annotations::default(),
            approval_rule: ApprovalRule::Never,
            raw: Some(raw.into()),
            target: None,
        };
        let origin = Origin { provider: "p".into(), namespace: "p".into(), kind: ToolKind::Mcp };
        let bare = Tool::new(&origin, "a-b".into(), spec.clone(), Settings::default());
        assert_eq!(bare.definition(), raw);
        let prefixed = Tool::new(&origin, "p__a_b".into(), spec, Settings::default());
        assert_eq!(prefixed.definition(), raw.replace("a-b", "p__a_b"));
        let plain = raw.replace("a-b", "p__a_b").replace(r#","outputSchema":{"type":"array"}"#, "");
        assert_eq!(prefixed.plain_definition(), plain);
        assert_eq!(bare.fingerprint, prefixed.fingerprint, "the displayed name is not the definition");
    }
}
