//! The options of a runtime: limits, policies, agents, servers, and how each provider's tools are run.

use gantry_core::names::OwnNames;
use gantry_core::pattern::Pattern;
use gantry_core::policy::Policies;
use gantry_core::tool::{Effect, Origin, Settings, ToolSpec};
use gantry_core::toolset::Selection;
use gantry_provider::Provider;
use gantry_provider::options::Secret;
use gantry_provider::server::{NoServers, ServerConfig, ServerFactory};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A project as it is to be run: everything that a runtime of it is built from, any number of times.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The options.
    pub options: Options,
    /// Gantry's own providers.
    pub providers: Vec<Arc<dyn Provider>>,
}

/// A server of a project.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// How it is reached.
    pub config: Arc<dyn ServerConfig>,
    /// How its tools are run.
    pub options: ProviderOptions,
}

impl ServerPlan {
    /// The server's id.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        self.config.id()
    }
}

/// The options of a runtime.
#[derive(Debug, Clone)]
pub struct Options {
    /// The project's name.
    pub project: Arc<str>,
    /// The agent that the runtime is for alone, while it is active.
    pub active: Option<Arc<str>>,
    /// The data folder.
    pub data: PathBuf,
    /// The time limit of a call whose tool and provider have none.
    pub tool_timeout: Duration,
    /// Bytes of a result beyond which it is stored and replaced by a handle.
    pub response_max_bytes: usize,
    /// Tokens of tool results that a session may take, if limited.
    pub context_budget: Option<u64>,
    /// How long stored outputs and shared sessions outlive their last use.
    pub retention: Duration,
    /// How deep agents may call agents.
    pub max_depth: u32,
    /// The policies, and what else makes calls wait.
    pub policies: Arc<Policies>,
    /// How calls that wait for a person are put to one.
    pub approvals: ApprovalOptions,
    /// The agents.
    pub agents: BTreeMap<Arc<str>, AgentOptions>,
    /// How the tools of each provider are run, by the provider's id.
    pub providers: HashMap<Arc<str>, ProviderOptions>,
    /// The servers.
    pub servers: Vec<ServerPlan>,
    /// Makes them, for each runtime anew.
    pub server_factory: Arc<dyn ServerFactory>,
}

impl Options {
    /// The defaults, with data in this folder.
    #[must_use]
    pub fn new(data: PathBuf) -> Self {
        Self {
            project: "default".into(),
            active: None,
            data,
            tool_timeout: Duration::from_millis(60_000),
            response_max_bytes: 100_000,
            context_budget: None,
            retention: Duration::from_secs(3600),
            max_depth: 2,
            policies: Arc::default(),
            approvals: ApprovalOptions::default(),
            agents: BTreeMap::new(),
            providers: HashMap::new(),
            servers: Vec::new(),
            server_factory: Arc::new(NoServers),
        }
    }
}

/// How a held call reaches a person, and how its caller is kept waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// How calls that wait for a person are put to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalOptions {
    /// How long a person has to decide (`approvalTimeoutMs`).
    pub timeout: Duration,
    /// Whether a call is rejected when no approver decides in time (`autoRejectOnTimeout`); otherwise it goes on waiting.
    pub auto_reject: bool,
    /// How it reaches a person (`delivery`).
    pub delivery: Delivery,
    /// How long a call is held open for a client that is sent progress (`holdMs`).
    pub hold: Duration,
    /// How many calls of one caller may wait at once (`maxPending`).
    pub max_pending: u32,
    /// Where requests and decisions are announced (`webhook`).
    pub webhook: Option<Webhook>,
}

impl Default for ApprovalOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(600_000),
            auto_reject: true,
            delivery: Delivery::Auto,
            hold: Duration::from_secs(300),
            max_pending: 1000,
            webhook: None,
        }
    }
}

/// Where requests and decisions are announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address that they are sent to.
    pub url: Arc<str>,
    /// The secret that they are signed with.
    pub secret: Secret,
    /// Private addresses that it may be at.
    pub allow_private: Vec<Arc<str>>,
}

/// An agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOptions {
    /// What it is for.
    pub description: Option<String>,
    /// The model that it is meant for.
    pub model: Option<String>,
    /// Its system prompt.
    pub prompt: Option<String>,
    /// The tools that it sees.
    pub selection: Selection,
}

/// How the tools of one provider are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderOptions {
    /// Only tools that match; nothing written means all, an empty list none.
    pub allowed: Option<Vec<Pattern>>,
    /// No tools that match, also if `allowed` names them.
    pub denied: Vec<Pattern>,
    /// The time limit of its calls.
    pub timeout: Option<Duration>,
    /// The queue of its calls.
    pub queue: Option<Arc<str>>,
    /// How long its answers may be given again.
    pub cache: Option<Duration>,
    /// Time limits of single tools.
    pub tools_timeout: HashMap<String, Duration>,
    /// Queues of single tools; none means no queue.
    pub tools_queue: HashMap<String, Option<Arc<str>>>,
    /// Cache times of single tools.
    pub tools_cache: HashMap<String, Duration>,
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
        let provider_cache = self.cache.filter(|_| spec.annotations.effect() == Effect::Read);
        Settings {
            timeout: self.tools_timeout.get(&spec.name).copied().or(self.timeout),
            queue: self.tools_queue.get(&spec.name).cloned().unwrap_or_else(|| self.queue.clone()),
            cache: self
                .tools_cache
                .get(&spec.name)
                .copied()
                .or(provider_cache)
                .filter(|time| !time.is_zero()),
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
        let options = ProviderOptions {
            timeout: Some(ms(20)),
            queue: queue("all"),
            cache: Some(ms(300)),
            tools_timeout: HashMap::from([("slow".into(), ms(90))]),
            tools_queue: HashMap::from([("slow".into(), queue("slow")), ("free".into(), None)]),
            tools_cache: HashMap::from([("slow".into(), ms(5)), ("free".into(), ms(0))]),
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
