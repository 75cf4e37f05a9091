//! What a runtime is set up with: limits, queues, policies, agents, and how each provider's tools are run.

use crate::queue;
use crate::servers::ServerSettings;
use gantry_core::pattern::Pattern;
use gantry_core::policy::Policies;
use gantry_core::tool::{Effect, Settings, ToolSpec};
use gantry_core::toolset::Selection;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The set-up of a runtime.
#[derive(Debug)]
pub struct Options {
    /// The project's name.
    pub project: Arc<str>,
    /// The data folder.
    pub data: PathBuf,
    /// The time limit of a call whose tool and provider have none.
    pub tool_timeout: Duration,
    /// Bytes of a result beyond which it is stored and replaced by a handle.
    pub response_max_bytes: usize,
    /// Tokens of tool results that a session may take, if limited.
    pub context_budget: Option<u64>,
    /// How long stored outputs and standing sessions outlive their last use.
    pub retention: Duration,
    /// Calls in flight at once in the whole process; more are shed.
    pub max_calls: usize,
    /// The queues.
    pub queues: Vec<queue::Options>,
    /// The policies.
    pub policies: Policies,
    /// The tools that each agent sees.
    pub agents: HashMap<Arc<str>, Selection>,
    /// How the tools of each provider are run, by the provider's id.
    pub providers: HashMap<Arc<str>, ProviderOptions>,
    /// The MCP servers.
    pub servers: Vec<ServerSettings>,
    /// How many of them start at once.
    pub init_concurrency: usize,
    /// The file that pins the definitions of their tools; it need not exist.
    pub lock_file: PathBuf,
}

impl Options {
    /// The defaults, with data in this folder.
    #[must_use]
    pub fn new(data: PathBuf) -> Self {
        Self {
            project: "default".into(),
            data,
            tool_timeout: Duration::from_millis(60_000),
            response_max_bytes: 100_000,
            context_budget: None,
            retention: Duration::from_secs(3600),
            max_calls: 1024,
            queues: Vec::new(),
            policies: Policies::default(),
            agents: HashMap::new(),
            providers: HashMap::new(),
            servers: Vec::new(),
            init_concurrency: 8,
            lock_file: PathBuf::from("gantry.lock"),
        }
    }
}

/// How the tools of one provider are run.
#[derive(Debug, Clone, Default)]
pub struct ProviderOptions {
    /// Only tools that match; nothing written means all, an empty list none.
    pub allowed: Option<Vec<Pattern>>,
    /// No tools that match, whatever `allowed` says.
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
    #[must_use]
    pub fn admits(&self, tool: &str) -> bool {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        self.allowed.as_deref().is_none_or(matches) && !matches(&self.denied)
    }

    /// How calls of this tool are run; what is said of the tool itself wins.
    #[must_use]
    pub fn settings(&self, spec: &ToolSpec) -> Settings {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::tool::{Annotations, OwnRule};

    fn spec(name: &str, read_only: Option<bool>) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            title: None,
            description: String::new(),
            input_schema: serde_json::json!({}),
            output_schema: None,
            annotations: Annotations { read_only_hint: read_only, ..Annotations::default() },
            own_rule: OwnRule::Never,
            raw: None,
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

    #[test]
    fn deny_beats_allow() {
        let pattern = |text| Pattern::parse(text).unwrap();
        let options = ProviderOptions {
            allowed: Some(vec![pattern("read_*")]),
            denied: vec![pattern("read_secret")],
            ..ProviderOptions::default()
        };
        assert!(options.admits("read_file"));
        assert!(!options.admits("read_secret"));
        assert!(!options.admits("write_file"));
        assert!(ProviderOptions::default().admits("anything"));
        assert!(!ProviderOptions { allowed: Some(vec![]), ..ProviderOptions::default() }.admits("anything"));
    }
}
