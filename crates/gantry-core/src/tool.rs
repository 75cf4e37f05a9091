//! A tool: its names, its schema, its effect, and the fingerprint of its definition.

use crate::digest::Digest;
use crate::limits;
use crate::names;
use crate::pattern::Pattern;
use crate::raw;
use crate::schema::{self, Schema, SchemaText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

words! {
    /// What kind of provider a tool comes from.
    pub enum ToolKind {
        /// Gantry's own.
        Builtin = "builtin",
        Mcp = "mcp",
        /// A REST or OpenAPI service.
        Rest = "rest",
        Agent = "agent",
    }
}

words! {
    /// What calling a tool may change.
    pub enum Effect {
        Read = "read",
        Write = "write",
        /// The change cannot be undone.
        Destructive = "destructive",
    }
}

impl Effect {
    /// Whether a call must be on record before it is dispatched.
    pub fn needs_intent(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// The provider's own hints about a tool, as MCP words them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Annotations {
    /// What calling the tool may change. A missing hint counts as the worse case, short of destruction.
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

words! {
    /// When a tool itself asks for an approval, regardless of policies.
    pub enum ApprovalRule {
        Never = "never",
        Always = "always",
        /// It depends on the arguments and on files; the provider is asked for each call.
        Depends = "depends",
    }
}

/// The definition of a tool, as its provider has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name as the provider spells it.
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: SchemaText,
    pub output_schema: Option<SchemaText>,
    pub annotations: Annotations,
    pub approval_rule: ApprovalRule,
    /// The definition word for word, the text of a JSON object, where the provider sent one. Clients are shown this, with
    /// the members that Gantry does not know.
    pub raw: Option<Arc<str>>,
    /// The target of its calls, where the definition does not say it.
    pub target: Option<Target>,
}

/// Where the calls of a tool go, and how. It is part of the fingerprint: an approval of one target is none of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// For people, without secrets: `DELETE https://api.example.com/pets/{id}`.
    pub shown: Arc<str>,
    /// The digest of everything that decides it.
    pub digest: Digest,
}

impl ToolSpec {
    /// The digest of everything that a person or a model judged the tool by.
    pub fn fingerprint(&self) -> Digest {
        let rule = raw::quoted(self.approval_rule.as_str());
        let definition = match &self.raw {
            Some(raw) => raw::object([("definition", &**raw), ("ownRule", &*rule)]),
            None => {
                let target = self.target.as_ref().map(|target| raw::quoted(&target.digest.to_string()));
                let members = self.members(&self.name);
                let members = members.iter().map(|(key, value)| (*key, value.as_deref().unwrap_or("null")));
                let target = target.as_deref().map(|target| ("target", target));
                raw::object(members.chain([("ownRule", &*rule)]).chain(target))
            }
        };
        // The fingerprint of a definition without canonical form is that of its text.
        let canonical = crate::json::canonical(&definition).map_or(definition, |c| c.text().to_owned());
        Digest::of(canonical.as_bytes())
    }

    /// The definition as MCP clients read it, under a displayed name.
    fn definition(&self, name: &str) -> String {
        match &self.raw {
            Some(raw) if name == self.name => raw.to_string(),
            Some(raw) => raw::with(raw, "name", &raw::quoted(name)),
            None => {
                let members = self.members(name);
                raw::object(members.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))))
            }
        }
    }

    /// The members of the definition as JSON texts, for a tool without a text of its provider.
    fn members(&self, name: &str) -> [(&'static str, Option<Cow<'_, str>>); 6] {
        [
            ("name", Some(raw::quoted(name).into())),
            ("title", self.title.as_deref().map(|title| raw::quoted(title).into())),
            ("description", Some(raw::quoted(&self.description).into())),
            ("inputSchema", Some(self.input_schema.as_str().into())),
            ("outputSchema", self.output_schema.as_ref().map(|schema| schema.as_str().into())),
            ("annotations", Some(serde_json::json!(self.annotations).to_string().into())),
        ]
    }

    fn has_non_object_output(&self) -> bool {
        let is_object = |schema: &SchemaText| {
            raw::string_member(schema.as_str(), "type").is_some_and(|name| name == "object")
        };
        self.output_schema.as_ref().is_some_and(|schema| !is_object(schema))
    }
}

/// The identity of a tool for policy, cache, queues and the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolKey {
    /// The provider's id.
    pub provider: Arc<str>,
    /// The tool's name as the provider spells it.
    pub tool: Arc<str>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The time limit, if it has its own.
    pub timeout: Option<Duration>,
    /// The queue that its calls pass, if any.
    pub queue: Option<Arc<str>>,
    /// How long a successful result may be served from the cache.
    pub cache: Option<Duration>,
}

#[derive(Debug)]
pub enum Status {
    /// With its input schema.
    Ready(Schema),
    /// For this reason. Other tools of its provider are not affected.
    Quarantined(String),
}

