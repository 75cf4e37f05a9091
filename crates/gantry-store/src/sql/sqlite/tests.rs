//! With ten thousand calls that wait, every question that is asked often is answered by an index.

use super::*;
use crate::approvals::{ApprovalFilter, query};
use crate::sql::tests::every_text;
use gantry_core::State;
use gantry_core::id::{ApprovalId, CallId, SessionId};
use rusqlite::{StatementStatus, ffi};

struct Crowd {
    conn: Connection,
    _folder: tempfile::TempDir,
}

impl Crowd {
    /// Ten thousand that wait, of a hundred callers in ten projects, and as many that are over.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gantry.db");
        let mut conn = Connection::open_writer(&path).unwrap();
        conn.migrate(&path, || Ok(true)).unwrap();
        conn.driver
            .execute(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
                 INSERT INTO approvals (id, call, step, session, project, principal, name, request_key, state, process,
                     created_us, deadline_us, ended_us, delivered, webhook_messages_sent, attempts, asked, due_us, unsent,
                     arguments)
                 SELECT CAST(printf('%016d', n) AS BLOB), randomblob(16), 0, randomblob(16), 'p' || (n % 10),
                     'a' || (n % 100), 't', randomblob(32), iif(n % 2, 'PENDING_APPROVAL', 'COMPLETED_SUCCESS'),
                     zeroblob(16), n, n, iif(n % 2, NULL, n), 0, iif(n % 4 = 1, 0, 3), 0, '{}', iif(n % 2, n, NULL),
                     n % 4 = 1, '{}' FROM n",
                [],
            )
            .unwrap();
        Self { conn, _folder: folder }
    }

    fn plan(&self, sql: &str) -> Vec<String> {
        let mut query = self.conn.driver.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![Value::Null; query.parameter_count()];
        let plan = query.query_map(params_from_iter(&values), |row| row.get("detail")).unwrap();
        plan.collect::<Result<_, _>>().unwrap()
    }

    /// How SQLite goes about the one statement that has this text in it: it names the index and sorts nothing.
    #[track_caller]
    fn check(&self, part: &str, how: &str) {
        let mut found: Vec<String> = every_text().into_iter().filter(|sql| sql.contains(part)).collect();
        assert_eq!(found.len(), 1, "{part}: {found:#?}");
        self.check_text(&found.remove(0), how);
    }

    #[track_caller]
    fn check_text(&self, sql: &str, how: &str) {
        let plan = self.plan(sql);
        assert!(plan.iter().any(|line| line.contains(how)), "{sql}\n{plan:#?}");
        let is_bad = |line: &String| line.contains("TEMP B-TREE") || line.starts_with("SCAN approvals");
        let is_covered = |line: &String| line.contains("USING COVERING INDEX");
        assert!(!plan.iter().any(|line| is_bad(line) && !is_covered(line)), "{sql}\n{plan:#?}");
    }

    #[track_caller]
    fn check_list(&self, filter: &ApprovalFilter, how: &str) {
        self.check_text(&query(filter).finish(51).0, how);
    }
}

