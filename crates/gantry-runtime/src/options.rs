//! The options of a runtime: limits, policies, agents, servers, and how each provider's tools are run.

use gantry_core::names::OwnNames;
use gantry_core::pattern::Pattern;
use gantry_core::policy::{MAX_WAIT, Policies};
use gantry_core::tool::{Effect, Origin, Settings, ToolSpec};
use gantry_core::toolset::{AgentTools, Selection};
use gantry_egress::address_guard::{IpNet, IpRange};
use gantry_provider::Provider;
use gantry_provider::options::{
    DAY, Limit, Millis, Positive, Secret, SigningSecret, ToolKey, WebUrl, read_as, read_list,
};
use gantry_provider::server::{NoServers, ServerConfig, ServerFactory};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Unexpected, Visitor};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A project as it is to be run: everything that a runtime of it is built from, any number of times.
#[derive(Debug, Clone)]
pub struct Plan {
    pub options: Options,
    pub providers: Vec<Arc<dyn Provider>>,
}

#[derive(Debug, Clone)]
pub struct ServerPlan {
    pub config: Arc<dyn ServerConfig>,
    pub options: ProviderOptions,
}

impl ServerPlan {
    pub fn id(&self) -> &Arc<str> {
        self.config.id()
    }
}

#[derive(Debug, Clone)]
pub struct Options {
    pub project: Arc<str>,
    /// The agent that the runtime is for alone, while it is active.
    pub active: Option<Arc<str>>,
    pub data: PathBuf,
    pub limits: Limits,
    /// The policies, and what else makes calls wait.
    pub policies: Arc<Policies>,
    /// How calls that wait for a person are put to one.
    pub approvals: ApprovalOptions,
    pub agents: BTreeMap<Arc<str>, AgentOptions>,
    /// How the tools of each provider are run, by the provider's id.
    pub providers: HashMap<Arc<str>, ProviderOptions>,
    pub servers: Vec<ServerPlan>,
    /// Makes them, for each runtime anew.
    pub server_factory: Arc<dyn ServerFactory>,
}

impl Options {
    /// The defaults, with data in this folder.
    pub fn new(data: PathBuf) -> Self {
        Self {
            project: "default".into(),
            active: None,
            data,
            limits: Limits::default(),
            policies: Arc::default(),
            approvals: ApprovalOptions::default(),
            agents: BTreeMap::new(),
            providers: HashMap::new(),
            servers: Vec::new(),
            server_factory: Arc::new(NoServers),
        }
    }
}

/// Limits for every call, unless something more specific sets them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// How long a tool may run before its call fails.
    pub tool_timeout: Millis<60_000, DAY>,
    /// Bytes of the largest result that is passed on whole; a larger one is stored, and a handle takes its place.
    pub tool_response_max_bytes: Limit<100_000, 100_000_000>,
    /// How deep agents may call agents.
    pub max_depth: Limit<2, 16>,
    /// How many tokens of tool results one session may receive; unlimited unless given. Each process counts for itself.
    pub context_budget_tokens: Option<Positive<1_000_000_000>>,
    /// How long stored results stay readable after their session has ended.
    #[serde(rename = "outputRetentionMs")]
    pub output_retention: Millis<3_600_000, { 365 * DAY }>,
    /// Calls in flight in the whole process; more are refused with QUEUE_FULL.
    pub max_concurrent_calls: Limit<1024, 65_536>,
    /// How many MCP servers start at once.
    pub mcp_init_concurrency: Limit<8, 64>,
    /// Log every message to and from every MCP server, with secrets masked.
    #[serde(rename = "traceMCP")]
    pub trace_mcp: bool,
}

/// How a held call reaches a person, and how its caller is kept waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Delivery {
    /// By the best way that the client has: a task, an address to open, a form, a call that is held open, a result that
    /// says where it waits.
    #[default]
    Auto,
    /// As a task, where the client knows tasks.
    Tasks,
    /// By an address that the person opens.
    Url,
    /// By a form in the client, where the person behind it may decide.
    Form,
    /// The call is held open; the client is sent progress if it wants that.
    Hold,
    /// The reply says at once where the call waits.
    Pending,
}

