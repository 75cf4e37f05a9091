//! The file tools, called as the pipeline calls them: judged, asked about, and run by a permit.

mod allowed;
mod approve;
mod catalogue;
mod confine;
mod keep;
mod race;
mod work;

use super::*;
use crate::testing::context;
use gantry_core::policy::Verdict;
use gantry_core::{Permit, Refusal, Toolset};
use gantry_provider::testing::{Answer, answer, judged, presents_itself, refused, toolset, yes};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Tests are threads that may block; the tools are not.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// A workspace `ws` with protected data in `ws/.gantry`, beside a folder `outside` that nothing may touch.
struct Bench {
    dir: TempDir,
    root: Arc<WorkspaceRoot>,
    provider: ToolBox,
    toolset: Toolset,
}

impl Bench {
    fn new() -> Self {
        // Durable writes are not what these tests wait for, so they run in memory where that is possible.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        fs::create_dir_all(dir.path().join("ws/.gantry")).unwrap();
        fs::write(dir.path().join("ws/.gantry/gantry.db"), "SECRET").unwrap();
        fs::create_dir_all(dir.path().join("outside/sub")).unwrap();
        fs::write(dir.path().join("outside/secret"), "SECRET").unwrap();
        fs::write(dir.path().join("outside/sub/secret"), "SECRET").unwrap();
        let hidden = hiding(dir.path().join("ws/.gantry"));
        let root = Arc::new(WorkspaceRoot::open(&dir.path().join("ws"), hidden).unwrap());
        let provider = all_tools(&root);
        let toolset = toolset(provider.tools());
        Self { dir, root, provider, toolset }
    }

    /// The same files, worked on in another way.
    fn on(self, root: WorkspaceRoot) -> Self {
        let root = Arc::new(root);
        Self { provider: all_tools(&root), root, ..self }
    }

    /// The same files with another fence around them.
    fn fenced(self, fenced: ProtectedPaths) -> Self {
        let root = WorkspaceRoot::open(&self.ws(""), fenced).unwrap();
        self.on(root)
    }

    fn ws(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.dir.path().join("outside").join(path)
    }

    fn put(&self, path: &str, content: &str) {
        fs::create_dir_all(self.ws(path).parent().unwrap()).unwrap();
        fs::write(self.ws(path), content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.ws(path)).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.ws(path)).unwrap()
    }

    /// Everything in a folder, links not followed, with what is in the files.
    fn tree(&self, folder: &str) -> Vec<(PathBuf, String)> {
        fn add(dir: &Path, all: &mut Vec<(PathBuf, String)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let kind = fs::symlink_metadata(&path).unwrap().file_type();
                if kind.is_dir() {
                    add(&path, all);
                }
                let content = if kind.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
                all.push((path, content));
            }
        }
        let mut all = Vec::new();
        add(&self.dir.path().join(folder), &mut all);
        all.sort();
        all
    }

    fn judge(&self, tool: &str, arguments: &Value) -> Result<Verdict, Refusal> {
        judged(&self.toolset, (tool, arguments), |arguments| {
            let looked = RUNTIME.block_on(self.provider.preflight(tool, arguments));
            looked.map_err(|fault| Refusal::from(fault.error))
        })
    }

    /// The permit for a call, with a person's yes if it needs one.
    fn permit(&self, tool: &str, arguments: &Value) -> Result<Permit, Refusal> {
        match self.judge(tool, arguments)? {
            Verdict::Allow(permit) => Ok(permit),
            Verdict::Deny(refusal) => Err(refusal),
            Verdict::Ask(question) => Ok(yes(question)),
        }
    }

    fn run(&self, permit: &Permit) -> Answer {
        answer(permit, RUNTIME.block_on(self.provider.execute(&context(), permit)))
    }

    /// Calls a tool; a question stays a question.
    #[expect(clippy::needless_pass_by_value, reason = "a call reads better with its arguments in place")]
    fn call(&self, tool: &str, arguments: Value) -> Answer {
        match self.judge(tool, &arguments) {
            Err(refusal) | Ok(Verdict::Deny(refusal)) => refused(&refusal),
            Ok(Verdict::Ask(question)) => Answer::Asked(question.reason()),
            Ok(Verdict::Allow(permit)) => self.run(&permit),
        }
    }

    /// Calls a tool; a person says yes to every question.
    #[expect(clippy::needless_pass_by_value, reason = "a call reads better with its arguments in place")]
    fn approved(&self, tool: &str, arguments: Value) -> Answer {
        match self.permit(tool, &arguments) {
            Ok(permit) => self.run(&permit),
            Err(refusal) => refused(&refusal),
        }
    }
}

