//! The test Gantry: the program itself, with one more provider for misbehaviour that no real tool shows.

use gantry_provider::Provider;
use gantry_runtime::options::ProviderOptions;
use gantry_testkit::coordination::coordination;
use gantry_testkit::provider::test_tools;
use serde::Deserialize;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How the test tools are run: the settings that a server has in a configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Settings {
    queue: Option<Arc<str>>,
    cache: Option<u64>,
    request_timeout_ms: Option<u64>,
    tools_queue: HashMap<String, Option<Arc<str>>>,
    tools_cache: HashMap<String, u64>,
    tools_timeout: HashMap<String, u64>,
}

fn main() -> ExitCode {
    let fillers = std::env::var("TEST_GANTRY_FILLERS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let settings =
        std::env::var("TEST_GANTRY_SETTINGS").ok().map(|text| serde_json::from_str::<Settings>(&text));
    let Ok(settings) = settings.unwrap_or_else(|| Ok(Settings::default())) else { return ExitCode::from(2) };
    let mut providers: Vec<Arc<dyn Provider>> = vec![Arc::new(test_tools(fillers))];
    if std::env::var_os("TEST_GANTRY_COORDINATION").is_some() {
        providers.push(Arc::new(coordination()));
    }
    let extra = gantry::Extra { providers, options: HashMap::from([("test".into(), options(settings))]) };
    gantry::run(std::env::args_os(), extra)
}

fn options(settings: Settings) -> ProviderOptions {
    let times = |map: HashMap<String, u64>| {
        map.into_iter().map(|(tool, ms)| (tool, Duration::from_millis(ms))).collect()
    };
    ProviderOptions {
        timeout: settings.request_timeout_ms.map(Duration::from_millis),
        queue: settings.queue,
        cache: settings.cache.map(Duration::from_millis),
        tools_timeout: times(settings.tools_timeout),
        tools_queue: settings.tools_queue,
        tools_cache: times(settings.tools_cache),
        ..ProviderOptions::default()
    }
}
