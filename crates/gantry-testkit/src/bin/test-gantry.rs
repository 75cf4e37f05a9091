//! The test Gantry: the program itself, with one more provider for misbehaviour that no real tool shows.

use gantry_provider::Provider;
use gantry_runtime::options::ProviderOptions;
use gantry_testkit::coordination::coordination;
use gantry_testkit::provider::test_tools;
use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // How the test tools are run: the settings that a server has in a configuration file.
    let options = std::env::var("TEST_GANTRY_SETTINGS")
        .map_or_else(|_| Ok(ProviderOptions::default()), |text| serde_json::from_str(&text));
    let Ok(options) = options else { return ExitCode::from(2) };
    let mut providers: Vec<Arc<dyn Provider>> = vec![Arc::new(test_tools())];
    if std::env::var_os("TEST_GANTRY_COORDINATION").is_some() {
        providers.push(Arc::new(coordination()));
    }
    let extra = gantry::Extra { providers, options: HashMap::from([("test".into(), options)]) };
    gantry::run(std::env::args_os(), extra)
}