#[test]
fn sqlite_takes_every_statement() {
    let crowd = Crowd::new();
    for sql in every_text() {
        crowd.conn.driver.prepare(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn single_rows_are_found_by_their_index() {
    let crowd = Crowd::new();
    let by_id = "SEARCH approvals USING INDEX sqlite_autoindex_approvals_1 (id=?)";
    crowd.check("SELECT state FROM approvals WHERE id", by_id);
    crowd.check("modified FROM approvals WHERE id = $1", by_id);
    crowd.check("SET delivered = 1 WHERE id", by_id);
    crowd.check(
        "FROM approvals WHERE call = $1 ORDER BY",
        "SEARCH approvals USING INDEX approvals_call (call=?)",
    );
    // The few that are the same request are sorted.
    let same = every_text().into_iter().find(|sql| sql.contains("request_key = $1")).unwrap();
    assert_eq!(crowd.plan(&same)[0], "SEARCH approvals USING INDEX approvals_request_key (request_key=?)");
}

#[test]
fn due_and_unsent_approvals_are_found_by_their_index() {
    let crowd = Crowd::new();
    crowd.check("(due_us, id) > ", "USING INDEX approvals_ready (process=? AND (due_us,id)>(?,?)");
    // The few that are to run are sorted.
    let holders = every_text().into_iter().find(|sql| sql.contains("SELECT DISTINCT process")).unwrap();
    assert_eq!(crowd.plan(&holders)[0], "SEARCH approvals USING INDEX approvals_state (state=?)");
    crowd.check(
        "due_us BETWEEN",
        "SEARCH approvals USING INDEX approvals_due (state=? AND due_us>? AND due_us<?)",
    );
    crowd.check("SELECT min(due_us) AS", "USING COVERING INDEX approvals_due (state=? AND due_us>?)");
    crowd.check("unsent = 1 AND", "SEARCH approvals USING INDEX approvals_unsent (project=? AND id>?)");
    crowd.check("parent IS NOT NULL\n", "SEARCH approvals USING INDEX approvals_state");
    crowd.check(
        "args_unmasked = 1 AND",
        "SEARCH approvals USING INDEX approvals_ended (args_unmasked=? AND ended_us<?)",
    );
    crowd.check("args_unmasked = 0 AND", "approvals_ended (args_unmasked=? AND ended_us<?)");
    crowd.check("SELECT DISTINCT name", "COVERING INDEX approvals_waiting (principal=?)");
    crowd.check("DELETE FROM keys", "SEARCH approvals USING COVERING INDEX approvals_waiting (principal=?)");
}

#[test]
fn waiting_calls_are_counted_in_the_index() {
    let crowd = Crowd::new();
    let of_caller = "COVERING INDEX approvals_waiting (principal=? AND project=? AND agent=? AND state=?)";
    crowd.check("agent IS NOT DISTINCT FROM $3\n         AND state IN", of_caller);
    crowd.check("FROM approvals\n         WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY') LIMIT", "COVERING INDEX");
}

#[test]
fn a_statement_with_a_limit_is_planned_once() {
    let crowd = Crowd::new();
    let waiting = every_text().into_iter().find(|sql| sql.contains("AS waiting")).unwrap();
    let mut statement = crowd.conn.driver.prepare(&waiting).unwrap();
    for limit in [1, 2, 300] {
        statement.raw_bind_parameter(statement.parameter_count(), limit).unwrap();
        statement.raw_query().next().unwrap();
    }
    assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
}

#[test]
fn a_page_is_walked_in_the_order_of_an_index() {
    let crowd = Crowd::new();
    let all = ApprovalFilter::default();
    let of_one =
        |filter: &ApprovalFilter| ApprovalFilter { projects: Some(vec!["p1".into()]), ..filter.clone() };
    let pending = ApprovalFilter { state: Some(State::PendingApproval), ..all.clone() };
    crowd.check_list(&pending, "SEARCH approvals USING COVERING INDEX approvals_state (state=?)");
    crowd.check_list(&of_one(&pending), "COVERING INDEX approvals_state_project (state=? AND project=?)");
    let second = ApprovalFilter { cursor: Some(ApprovalId::generate()), ..pending };
    crowd.check_list(&second, "approvals_state (state=? AND id<?)");
    crowd.check_list(&of_one(&second), "approvals_state_project (state=? AND project=? AND id<?)");
    crowd.check_list(&of_one(&all), "COVERING INDEX approvals_project (project=?)");
    // The ids of several projects are sorted, but no row is read for that.
    let of_two = ApprovalFilter { projects: Some(vec!["p1".into(), "p2".into()]), ..all.clone() };
    let plan = crowd.plan(&query(&of_two).finish(51).0);
    assert!(plan[2].contains("COVERING INDEX approvals_project (project=?)"), "{plan:?}");
    let of_session = ApprovalFilter { session: Some(SessionId::generate()), ..all.clone() };
    crowd.check_list(&of_session, "approvals_session (session=?)");
    let of_call = ApprovalFilter { call: Some(CallId::generate()), ..all };
    let plan = crowd.plan(&query(&of_call).finish(51).0);
    assert!(plan[2].contains("approvals_call (call=?)"), "the few of a call are sorted: {plan:?}");
}

#[test]
fn a_page_of_ten_thousand_looks_at_no_more_than_itself() {
    let crowd = Crowd::new();
    let projects = Some(vec!["p1".into()]);
    let filter =
        ApprovalFilter { state: Some(State::PendingApproval), projects, ..ApprovalFilter::default() };
    let (sql, values) = query(&filter).finish(51);
    let mut statement = crowd.conn.driver.prepare(&sql).unwrap();
    let found = statement.query_map(params_from_iter(&values), |row| row.get(0)).unwrap();
    let found: Vec<[u8; 16]> = found.collect::<Result<_, _>>().unwrap();
    let id = |n: u32| <[u8; 16]>::try_from(format!("{n:016}").as_bytes()).unwrap();
    assert_eq!((found.len(), found[0], found[50]), (51, id(19_991), id(19_491)));
    let steps = statement.get_status(StatementStatus::VmStep);
    assert!(steps < 4000, "{steps} steps for 51 rows");
}

#[test]
fn the_ledger_is_verified_by_its_indexes() {
    let crowd = Crowd::new();
    crowd.check("l.step <> 0", "SEARCH l USING INDEX sqlite_autoindex_ledger_1 (node=? AND seq>? AND seq<?)");
    crowd.check("l.step <> 0", "SEARCH e USING INDEX sqlite_autoindex_ledger_2 (call=? AND step=?)");
    crowd.check("WITH RECURSIVE nodes", "SEARCH l USING COVERING INDEX sqlite_autoindex_ledger_1 (node>?)");
    crowd.check("WITH RECURSIVE nodes", "SEARCH l USING COVERING INDEX sqlite_autoindex_ledger_1 (node=?)");
}

#[test]
fn no_migration_sorts_what_it_copies() {
    let conn = Driver::open_in_memory().unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("--");
    for migration in MIGRATIONS {
        let code: Vec<&str> = migration.lines().filter(is_code).collect();
        for sql in code.join("\n").split_inclusive(';').map(str::trim) {
            if sql.starts_with("INSERT") {
                let mut query = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let plan = query.query_map([], |row| row.get("detail")).unwrap();
                let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
                assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{sql}\n{plan:#?}");
            }
            conn.execute_batch(sql).unwrap();
        }
    }
}

#[test]
fn the_list_of_calls_is_walked_by_call_id() {
    let crowd = Crowd::new();
    let lists: Vec<String> = every_text().into_iter().filter(|sql| sql.contains("ORDER BY h.call")).collect();
    for sql in lists {
        let plan = crowd.plan(&sql);
        let is_sorted = plan.iter().any(|line| line.contains("TEMP B-TREE") || line.contains("SCAN h\n"));
        assert!(!is_sorted && plan[0].contains("INDEX"), "{sql}\n{plan:#?}");
    }
}

#[test]
fn a_driver_error_says_what_to_do() {
    let said = |code| sqlite_error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).to_string();
    assert!(said(ffi::SQLITE_FULL).contains("free space and retry"));
    assert!(said(ffi::SQLITE_BUSY_SNAPSHOT).contains("another process"));
    assert!(said(ffi::SQLITE_IOERR_WRITE).contains("check it"));
    assert!(said(ffi::SQLITE_NOTADB).contains("restore a backup"));
}
