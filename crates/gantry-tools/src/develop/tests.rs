//! The tools for developers as far as they run nothing: what they find in a project, what they would run, what they
//! refuse, what they ask. That they really run things is tested with the whole program, which the jail needs.

mod installs;
mod plans;

use super::act::{Format, Install, Test};
use super::ecosystem::Ecosystem;
use super::site::Site;
use super::*;
use crate::command::runner::{ResourceLimits, RunnerOptions};
use crate::workspace::Fenced;
use gantry_core::schema::Schema;
use gantry_core::tool::{Effect, OwnRule};
use gantry_provider::testing::presents_itself;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A workspace with Gantry's data in it, beside a folder that nothing may touch.
pub(super) struct Bench {
    dir: TempDir,
    develop: Develop,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(Registries::default())
    }

    fn with(registries: Registries) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("ws/.gantry")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        let quota = ResourceLimits {
            keys: "code.builds",
            memory: 1 << 30,
            cpu: Duration::from_mins(1),
            processes: 64,
            written: 1 << 30,
        };
        let runner = CommandRunner::open(RunnerOptions {
            workspace: dir.path().join("ws"),
            fenced: Fenced { hidden: vec![dir.path().join("ws/.gantry")], ..Fenced::default() },
            store: dir.path().join("ws/.gantry/store"),
            code: quota,
            builds: quota,
            network: false,
            private: Vec::new(),
            toolchains: Vec::new(),
        });
        let develop = Develop::new(Arc::new(runner), DevelopOptions { registries });
        Self { dir, develop }
    }

    pub(super) fn ws(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    pub(super) fn put(self, path: &str, content: &str) -> Self {
        fs::create_dir_all(self.ws(path).parent().unwrap()).unwrap();
        fs::write(self.ws(path), content).unwrap();
        self
    }

    pub(super) fn site(&self, path: &str) -> Result<Site, Fault> {
        Site::find(self.develop.runner.options(), path)
    }

    /// The question about an installation, or why it is refused.
    async fn asks(&self, arguments: Value) -> String {
        match self.develop.look("install_package", &arguments.to_string()).await {
            Ok(verdict) => {
                assert!(verdict.precondition.is_some(), "a yes is bound to something");
                verdict.ask.unwrap()
            }
            Err(refusal) => format!("{}: {}", refusal.error().code.as_str(), refusal.error().message),
        }
    }
}

#[test]
fn the_tools_present_themselves_completely() {
    let bench = Bench::new();
    let tools = bench.develop.tools();
    let shown: Vec<_> =
        tools.iter().map(|tool| (tool.name.as_str(), tool.annotations.effect(), tool.own_rule)).collect();
    let expected = [
        ("run_tests", Effect::Write, OwnRule::Never),
        ("format_code", Effect::Write, OwnRule::Never),
        ("install_package", Effect::Write, OwnRule::Depends),
    ];
    assert_eq!(shown, expected);
    for tool in tools {
        presents_itself(tool);
        // Everything may be left out.
        let input = Schema::compile(&tool.input_schema.value()).unwrap();
        input.check(&json!({})).unwrap();
        Act::parse(&tool.name, "{}").unwrap();
    }
    assert_eq!(Act::parse("run_code", "{}").unwrap_err().code.as_str(), "TOOL_NOT_FOUND");
}

#[test]
fn a_project_is_known_by_its_files() {
    let check = |files: &[&str], expected: Result<&str, &str>| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(&format!("p/{file}"), ""));
        fs::create_dir_all(bench.ws("p")).unwrap();
        let found = Ecosystem::detect(&bench.site("p").unwrap(), None);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.name(), expected, "{files:?}"),
            (Err(fault), Err(words)) => assert!(fault.error.message.contains(words), "{:?}", fault.error),
            (found, _) => panic!("{files:?}: {found:?}"),
        }
    };
    check(&["Cargo.toml", "src/lib.rs"], Ok("cargo"));
    check(&["package.json"], Ok("node"));
    check(&["pyproject.toml"], Ok("python"));
    check(&["requirements.txt", "setup.py"], Ok("python"));
    check(&["go.mod"], Ok("go"));
    check(&["tests/test_a.py"], Ok("python"));
    check(&["a.test.js"], Ok("node"));
    check(&[], Err("holds no project that is known"));
    check(&["main.rs", "notes.txt"], Err("holds no project that is known"));
    check(&["package.json", "Cargo.toml"], Err("holds several projects: cargo, node; choose one"));
    let bench = Bench::new().put("package.json", "").put("Cargo.toml", "");
    let chosen = Ecosystem::detect(&bench.site(".").unwrap(), Some(Ecosystem::Node)).unwrap();
    assert_eq!(chosen, Ecosystem::Node);
}

#[test]
fn only_the_workspace_is_looked_at() {
    let bench = Bench::new().put("a/b.txt", "x").put(".gantry/Cargo.toml", "");
    std::os::unix::fs::symlink(bench.dir.path().join("outside"), bench.ws("away")).unwrap();
    std::os::unix::fs::symlink(bench.ws(".gantry"), bench.ws("alias")).unwrap();
    std::os::unix::fs::symlink("a", bench.ws("link")).unwrap();
    fs::write(bench.dir.path().join("outside/package.json"), r#"{"scripts":{"test":"x"}}"#).unwrap();
    std::os::unix::fs::symlink(bench.dir.path().join("outside/package.json"), bench.ws("package.json"))
        .unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, bench.ws("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let code = |path: &str| bench.site(path).unwrap_err().error.code.as_str();
    assert_eq!(code("../outside"), "INVALID_PATH");
    assert_eq!(code("/etc"), "INVALID_PATH");
    assert_eq!(code("away"), "INVALID_PATH");
    assert_eq!(code("a/../../outside"), "INVALID_PATH");
    assert_eq!(code(".gantry"), "PERMISSION_DENIED");
    assert_eq!(code("none"), "FILE_NOT_FOUND");
    assert_eq!(code("a/b.txt/c"), "FILE_NOT_FOUND");
    assert_eq!(code(""), "INVALID_ARGUMENTS");
    assert_eq!(code("pipe"), "INVALID_ARGUMENTS");
    assert!(matches!(code("alias"), "PERMISSION_DENIED" | "INVALID_PATH"));
    let site = bench.site(".").unwrap();
    assert!(site.has("package.json"), "the link itself is there");
    assert_eq!(site.text("package.json"), None);
    assert_eq!(site.read("pipe"), None);
    assert_eq!(bench.site("link").unwrap().folder, PathBuf::from("a"));
    let file = bench.site("./a/b.txt").unwrap();
    assert_eq!((file.folder, file.file), ("a".into(), Some("b.txt".into())));
}

#[tokio::test]
async fn a_crash_after_a_program_has_run_does_not_say_that_nothing_happened() {
    let before = site::off_thread(|| panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
    let after = site::after_run(|| panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
    assert_eq!(
        (before.effect, after.effect),
        (gantry_core::EffectState::None, gantry_core::EffectState::Done)
    );
    assert!(after.error.message.contains("the program has run"), "{}", after.error.message);
}
