//! How the git tools present themselves and read their arguments. What they do is tested with the built program, because
//! they do all of it in the jail.

use super::*;
use crate::options::CodeOptions;
use crate::workspace::ProtectedPaths;
use gantry_core::tool::ApprovalRule;
use gantry_provider::testing::{presents_itself, toolset};
use tempfile::TempDir;

fn git(folder: &TempDir) -> ToolBox {
    let (workspace, store) = (folder.path().to_owned(), folder.path().join("store"));
    let options = CodeOptions::default();
    let runner = CommandRunner::open(workspace, ProtectedPaths::default(), store, Vec::new(), options);
    let credentials = [("https://example.com".to_owned(), "hunter2".into())].into();
    git_tools(Arc::new(runner), GitOptions { credentials, author: None })
}

#[test]
fn the_tools_present_themselves_completely() {
    let folder = TempDir::new().unwrap();
    let git = git(&folder);
    let toolset = toolset(git.tools());
    let shown: Vec<_> = toolset.tools().map(|tool| (tool.name.to_string(), tool.effect.as_str())).collect();
    let expected = [
        ("git_commit", "write"),
        ("git_diff", "read"),
        ("git_log", "read"),
        ("git_push", "destructive"),
        ("git_status", "read"),
    ];
    assert_eq!(shown, expected.map(|(name, effect)| (name.to_owned(), effect)));
    for spec in git.tools() {
        presents_itself(spec);
        let asks = matches!(&*spec.name, "git_commit" | "git_push");
        assert_eq!(spec.approval_rule == ApprovalRule::Depends, asks, "{}", spec.name);
    }
}

#[test]
fn no_secret_is_printed_by_accident() {
    let folder = TempDir::new().unwrap();
    let options = GitOptions { credentials: [("https://h".into(), "hunter2".into())].into(), author: None };
    assert!(format!("{options:?}").contains("https://h"));
    assert!(!format!("{options:?} {:?}", git(&folder)).contains("hunter2"));
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused_before_anything_runs() {
    let folder = TempDir::new().unwrap();
    let git = git(&folder);
    for (tool, arguments, code) in [
        ("git_commit", r#"{"message":"x","path":"../y"}"#, "INVALID_PATH"),
        ("git_commit", r#"{"message":"x","path":"/etc"}"#, "INVALID_PATH"),
        ("git_commit", r#"{"message":"x","files":["../../y"]}"#, "INVALID_PATH"),
        ("git_commit", r#"{"message":"x","files":["a\u0000b"]}"#, "INVALID_PATH"),
        ("git_commit", r#"{"message":" \n"}"#, "INVALID_ARGUMENTS"),
        ("git_commit", r#"{"message":"a\u0000"}"#, "INVALID_ARGUMENTS"),
        ("git_commit", r#"{"message":"a","all":true,"files":["b"]}"#, "INVALID_ARGUMENTS"),
        ("git_commit", r#"{"message":"x","amend":true}"#, "INVALID_ARGUMENTS"),
        ("git_push", r#"{"branch":"-d"}"#, "INVALID_ARGUMENTS"),
        ("git_push", r#"{"remote":"--exec=x"}"#, "INVALID_ARGUMENTS"),
        ("git_push", r#"{"remote":"a b"}"#, "INVALID_ARGUMENTS"),
        ("git_push", r#"{"force":true}"#, "INVALID_ARGUMENTS"),
        ("git_reset", "{}", "TOOL_NOT_FOUND"),
    ] {
        let fault = git.preflight(tool, arguments).await.unwrap_err();
        assert_eq!(fault.error.code.as_str(), code, "{tool} {arguments}: {fault:?}");
    }
}
