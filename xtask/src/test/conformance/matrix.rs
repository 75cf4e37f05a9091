//! The measurements: each subject against each set of requirements, directly and through Gantry.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::checks::Checks;
use super::suite::Suite;
use crate::shell::{BackgroundProcess, Program};

const START_TIMEOUT: Duration = Duration::from_secs(20);
/// For Gantry, to find the tools of the fixture.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// When Gantry lists this tool of the fixture, the two are connected.
const FIXTURE_TOOL: &str = "test_simple_text";

/// The sets of requirements, each named after its revision of the protocol.
pub(super) const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";
const SETS: [&str; 2] = [LEGACY, MODERN];

/// The eras that the fixture speaks, each with the sets that it can meet by itself.
pub(super) const ERAS: [(&str, &[&str]); 3] = [("dual", &SETS), ("legacy", &[LEGACY]), ("modern", &[MODERN])];

/// The client scenarios of each set, without those about authorization and extensions.
const CLIENT_SCENARIOS: [(&str, &str); 2] = [
    (
        LEGACY,
        "initialize tools_call elicitation-sep1034-client-defaults sse-retry json-schema-2020-12-preservation",
    ),
    (
        MODERN,
        "tools_call request-metadata sep-2322-client-request-state http-standard-headers http-custom-headers \
         http-invalid-tool-headers json-schema-ref-no-deref json-schema-2020-12-preservation",
    ),
];

/// One measurement: the same set directly, where that makes sense, and through Gantry.
#[derive(Debug)]
pub(super) struct MatrixCell {
    /// What is judged: the era of the upstream, or `client`.
    pub(super) subject: &'static str,
    pub(super) set: &'static str,
    pub(super) direct: Option<Checks>,
    pub(super) through: Checks,
}

/// The suite, the programs and the folder for results.
#[derive(Debug)]
pub(super) struct ConformanceRun<'a> {
    suite: &'a Suite,
    folder: PathBuf,
    gantry: PathBuf,
    fixture: PathBuf,
}

/// Makes the folder, without what an earlier run left in it.
pub(super) fn make_empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

impl<'a> ConformanceRun<'a> {
    pub(super) fn new(suite: &'a Suite, home: &Path, programs: &Path) -> Result<Self> {
        let [gantry, fixture] = ["gantry", "fixture"].map(|name| programs.join(name));
        let folder = home.join("runs");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { suite, folder, gantry, fixture })
    }

    /// Both sets against Gantry in front of a fixture of this era, and those that the fixture can meet against it alone.
    pub(super) fn servers(&self, era: &'static str, own_sets: &[&str]) -> Result<Vec<MatrixCell>> {
        let fixture = Program::new(&self.fixture, &self.folder).args(["--era", era, "--port", "0"]);
        let mut fixture = fixture.start()?;
        let address = |line: &str| line.starts_with("http://").then(|| line.to_owned());
        let upstream = fixture.wait_for_line(START_TIMEOUT, address)?;
        let mut direct = Vec::new();
        for set in SETS {
            let results = self.results(era, set, "direct");
            let judged = own_sets.contains(&set).then(|| self.suite.judge_server(&upstream, set, &results));
            direct.push((set, judged.transpose()?));
        }

        let (_gantry, url) = self.start_gantry(era, &upstream)?;
        let cells = direct.into_iter().map(|(set, direct)| {
            let through = self.suite.judge_server(&url, set, &self.results(era, set, "through"))?;
            Ok(MatrixCell { subject: era, set, direct, through })
        });
        cells.collect()
    }

    /// The client scenarios against the driving client, and against Gantry between it and the suite.
    pub(super) fn clients(&self) -> Result<Vec<MatrixCell>> {
        let measure = |(set, scenarios): (&'static str, &str)| {
            let judge = |way: &str, gantry: Option<&Path>| -> Result<Checks> {
                let mut checks = Checks::default();
                for scenario in scenarios.split_whitespace() {
                    let results = self.results("client", set, way).join(scenario);
                    checks.extend(self.suite.judge_client(scenario, set, gantry, &results)?);
                }
                Ok(checks)
            };
            let direct = Some(judge("direct", None)?);
            Ok(MatrixCell { subject: "client", set, direct, through: judge("through", Some(&self.gantry))? })
        };
        CLIENT_SCENARIOS.into_iter().map(measure).collect()
    }

    fn results(&self, subject: &str, set: &str, way: &str) -> PathBuf {
        self.folder.join(format!("{subject}-{set}-{way}"))
    }

    /// Starts Gantry with the fixture as its only MCP server, and waits until it has the fixture's tools.
    fn start_gantry(&self, name: &str, upstream: &str) -> Result<(BackgroundProcess, String)> {
        let home = self.folder.join(format!("gantry-{name}"));
        make_empty(&home)?;
        let config = format!(
            "server: {{ bind: 127.0.0.1:0 }}\n\
             mcpServers:\n  fixture: {{ type: http, url: \"{upstream}\", prefix: false, roots: true }}\n"
        );
        fs::write(home.join("gantry.yaml"), config).context("cannot write gantry.yaml")?;

        let mut gantry = Program::new(&self.gantry, &home).args(["serve"]).start()?;
        let url = gantry.wait_for_line(START_TIMEOUT, |line| {
            let address = line.trim().strip_prefix("open  ")?;
            Some(format!("{}/mcp", address.trim_end_matches('/')))
        })?;
        let connected = gantry.wait(CONNECT_TIMEOUT, |_| {
            let listed = Program::new(&self.gantry, &home).args(["tools", "--format", "json"]).probe();
            Ok(listed.is_some_and(|text| text.contains(FIXTURE_TOOL)).then_some(()))
        });
        connected.with_context(|| format!("Gantry found no tools of the {name} fixture"))?;
        Ok((gantry, url))
    }
}
