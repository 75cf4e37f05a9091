//! `search_code`, called as the pipeline calls it: every result passes the output schema on its way.

mod confine;
mod meaning;
mod rank;
mod text;

use super::*;
use crate::options::EmbeddingsOptions;
use crate::testing::context;
use gantry_core::policy::Verdict;
use gantry_core::{CallFailure, Permit, ToolError, Toolset};
use gantry_provider::CallContext;
use gantry_provider::testing::{Answer, answer, judged, presents_itself, toolset};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// A workspace `ws` with protected data in `ws/.gantry`, beside a folder `outside`.
struct Bench {
    dir: TempDir,
    tools: ToolBox,
    toolset: Toolset,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(embeddings: Option<EmbeddingsOptions>) -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        fs::create_dir_all(dir.path().join("ws/.gantry")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/secret.rs"), "SECRET needle\n").unwrap();
        let hidden = vec![dir.path().join("ws/.gantry"), dir.path().join("ws/hidden.txt")];
        let protected = ProtectedPaths { hidden, ..ProtectedPaths::default() };
        let tools = search_tools(&dir.path().join("ws"), protected, SearchOptions { embeddings }).unwrap();
        let toolset = toolset(tools.tools());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { dir, tools, toolset, runtime }
    }

    fn ws(&self, path: &str) -> PathBuf {
        self.dir.path().join("ws").join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.ws(path).parent().unwrap()).unwrap();
        fs::write(self.ws(path), content).unwrap();
    }

    fn permit(&self, arguments: &Value) -> Result<Permit, ToolError> {
        let verdict = judged(&self.toolset, ("search_code", arguments), |_| panic!("it never asks"));
        match verdict.map_err(|refusal| refusal.error().clone())? {
            Verdict::Allow(permit) => Ok(permit),
            Verdict::Ask(_) | Verdict::Deny(_) => panic!("search_code never asks"),
        }
    }

    async fn run(&self, permit: &Permit, cancel: &CancellationToken) -> Result<String, CallFailure> {
        let cx = CallContext { cancel: cancel.clone(), ..context() };
        self.tools.execute(&cx, permit).await
    }

    fn call(&self, arguments: &Value) -> Result<Value, ToolError> {
        let permit = self.permit(arguments)?;
        let outcome = self.runtime.block_on(self.run(&permit, &CancellationToken::new()));
        match answer(&permit, outcome) {
            Answer::Done(value) => Ok(value),
            failed @ (Answer::Asked(_) | Answer::Refused(_) | Answer::Failed(_)) => Err(failed.error()),
        }
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a call reads better with its arguments in place")]
    fn search(&self, arguments: Value) -> Value {
        self.call(&arguments).unwrap()
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a call reads better with its arguments in place")]
    fn error(&self, arguments: Value) -> (String, String) {
        let error = self.call(&arguments).unwrap_err();
        (error.code.as_str().to_owned(), error.message)
    }

    /// The matches as `path:line`.
    #[track_caller]
    fn places(&self, arguments: Value) -> Vec<String> {
        let answer = self.search(arguments);
        let place = |found: &Value| format!("{}:{}", found["path"].as_str().unwrap(), found["line"]);
        answer["matches"].as_array().unwrap().iter().map(place).collect()
    }

    #[track_caller]
    fn literal(&self, query: &str) -> Vec<String> {
        self.places(json!({ "query": query, "mode": "literal" }))
    }

    /// The paths of a ranked search, the best first.
    #[track_caller]
    fn ranked(&self, query: &str) -> Vec<String> {
        paths(&self.search(json!({ "query": query })))
    }
}

fn paths(answer: &Value) -> Vec<String> {
    let matches = answer["matches"].as_array().unwrap();
    matches.iter().map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_tool_presents_itself_completely_and_searching_makes_nothing() {
    let bench = Bench::new();
    let tool = bench.toolset.tools().next().unwrap();
    assert_eq!((tool.name.as_ref(), tool.effect.as_str(), tool.quarantined()), ("search_code", "read", None));
    presents_itself(&tool.spec);
    bench.put("a.txt", "x");
    bench.literal("x");
    bench.ranked("word");
    assert_eq!(fs::read_dir(bench.ws(".gantry")).unwrap().count(), 0);
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_the_reason() {
    let bench = Bench::new();
    bench.put("a.txt", "x");
    for (arguments, code, reason) in [
        (json!({}), "INVALID_ARGUMENTS", "query"),
        (json!({ "query": "" }), "INVALID_ARGUMENTS", "query"),
        (json!({ "query": " \t" }), "INVALID_ARGUMENTS", "empty"),
        (json!({ "query": "x", "mode": "fuzzy" }), "INVALID_ARGUMENTS", "mode"),
        (json!({ "query": "x", "maxResults": 0 }), "INVALID_ARGUMENTS", "maxResults"),
        (json!({ "query": "x", "maxResults": 1001 }), "INVALID_ARGUMENTS", "maxResults"),
        (json!({ "query": "x", "context": 11 }), "INVALID_ARGUMENTS", "context"),
        (json!({ "query": "x", "unknown": 1 }), "INVALID_ARGUMENTS", "unknown"),
        (json!({ "query": "x", "glob": "a{b" }), "INVALID_ARGUMENTS", "a{b"),
        (json!({ "query": "(", "mode": "regex" }), "INVALID_ARGUMENTS", "unclosed group"),
        (json!({ "query": "a\\nb", "mode": "regex" }), "INVALID_ARGUMENTS", "line by line"),
        (json!({ "query": "a\nb", "mode": "literal" }), "INVALID_ARGUMENTS", "line by line"),
        (json!({ "query": "(a{1000}){1000}", "mode": "regex" }), "INVALID_ARGUMENTS", "size"),
        (json!({ "query": "=> {}", "mode": "ranked" }), "INVALID_ARGUMENTS", "mode literal"),
        (json!({ "query": "x", "mode": "literal", "path": "none" }), "FILE_NOT_FOUND", "none"),
        (json!({ "query": "word", "path": "none" }), "FILE_NOT_FOUND", "none"),
        (json!({ "query": "x", "mode": "literal", "path": "../outside" }), "INVALID_PATH", "outside"),
        (json!({ "query": "word", "path": "/etc" }), "INVALID_PATH", "outside"),
        (json!({ "query": "x", "mode": "literal", "path": "a.txt/b" }), "FILE_NOT_FOUND", "a.txt/b"),
        (json!({ "query": "x", "mode": "literal", "path": ".gantry" }), "PERMISSION_DENIED", "Gantry"),
        (json!({ "query": "word", "path": ".gantry" }), "PERMISSION_DENIED", "Gantry"),
    ] {
        let (found, message) = bench.error(arguments.clone());
        assert_eq!(found, code, "{arguments}: {message}");
        assert!(message.contains(reason), "{arguments}: {message}");
    }
}

#[test]
fn a_search_that_is_cancelled_says_so() {
    let bench = Bench::new();
    bench.put("a.txt", "x");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    for mode in ["literal", "regex", "ranked"] {
        let permit = bench.permit(&json!({ "query": "xx", "mode": mode })).unwrap();
        let fault = bench.runtime.block_on(bench.run(&permit, &cancelled)).unwrap_err();
        assert_eq!(fault.error.code.as_str(), "CANCELED", "{mode}");
    }
}