/// How approvers hear of calls that wait, and how long the calls wait.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalOptions {
    /// How long an approver has to decide. Less than 1000 counts as 1000.
    #[serde(rename = "approvalTimeoutMs")]
    pub timeout: Millis<600_000, MAX_WAIT>,
    /// Whether a call is rejected when no approver decides in time. Otherwise it goes on waiting.
    #[serde(rename = "autoRejectOnTimeout")]
    pub auto_reject: bool,
    /// How a call that waits reaches the person behind an MCP client: as a task, by an address to open, by a form, by
    /// holding the call open, or by an answer that says where it waits; `auto` is the best that the client can do.
    pub delivery: Delivery,
    /// How long a call is held open for its client before the client is told where it waits.
    #[serde(rename = "holdMs")]
    pub hold: Millis<300_000, DAY>,
    /// How many calls of one caller may wait at once; more are refused.
    pub max_pending: Limit<1000, 100_000>,
    /// Where Gantry sends requests and decisions, signed with a secret and repeated until the receiver accepts them.
    pub webhook: Option<Webhook>,
}

impl ApprovalOptions {
    const MIN_TIMEOUT: Duration = Duration::from_secs(1);

    /// How long an approver has to decide.
    pub fn timeout(&self) -> Duration {
        self.timeout.get().max(Self::MIN_TIMEOUT)
    }
}

impl Default for ApprovalOptions {
    fn default() -> Self {
        Self {
            timeout: Millis::default(),
            auto_reject: true,
            delivery: Delivery::Auto,
            hold: Millis::default(),
            max_pending: Limit::default(),
            webhook: None,
        }
    }
}

/// The receiver of requests and decisions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// The address that they are sent to.
    #[serde(deserialize_with = "read_as::<WebUrl, _, _>")]
    #[schemars(with = "WebUrl")]
    pub url: Arc<str>,
    /// The secret that they are signed with.
    #[serde(deserialize_with = "read_as::<SigningSecret, _, _>")]
    #[schemars(with = "SigningSecret")]
    pub secret: Secret,
    /// Private addresses that the receiver may have. Gantry connects to no other private address, even if the
    /// receiver's name resolves to one.
    #[serde(default, deserialize_with = "read_list::<IpRange, _, _>")]
    #[schemars(with = "Vec<IpRange>")]
    pub allow_private: Vec<IpNet>,
}

/// An agent and the tools it may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentOptions {
    /// What the agent is for.
    pub description: Option<String>,
    /// The tools it may use: names, globs, `*` for all, `@namespace/tool`; `[]` is none. Or a group with more keys.
    /// All tools unless given.
    #[serde(rename = "tools", deserialize_with = "read_as::<AgentTools, _, _>")]
    #[schemars(with = "AgentTools")]
    pub selection: Selection,
    /// The model that it is written for. This version stores it and runs no model.
    pub model: Option<String>,
    /// Its system prompt. This version stores it and runs no model.
    pub prompt: Option<String>,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self { description: None, selection: Selection::everything(), model: None, prompt: None }
    }
}

/// How the tools of one provider are offered and run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderOptions {
    /// Whether these tools exist at all.
    pub enabled: bool,
    /// The only tools to offer: names or globs; all unless given. `[]` offers none.
    #[serde(rename = "toolsAllowed", alias = "exposedTools", alias = "enabledTools", alias = "includeTools")]
    pub allowed: Option<Vec<Pattern>>,
    /// Tools to leave out: names or globs. It wins over `toolsAllowed`.
    #[serde(rename = "toolsDenied", alias = "disabledTools", alias = "excludeTools")]
    pub denied: Vec<Pattern>,
    /// The queue that calls of these tools go through; none unless given.
    pub queue: Option<Arc<str>>,
    /// How long, in milliseconds, the successful result of a call also answers equal calls. It applies to tools that
    /// say that they only read; for other tools, use `toolsCache`. 0 is off.
    pub cache: Millis<0, { 30 * DAY }>,
    /// How long one of these tools may run; `defaults.toolTimeout` unless given.
    #[serde(rename = "requestTimeoutMs")]
    pub timeout: Millis<0, DAY>,
    /// `cache` for single tools, also for those that can change something.
    pub tools_cache: BTreeMap<ToolKey, Millis<0, { 30 * DAY }>>,
    /// `queue` for single tools; null (in TOML: false) is no queue.
    pub tools_queue: BTreeMap<ToolKey, QueueChoice>,
    /// `requestTimeoutMs` for single tools.
    pub tools_timeout: BTreeMap<ToolKey, Millis<0, DAY>>,
}

