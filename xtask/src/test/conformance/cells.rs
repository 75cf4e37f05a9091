//! The measurements: who is judged, through what, by which set.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::checks::Checks;
use super::suite::{Requirements, Suite};
use crate::shell::{Program, Running};

const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long Gantry may take to find the tools of the fixture.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(200);
/// A tool of the fixture: when Gantry lists it, the two are connected.
const SOME_TOOL: &str = "test_simple_text";

/// The client scenarios of each set, without those about authorization and extensions.
const CLIENT_SCENARIOS: [(Requirements, &[&str]); 2] = [
    (
        Requirements::Legacy,
        &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
            "json-schema-2020-12-preservation",
        ],
    ),
    (
        Requirements::Modern,
        &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
        ],
    ),
];

/// What the fixture speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Dual,
    Legacy,
    Modern,
}

impl Era {
    pub(super) const ALL: [Self; 3] = [Self::Dual, Self::Legacy, Self::Modern];

    fn name(self) -> &'static str {
        match self {
            Self::Dual => "dual",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    fn speaks(self, set: Requirements) -> bool {
        match self {
            Self::Dual => true,
            Self::Legacy => set == Requirements::Legacy,
            Self::Modern => set == Requirements::Modern,
        }
    }
}

/// One measurement: the same set directly, where that makes sense, and through Gantry.
#[derive(Debug)]
pub(super) struct Cell {
    /// Who is judged: the upstream's era, or `client`.
    pub(super) subject: &'static str,
    pub(super) set: Requirements,
    pub(super) direct: Option<Checks>,
    /// An error when Gantry could not be measured at all.
    pub(super) through: Result<Checks>,
}

/// Everything that a measurement needs.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    suite: &'a Suite,
    folder: PathBuf,
    gantry: PathBuf,
    fixture: PathBuf,
}

impl<'a> Bench<'a> {
    pub(super) fn new(suite: &'a Suite, home: &Path, programs: &Path) -> Result<Self> {
        let folder = home.join("runs");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // The programs are started in other folders, so their paths must not depend on this one.
        let programs =
            programs.canonicalize().with_context(|| format!("{} is missing", programs.display()))?;
        let folder = folder.canonicalize().context("the folder for the runs is gone")?;
        Ok(Self { suite, folder, gantry: programs.join("gantry"), fixture: programs.join("fixture") })
    }

    /// Both sets against a fixture of this era and against Gantry before it.
    pub(super) fn servers(&self, era: Era) -> Result<Vec<Cell>> {
        let name = era.name();
        let mut fixture =
            Program::new(&self.fixture, &self.folder).args(["--era", name, "--port", "0"]).start()?;
        let upstream =
            fixture.wait_for(START_PATIENCE, |line| line.starts_with("http://").then(|| line.to_owned()))?;
        let mut direct = Vec::new();
        for set in Requirements::ALL {
            let results = self.results(name, set, "direct");
            let judged = era.speaks(set).then(|| self.suite.judge_server(&upstream, set, &results));
            direct.push((set, judged.transpose()?));
        }

        let gantry = self.start_gantry(name, &upstream);
        let cells = direct.into_iter().map(|(set, direct)| {
            let through = match &gantry {
                Ok((_, url)) => self.suite.judge_server(url, set, &self.results(name, set, "through")),
                Err(error) => Err(anyhow::anyhow!("{error:#}")),
            };
            Cell { subject: name, set, direct, through }
        });
        Ok(cells.collect())
    }

    /// The client scenarios against the driving client, and against Gantry driven by it.
    pub(super) fn clients(&self) -> Result<Vec<Cell>> {
        let measure = |(set, scenarios): (Requirements, &[&str])| {
            let judge = |way: &str, gantry: Option<&Path>| {
                let mut checks = Checks::default();
                for scenario in scenarios {
                    let results = self.results("client", set, way).join(scenario);
                    checks.extend(self.suite.judge_client(scenario, set, gantry, &results)?);
                }
                Ok(checks)
            };
            let direct = Some(judge("direct", None)?);
            Ok(Cell { subject: "client", set, direct, through: judge("through", Some(&self.gantry)) })
        };
        CLIENT_SCENARIOS.into_iter().map(measure).collect()
    }

    fn results(&self, subject: &str, set: Requirements, way: &str) -> PathBuf {
        self.folder.join(format!("{subject}-{}-{way}", set.revision()))
    }

    /// Starts Gantry with the fixture as its only server, and waits until it has the fixture's tools.
    fn start_gantry(&self, name: &str, upstream: &str) -> Result<(Running, String)> {
        let home = self.folder.join(format!("gantry-{name}"));
        if home.exists() {
            fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
        }
        fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
        let config = format!(
            "server: {{ bind: 127.0.0.1:0 }}\n\
             mcpServers:\n  fixture: {{ type: http, url: \"{upstream}\", prefix: false, roots: true }}\n"
        );
        fs::write(home.join("gantry.yaml"), config).context("cannot write gantry.yaml")?;

        let mut gantry = Program::new(&self.gantry, &home).args(["serve"]).start()?;
        let url = gantry.wait_for(START_PATIENCE, |line| {
            let address = line.trim().strip_prefix("open  ")?;
            Some(format!("{}/mcp", address.trim_end_matches('/')))
        })?;
        let end = Instant::now() + CONNECT_PATIENCE;
        while !self.lists(&home, SOME_TOOL) {
            if Instant::now() >= end {
                bail!("Gantry did not find the tools of the {name} fixture; it said:\n{}", gantry.said());
            }
            thread::sleep(GLANCE);
        }
        Ok((gantry, url))
    }

    /// Whether the Gantry that runs in this folder has a tool.
    fn lists(&self, home: &Path, tool: &str) -> bool {
        let listed = Program::new(&self.gantry, home).args(["tools", "--format", "json"]).probe();
        listed.is_some_and(|text| text.contains(tool))
    }
}
