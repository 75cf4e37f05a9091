//! Stores in folders of their own, calls and outcomes to put into them, and the test binary as another process.

use gantry_core::digest::Digest;
use gantry_core::id::{CallId, SessionId};
use gantry_store::{
    CallHead, CalledTool, IdempotencyKey, Intended, Intent, Options, Outcome, Recovery, SessionKey,
    SessionRow, State, Store, WholeCall,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Set to the data folder in processes that a test starts from its own binary.
pub(crate) const CHILD: &str = "GANTRY_STORE_TEST_CHILD";

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        database(self.folder.path())
    }

    pub(crate) fn open(&self) -> Store {
        self.open_with_recovery().0
    }

    pub(crate) fn open_with_recovery(&self) -> (Store, Recovery) {
        Store::open(Options::new(self.path())).unwrap()
    }
}

pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("gantry.db")
}

pub(crate) fn key() -> SessionKey {
    SessionKey {
        project: "default".into(),
        principal: "local".into(),
        agent: Some("researcher".into()),
        door: "mcp".into(),
    }
}

pub(crate) fn head() -> CallHead {
    CallHead {
        id: CallId::mint(),
        session: SessionId::from_bytes([7; 16]),
        parent: Some(CallId::from_bytes([1; 16])),
        turn: 3,
        caller: key(),
        tool: CalledTool {
            provider: "github".into(),
            tool: "create-issue".into(),
            name: "github__create_issue".into(),
            kind: "mcp".into(),
            namespace: "github".into(),
            effect: "write".into(),
            fingerprint: Some(Digest::of(b"definition")),
        },
        arguments_digest: Some(Digest::of(b"arguments")),
        arguments: r#"{"title":"a \"quoted\" ü\u0000"}"#.into(),
        decision: Some("approved by person".to_owned()),
        started_us: 1_000_000,
    }
}

pub(crate) fn intent(head: &CallHead) -> Intent {
    Intent { head: head.clone(), idempotency: None }
}

pub(crate) fn keyed(head: &CallHead, key: &str) -> Intent {
    let key = IdempotencyKey { key: key.to_owned(), arguments: Digest::of(b"arguments") };
    Intent { head: head.clone(), idempotency: Some(key) }
}

pub(crate) fn ended(state: State) -> Outcome {
    let good = state == State::CompletedSuccess;
    Outcome {
        state,
        code: (!good).then(|| "EXECUTION_ERROR".into()),
        message: (!good).then(|| "it did not work".to_owned()),
        effect_state: if good { "done" } else { "none" }.into(),
        latency_us: 1_500,
        characters_in: 20,
        characters_out: 300,
        cost_micros: 7,
        finished_us: 1_001_500,
        cached: false,
        result: None,
    }
}

pub(crate) fn good() -> Outcome {
    ended(State::CompletedSuccess)
}

pub(crate) fn whole(head: &CallHead, outcome: Outcome) -> WholeCall {
    WholeCall { head: head.clone(), outcome }
}

pub(crate) fn session(id: SessionId, started_us: i64) -> SessionRow {
    SessionRow { id, key: key(), parent: None, started_us, last_us: started_us, ended_us: None }
}

/// Records an intent that must be new, and returns its call.
pub(crate) async fn begin(store: &Store) -> CallHead {
    let head = head();
    assert!(matches!(store.intend(intent(&head)).await.unwrap(), Intended::Fresh));
    head
}

/// This binary, set up to run one of its tests as another process on that data folder.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a test needs another process of its own program")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, folder);
    command
}