impl Default for ProviderOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            allowed: None,
            denied: Vec::new(),
            queue: None,
            cache: Millis::default(),
            timeout: Millis::default(),
            tools_cache: BTreeMap::new(),
            tools_queue: BTreeMap::new(),
            tools_timeout: BTreeMap::new(),
        }
    }
}

/// The queue of a single tool, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = ["string", "null", "boolean"], "title" = "the name of a queue, or null"))]
pub struct QueueChoice(#[schemars(with = "String")] pub Option<Arc<str>>);

const QUEUE_CHOICE: &str = "the name of a queue, or null";

impl<'de> Deserialize<'de> for QueueChoice {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Choice;
        impl Visitor<'_> for Choice {
            type Value = QueueChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(QUEUE_CHOICE)
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<QueueChoice, E> {
                Ok(QueueChoice(Some(name.into())))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<QueueChoice, E> {
                Ok(QueueChoice(None))
            }

            fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<QueueChoice, E> {
                if flag { Err(E::invalid_type(Unexpected::Bool(flag), &self)) } else { self.visit_unit() }
            }
        }
        input.deserialize_any(Choice)
    }
}

impl ProviderOptions {
    /// Whether the provider's tool of this (original) name enters the pool.
    pub(crate) fn admits(&self, origin: &Origin, tool: &str) -> bool {
        let names = own_names(origin, tool);
        let allows = |patterns: &[Pattern]| patterns.iter().any(|pattern| names.are_allowed_by(pattern));
        self.allowed.as_deref().is_none_or(allows) && self.denial(origin, tool).is_none()
    }

    /// The entry of `denied` that keeps a tool out.
    pub(crate) fn denial(&self, origin: &Origin, tool: &str) -> Option<&Pattern> {
        let names = own_names(origin, tool);
        self.denied.iter().find(|pattern| names.are_denied_by(pattern))
    }

    /// The entries of `denied` that mean none of these tools, which is a mistake in a rule that is relied on.
    pub(crate) fn idle_denials(&self, origin: &Origin, tools: &[ToolSpec]) -> impl Iterator<Item = &Pattern> {
        let is_used = |pattern: &&Pattern| {
            tools.iter().any(|tool| own_names(origin, &tool.name).are_denied_by(pattern))
        };
        self.denied.iter().filter(move |pattern| !is_used(pattern))
    }

    /// How calls of this tool are run; what is said of the tool itself wins.
    pub(crate) fn settings(&self, spec: &ToolSpec) -> Settings {
        // A provider-wide cache must not swallow writes: it covers tools that say that they only read.
        let provider_cache = self.cache.some().filter(|_| spec.annotations.effect() == Effect::Read);
        let tool = spec.name.as_str();
        let own_timeout = self.tools_timeout.get(tool).and_then(|time| time.some());
        Settings {
            timeout: own_timeout.or(self.timeout.some()),
            queue: self.tools_queue.get(tool).map_or_else(|| self.queue.clone(), |choice| choice.0.clone()),
            cache: self.tools_cache.get(tool).map_or(provider_cache, |time| time.some()),
        }
    }
}