/// A tool of a pool.
#[derive(Debug)]
pub struct Tool {
    pub key: ToolKey,
    pub name: Arc<str>,
    pub namespace: Arc<str>,
    pub kind: ToolKind,
    pub spec: ToolSpec,
    pub effect: Effect,
    pub fingerprint: Digest,
    pub settings: Settings,
    pub status: Status,
    /// The texts that mean it in patterns and calls.
    spellings: Vec<Box<str>>,
    /// The name that models are shown, where their interfaces refuse the displayed one.
    model_name: Option<Box<str>>,
    /// As MCP clients read it.
    definition: Box<str>,
    /// For clients that take only objects as structured results, where it differs.
    legacy_definition: Option<Box<str>>,
}

#[derive(Debug, Clone)]
pub struct Origin {
    /// The provider's id.
    pub provider: Arc<str>,
    pub namespace: Arc<str>,
    pub kind: ToolKind,
}

impl Tool {
    /// Makes a tool under a displayed name. A definition that cannot be used quarantines the tool.
    pub fn new(origin: &Origin, name: String, spec: ToolSpec, settings: Settings) -> Self {
        let mut patterns = limits::SCHEMA_PATTERNS;
        Self::within(&mut patterns, origin, name, spec, settings)
    }

    /// The same of a provider whose schemas may still have so many patterns.
    pub(crate) fn within(
        patterns: &mut usize,
        origin: &Origin,
        name: String,
        spec: ToolSpec,
        settings: Settings,
    ) -> Self {
        let status = match Schema::of(&spec.input_schema, patterns) {
            Ok(schema) => Status::Ready(schema),
            Err(error) => Status::Quarantined(unusable(&error)),
        };
        let key = ToolKey { provider: Arc::clone(&origin.provider), tool: spec.name.as_str().into() };
        let spellings = spellings(origin, &spec.name, &name);
        let definition: Box<str> = spec.definition(&name).into();
        let legacy_definition = spec
            .has_non_object_output()
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
            model_name: None,
            definition,
            legacy_definition,
        }
    }

    #[must_use]
    pub(crate) fn with_model_name(mut self, name: Option<String>) -> Self {
        self.model_name = name.map(Into::into);
        let new = self.model_name.clone().filter(|name| !self.spellings.contains(name));
        self.spellings.extend(new);
        self
    }

    /// The name that models are shown: the displayed one unless their interfaces refuse it. It is a spelling of the tool.
    pub(crate) fn model_name(&self) -> &str {
        self.model_name.as_deref().unwrap_or(&self.name)
    }

    /// The texts that mean the tool in patterns and calls: its displayed name, sanitised, for models, and as its provider
    /// spells it. No text is in it twice.
    pub(crate) fn spellings(&self) -> impl Iterator<Item = &str> {
        self.spellings.iter().map(|s| &**s)
    }

    pub fn matches(&self, pattern: &Pattern) -> bool {
        self.spellings().any(|spelling| pattern.matches(spelling))
    }

    pub(crate) fn matches_any(&self, patterns: &[Pattern]) -> bool {
        patterns.iter().any(|pattern| self.matches(pattern))
    }

    /// The definition as MCP clients read it, as JSON text.
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// The definition for clients of versions in which a structured result is always an object: they refuse a whole
    /// list for one output schema of another type.
    pub(crate) fn legacy_definition(&self) -> &str {
        self.legacy_definition.as_deref().unwrap_or(&self.definition)
    }

    /// The parts of its input schema that are not checked.
    pub fn unenforced(&self) -> &[String] {
        match &self.status {
            Status::Ready(schema) => schema.unenforced(),
            Status::Quarantined(_) => &[],
        }
    }

    /// Why the tool cannot be called, if it cannot. This may compile its schema, which is work.
    pub fn fault(&self) -> Option<String> {
        match &self.status {
            Status::Ready(schema) => schema.ensure_compiled().err().map(unusable),
            Status::Quarantined(reason) => Some(reason.clone()),
        }
    }

    /// Why the tool cannot be called, if that is known already.
    pub fn quarantined(&self) -> Option<&str> {
        match &self.status {
            Status::Ready(_) => None,
            Status::Quarantined(reason) => Some(reason),
        }
    }
}

/// The reason for the quarantine of a tool whose schema cannot be used.
pub(crate) fn unusable(error: &schema::Error) -> String {
    format!("its input schema cannot be used: {error}")
}

fn spellings(origin: &Origin, tool: &str, name: &str) -> Vec<Box<str>> {
    let mut all: Vec<Box<str>> = vec![name.into()];
    // A bare name may itself look like `@ns/tool`, and patterns and calls expand it.
    let expanded = names::expand_at_syntax(name).into_owned();
    for spelling in [expanded].into_iter().chain(names::spellings(&origin.provider, &origin.namespace, tool))
    {
        if !all.iter().any(|known| **known == *spelling) {
            all.push(spelling.into());
        }
    }
    all
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
        assert_eq!(prefixed.legacy_definition(), plain);
        assert_eq!(bare.fingerprint, prefixed.fingerprint, "the displayed name is not the definition");
    }
}
