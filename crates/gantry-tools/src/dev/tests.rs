//! The development tools as far as they run nothing: what they find in a project, what they would run, what they
//! refuse, what they ask. That they really run things is tested with the whole program, which the jail needs.

mod installs;
mod plans;

use super::ecosystem::Ecosystem;
use super::*;
use crate::options::{CodeOptions, Registries};
use crate::workspace::ProtectedPaths;
use gantry_core::policy::{Preflight, Verdict};
use gantry_core::schema::Schema;
use gantry_core::tool::{ApprovalRule, Effect};
use gantry_core::{Permit, Refusal};
use gantry_provider::testing::{judged, presents_itself, toolset, yes};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A workspace with Gantry's data in it, beside a folder that nothing may touch.
pub(super) struct Bench {
    dir: TempDir,
    tools: ToolBox,
    context: Arc<DevContext>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(Registries::default())
    }

    fn with(registries: Registries) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("ws/.gantry")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        let ws = dir.path().join("ws");
        let protected = ProtectedPaths { hidden: vec![ws.join(".gantry")], ..ProtectedPaths::default() };
        let options = CodeOptions { registries, ..CodeOptions::default() };
        let store = ws.join(".gantry/store");
        let runner = CommandRunner::open(ws.clone(), protected.clone(), store, Vec::new(), options);
        let runner = Arc::new(runner);
        let tools = dev_tools(Arc::clone(&runner)).unwrap();
        let root = WorkspaceRoot::open(&ws, protected).unwrap();
        Self { dir, tools, context: Arc::new(DevContext { root, runner }) }
    }

    pub(super) fn ws(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    pub(super) fn put(self, path: &str, content: &str) -> Self {
        fs::create_dir_all(self.ws(path).parent().unwrap()).unwrap();
        fs::write(self.ws(path), content).unwrap();
        self
    }

    pub(super) fn project(&self, path: &str) -> Result<ProjectDir, CallFailure> {
        ProjectDir::open(&self.context.root, path)
    }

    async fn preflight(&self, arguments: &Value) -> Result<Preflight, CallFailure> {
        self.tools.preflight("install_package", &arguments.to_string()).await
    }

    /// What an approver allowed about an installation.
    async fn approve(&self, arguments: &Value) -> Permit {
        let looked = self.preflight(arguments).await.map_err(|fault| Refusal::from(fault.error));
        let toolset = toolset(self.tools.tools());
        let Ok(Verdict::Ask(question)) = judged(&toolset, ("install_package", arguments), |_| looked) else {
            panic!("an installation always asks")
        };
        yes(question)
    }

    async fn install(&self, permit: &Permit) -> Result<String, CallFailure> {
        self.tools.execute(&crate::testing::context(), permit).await
    }

    /// The question about an installation, or why it is refused.
    async fn asks(&self, arguments: Value) -> String {
        match self.preflight(&arguments).await {
            Ok(verdict) => {
                assert!(verdict.precondition.is_some(), "a yes is bound to something");
                verdict.ask.unwrap()
            }
            Err(CallFailure { error, .. }) => format!("{}: {}", error.code.as_str(), error.message),
        }
    }
}

#[test]
fn the_tools_present_themselves_completely() {
    let bench = Bench::new();
    let tools = bench.tools.tools();
    let shown: Vec<_> = tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.annotations.effect(), tool.approval_rule))
        .collect();
    let expected = [
        ("run_tests", Effect::Write, ApprovalRule::Never),
        ("format_code", Effect::Write, ApprovalRule::Never),
        ("install_package", Effect::Write, ApprovalRule::Depends),
    ];
    assert_eq!(shown, expected);
    for tool in tools {
        presents_itself(tool);
        // Everything may be left out.
        let input = Schema::compile(&tool.input_schema.value()).unwrap();
        input.check(&json!({})).unwrap();
    }
}

#[test]
fn a_project_is_known_by_its_files() {
    let check = |files: &[&str], expected: Result<&str, &str>| {
        let bench = files.iter().fold(Bench::new(), |bench, file| bench.put(&format!("p/{file}"), ""));
        fs::create_dir_all(bench.ws("p")).unwrap();
        let found = Ecosystem::detect(&bench.project("p").unwrap(), None);
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
    let chosen = Ecosystem::detect(&bench.project(".").unwrap(), Some(Ecosystem::Node)).unwrap();
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
    let code = |path: &str| bench.project(path).unwrap_err().error.code.as_str();
    assert_eq!(code("../outside"), "INVALID_PATH");
    assert_eq!(code("/etc"), "INVALID_PATH");
    assert_eq!(code("away"), "INVALID_PATH");
    assert_eq!(code("a/../../outside"), "INVALID_PATH");
    assert_eq!(code(".gantry"), "PERMISSION_DENIED");
    assert_eq!(code("none"), "FILE_NOT_FOUND");
    assert_eq!(code("a/b.txt/c"), "FILE_NOT_FOUND");
    assert_eq!(code(""), "INVALID_PATH");
    assert_eq!(code("pipe"), "INVALID_ARGUMENTS");
    assert!(matches!(code("alias"), "PERMISSION_DENIED" | "INVALID_PATH"));
    let project = bench.project(".").unwrap();
    assert!(project.has("package.json"), "the link itself is there");
    assert_eq!(project.text(Path::new("package.json")), None);
    assert_eq!(project.text(Path::new("pipe")), None);
    assert_eq!(bench.project("link").unwrap().folder, PathBuf::from("a"));
    let file = bench.project("./a/b.txt").unwrap();
    assert_eq!((file.folder, file.file), ("a".into(), Some("b.txt".into())));
}

#[tokio::test]
async fn a_crash_after_a_program_has_run_does_not_say_that_nothing_happened() {
    let crash =
        async |effect| run_blocking(effect, || panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
    let (before, after) = (crash(EffectState::None).await, crash(EffectState::Done).await);
    assert_eq!((before.effect, after.effect), (EffectState::None, EffectState::Done));
    assert!(after.error.message.contains("the program has run"), "{}", after.error.message);
}