fn own_names<'a>(origin: &'a Origin, tool: &'a str) -> OwnNames<'a> {
    OwnNames::of(&origin.provider, &origin.namespace, tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::tool::{Annotations, ApprovalRule, ToolKind};

    fn spec(name: &str, read_only: Option<bool>) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            title: None,
            description: String::new(),
            input_schema: serde_json::json!({}).into(),
            output_schema: None,
            annotations: Annotations { read_only_hint: read_only, ..Annotations::default() },
            approval_rule: ApprovalRule::Never,
            raw: None,
            target: None,
        }
    }

    #[test]
    fn the_most_specific_setting_wins() {
        let (ms, queue) = (Duration::from_millis, |name: &str| Some(Arc::from(name)));
        let key = |name: &str| name.parse::<ToolKey>().unwrap();
        let options = ProviderOptions {
            timeout: ms(20).into(),
            queue: queue("all"),
            cache: ms(300).into(),
            tools_timeout: [(key("slow"), ms(90).into())].into(),
            tools_queue: [(key("slow"), QueueChoice(queue("slow"))), (key("free"), QueueChoice(None))].into(),
            tools_cache: [(key("slow"), ms(5).into()), (key("free"), ms(0).into())].into(),
            ..ProviderOptions::default()
        };
        let settings = |name, hint| options.settings(&spec(name, hint));
        assert_eq!(
            settings("slow", Some(false)),
            Settings { timeout: Some(ms(90)), queue: queue("slow"), cache: Some(ms(5)) }
        );
        assert_eq!(
            settings("free", Some(true)),
            Settings { timeout: Some(ms(20)), queue: None, cache: None }
        );
        assert_eq!(settings("other", Some(true)).cache, Some(ms(300)));
        assert_eq!(settings("unannotated", None).cache, None, "what says nothing may write");
        assert_eq!(
            settings("writer", Some(false)).cache,
            None,
            "a provider-wide cache never swallows a write"
        );
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    fn origin(id: &str) -> Origin {
        Origin { provider: id.into(), namespace: id.into(), kind: ToolKind::Mcp }
    }

    #[test]
    fn deny_beats_allow() {
        let options = ProviderOptions {
            allowed: Some(vec![pattern("read_*")]),
            denied: vec![pattern("read_secret")],
            ..ProviderOptions::default()
        };
        let admits = |options: &ProviderOptions, tool| options.admits(&origin("s"), tool);
        assert!(admits(&options, "read_file"));
        assert!(!admits(&options, "read_secret"));
        assert!(!admits(&options, "write_file"));
        assert!(admits(&ProviderOptions::default(), "anything"));
        let nothing = ProviderOptions { allowed: Some(vec![]), ..ProviderOptions::default() };
        assert!(!admits(&nothing, "anything"));
    }

    #[test]
    fn nam_3_a_tool_is_kept_out_by_every_name_that_it_is_known_by() {
        for (tool, text) in [
            ("@x/y", "@x/y"),
            ("my-tool", "my_tool"),
            ("delete_repo", "git_hub__delete_repo"),
            ("delete_repo", "@git-hub/delete_*"),
        ] {
            let denied = ProviderOptions { denied: vec![pattern(text)], ..ProviderOptions::default() };
            assert_eq!(denied.denial(&origin("git-hub"), tool).map(Pattern::as_str), Some(text));
            assert!(!denied.admits(&origin("git-hub"), tool), "{text}");
            let allowed =
                ProviderOptions { allowed: Some(vec![pattern(text)]), ..ProviderOptions::default() };
            assert!(allowed.admits(&origin("git-hub"), tool), "{text}");
            assert!(!allowed.admits(&origin("git-hub"), "other"), "{text}");
        }
        let options = ProviderOptions {
            denied: vec![pattern("@x/y"), pattern("typo"), pattern("gitlab__a")],
            ..ProviderOptions::default()
        };
        let (origin, tools) = (origin("git-hub"), ["a", "@x/y"].map(|name| spec(name, None)));
        let idle: Vec<&str> = options.idle_denials(&origin, &tools).map(Pattern::as_str).collect();
        assert_eq!(idle, ["typo", "gitlab__a"], "as they are written");
    }
}