/// A call of each tool that takes this path.
fn every_tool(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("list_directory", json!({ "path": path, "recursive": true, "includeHidden": true })),
        ("read_file", json!({ "path": path })),
        ("write_file", json!({ "path": path, "content": "WRITTEN" })),
        ("write_file", json!({ "path": path, "content": "WRITTEN", "createDirs": true })),
        ("move_file", json!({ "from": path, "to": "moved", "overwrite": true })),
        ("move_file", json!({ "from": "mover", "to": path, "overwrite": true })),
        ("delete_file", json!({ "path": path, "recursive": true })),
    ]
}

/// A call that was permitted without a look at the files.
fn unjudged<Args: DeserializeOwned>(args: Value) -> PermittedCall<Args> {
    let args = serde_json::from_value(args).unwrap();
    PermittedCall::unpermitted(args, None, CancellationToken::new())
}

/// Everything below this path is out of reach.
fn hiding(path: PathBuf) -> ProtectedPaths {
    ProtectedPaths { hidden: vec![path], ..ProtectedPaths::default() }
}

#[test]
fn a_workspace_that_is_no_folder_says_so() {
    let bench = Bench::new();
    let open = |path: &str, hidden| {
        let fenced = ProtectedPaths { hidden, ..ProtectedPaths::default() };
        file_tools(&bench.ws(path), fenced).unwrap_err().to_string()
    };
    assert!(open("none", vec![]).contains("does not exist; create it"));
    bench.put("file", "");
    assert!(open("file", vec![]).contains("is not a folder"));
    fs::create_dir(bench.ws("sub")).unwrap();
    assert!(open("sub", vec![bench.ws("")]).contains("lies inside"));
    bench.link(bench.ws(""), "alias");
    assert!(open("sub", vec![bench.ws("alias")]).contains("lies inside"));
}

#[test]
fn the_tools_present_themselves_completely() {
    let bench = Bench::new();
    let names: Vec<_> =
        bench.toolset.tools().map(|tool| (tool.name.to_string(), tool.effect.as_str())).collect();
    let expected = [
        ("delete_file", "destructive"),
        ("list_directory", "read"),
        ("move_file", "write"),
        ("read_file", "read"),
        ("write_file", "write"),
    ];
    assert_eq!(names, expected.map(|(name, effect)| (name.to_owned(), effect)));
    for tool in bench.toolset.tools() {
        assert_eq!(tool.quarantined(), None);
        presents_itself(&tool.spec);
    }
}

#[test]
fn a_call_that_was_cancelled_before_it_began_changes_nothing() {
    let bench = Bench::new();
    bench.put("a.txt", "old");
    let permit = bench.permit("write_file", &json!({ "path": "a.txt", "content": "new" })).unwrap();
    assert!(permit.precondition().unwrap().starts_with("unchanged:"));
    assert_eq!(bench.run(&permit).done(), json!({ "path": "a.txt", "size": 3 }));
    assert_eq!(bench.read("a.txt"), "new");

    let cx = context();
    cx.cancel.cancel();
    let permit = bench.permit("delete_file", &json!({ "path": "a.txt" })).unwrap();
    let fault = RUNTIME.block_on(bench.provider.execute(&cx, &permit)).unwrap_err();
    assert_eq!((fault.error.code.as_str(), fault.effect), ("CANCELED", EffectState::None));
    assert_eq!(bench.read("a.txt"), "new");
}

#[tokio::test]
async fn a_crash_says_how_far_the_tool_may_have_got() {
    for effect in [EffectState::None, EffectState::Possible] {
        let fault = run_blocking(effect, || panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(fault.effect, effect);
    }
}
