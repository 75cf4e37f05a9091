//! Stores in folders of their own, calls and outcomes to put into them, and the test binary as another process.

use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId, ProcessId, SessionId};
use gantry_core::{Priority, Role};
use gantry_store::{
    ApprovalDetails, ApprovalRow, CallHead, CalledTool, DecisionRow, Error, HoldLimits, HoldOutcome,
    IdempotencyKey, Intent, IntentOutcome, NewApproval, Omitted, Options, Outcome, Recovery, Scope,
    SessionKey, SessionRow, State, Store, Transition, Verdict, WebhookSent, WholeCall,
};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
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

    pub(crate) fn tables(&self) -> Connection {
        tables(&self.path())
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

/// The bare tables, for tests that look at them or tamper with them.
pub(crate) fn tables(path: &Path) -> Connection {
    Connection::open(path).unwrap()
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
        id: CallId::generate(),
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
    Intent { head: head.clone(), idempotency: None, approval: None, decided: None }
}

pub(crate) fn keyed(head: &CallHead, key: &str) -> Intent {
    let key = IdempotencyKey { key: key.to_owned(), arguments: Digest::of(b"arguments") };
    Intent { head: head.clone(), idempotency: Some(key), approval: None, decided: None }
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
        attempts: 1,
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

/// When the test began, in microseconds of Unix time: what ended long before is forgotten at the next start.
pub(crate) static START_US: LazyLock<i64> =
    LazyLock::new(|| i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap());

/// The outcome of a call that was held.
pub(crate) fn over(state: State) -> Outcome {
    Outcome { finished_us: *START_US + 3_000_000, ..ended(state) }
}

/// Limits that no test meets by accident.
pub(crate) const LIMITS: HoldLimits = HoldLimits { per_caller: 100_000, total: 100_000 };

/// A call of its own that waits for a person; requests of the same word are the same request.
pub(crate) fn held(word: &str) -> NewApproval {
    let mut head = head();
    head.parent = None;
    let row = ApprovalRow {
        id: ApprovalId::generate(),
        call: head.id,
        step: 0,
        session: head.session,
        parent: None,
        project: head.caller.project.clone(),
        principal: head.caller.principal.clone(),
        agent: head.caller.agent.clone(),
        name: head.tool.name.clone(),
        request_key: Digest::of(word.as_bytes()),
        state: State::PendingApproval,
        process: ProcessId::from_bytes([0; 16]),
        created_us: *START_US + 1_000_000,
        deadline_us: Some(*START_US + 601_000_000),
        ended_us: None,
        delivered: false,
        webhook_sent: WebhookSent::All,
        attempts: 0,
        decision: None,
        message: None,
        supersedes: None,
        details: details(),
        omitted: Omitted::default(),
    };
    NewApproval { head, idempotency: None, row }
}

fn details() -> ApprovalDetails {
    ApprovalDetails {
        role: Role::Agent,
        door: "mcp".into(),
        agent_path: vec!["lead".into(), "researcher".into()],
        provider: "github".into(),
        tool: "create-issue".into(),
        effect: "write".into(),
        fingerprint: Digest::of(b"definition"),
        arguments: r#"{"title":"a \"quoted\" ü","api_key":"hunter2"}"#.into(),
        binding: Digest::of(b"binding"),
        policy: Digest::of(b"policy"),
        reason: "it writes".into(),
        rules: vec!["writes".into()],
        remember: [("writes".into(), Scope::Session)].into(),
        approvers: vec![vec!["ann".into()]],
        estimated_cost: 3,
        delay_ms: 0,
        auto_reject: true,
        idempotency_key: None,
        timeout_ms: Some(5_000),
        priority: Priority::High,
        turn: 3,
        source: None,
        own_session: true,
        sent: None,
    }
}

/// Holds a call that must be new.
pub(crate) async fn hold(store: &Store, new: NewApproval) -> ApprovalRow {
    match store.hold(new, LIMITS).await.unwrap() {
        HoldOutcome::Held(row) => *row,
        HoldOutcome::Joined(row) => panic!("it joined {row:?}"),
    }
}

/// The step to that state as it usually comes about: by a decision, by time, or by the system.
pub(crate) fn step(to: State) -> Transition {
    let decision = |verdict| DecisionRow {
        verdict,
        by: "ann".into(),
        via: "http".into(),
        at_us: *START_US + 2_000_000,
        reason: Some("because".into()),
        modified_args: None,
        binding: Digest::of(b"binding"),
        scope: Scope::Once,
        grant: None,
    };
    let decision = if matches!(to, State::ApprovedReady | State::ScheduledForExecution) {
        Some(decision(Verdict::Approved))
    } else {
        (to == State::RejectedByUser).then(|| decision(Verdict::Denied))
    };
    let deadline_us = (to == State::ScheduledForExecution).then_some(*START_US + 9_000_000);
    Transition { to, decision, deadline_us, message: None, at_us: *START_US + 2_000_000 }
}

/// Takes that step; the error is the row as it stands.
pub(crate) async fn settle(store: &Store, id: ApprovalId, to: State) -> Result<ApprovalRow, ApprovalRow> {
    match store.transition(id, step(to), None).await {
        Ok(row) => Ok(*row),
        Err(Error::NotPossible { row }) => Err(*row),
        Err(error) => panic!("{error:?}"),
    }
}

/// The intent of a held call under its approval.
pub(crate) fn approved(new: &NewApproval) -> Intent {
    let decided = Some(new.row.details.binding);
    Intent { approval: Some(new.row.id), decided, ..intent(&new.head) }
}

/// Holds a call and brings it to that state, by the shortest way that the store offers.
pub(crate) async fn bring(store: &Store, to: State) -> NewApproval {
    let new = held(&ApprovalId::generate().to_string());
    hold(store, new.clone()).await;
    if to == State::Executing || State::Executing.may_become(to) {
        settle(store, new.row.id, State::ApprovedReady).await.unwrap();
        assert!(matches!(store.intend(approved(&new)).await.unwrap(), IntentOutcome::Recorded));
        if to.is_over() {
            store.close(new.head.id, over(to)).await.unwrap();
        }
    } else if to != State::PendingApproval {
        settle(store, new.row.id, to).await.unwrap();
    }
    new
}

/// The approval and its call, which must be in the same state.
pub(crate) async fn standing(store: &Store, id: ApprovalId) -> ApprovalRow {
    let row = store.approval(id).await.unwrap().unwrap();
    assert_eq!(store.call(row.call).await.unwrap().unwrap().state, row.state);
    assert_eq!(row.state.is_over(), row.ended_us.is_some());
    row
}

/// Records an intent that must be new, and returns its call.
pub(crate) async fn begin(store: &Store) -> CallHead {
    let head = head();
    assert!(matches!(store.intend(intent(&head)).await.unwrap(), IntentOutcome::Recorded));
    head
}

/// This binary, set up to run one of its tests as another process on that data folder.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a test needs another process of its own program")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, folder);
    command
}

pub(crate) async fn joined(store: &Store, new: NewApproval) -> ApprovalRow {
    match store.hold(new, LIMITS).await.unwrap() {
        HoldOutcome::Joined(row) => *row,
        HoldOutcome::Held(row) => panic!("it joined nothing: {row:?}"),
    }
}
