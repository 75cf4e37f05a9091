//! With ten thousand calls that wait, every question that is asked often is answered by an index.

use super::*;
use crate::schema;
use rusqlite::StatementStatus;

struct Crowd {
    conn: Connection,
    _folder: tempfile::TempDir,
}

impl Crowd {
    /// Ten thousand that wait, of a hundred callers in ten projects, and as many that are over.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let conn = schema::open_writer(&folder.path().join("gantry.db")).unwrap();
        conn.execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
             INSERT INTO approvals (id, call, session, project, principal, name, sameness, state, node, created_us,
                 deadline_us, ended_us, collected, announced, attempts, asked, arguments)
             SELECT randomblob(16), randomblob(16), randomblob(16), 'p' || (n % 10), 'a' || (n % 100), 't', randomblob(32),
                 iif(n % 2, 'PENDING_APPROVAL', 'COMPLETED_SUCCESS'), zeroblob(16), n, n, iif(n % 2, NULL, n), 0,
                 iif(n % 4 = 1, 0, 3), 0, '{}', '{}' FROM n",
            [],
        )
        .unwrap();
        Self { conn, _folder: folder }
    }

    /// How SQLite goes about a query; it names the index and sorts nothing.
    #[track_caller]
    fn check(&self, sql: &str, how: &str) {
        let mut query = self.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let n_values = query.parameter_count();
        let values = params_from_iter(std::iter::repeat_n(Value::Null, n_values));
        let plan: Vec<String> =
            query.query_map(values, |row| row.get("detail")).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(plan.iter().any(|line| line.contains(how)), "{sql}\n{plan:#?}");
        let bad = |line: &String| line.contains("TEMP B-TREE") || line.contains("SCAN approvals");
        assert!(!plan.iter().any(bad), "{sql}\n{plan:#?}");
    }

    #[track_caller]
    fn check_list(&self, filter: &ApprovalFilter, project: Option<&str>, how: &str) {
        self.check(&places(filter, project.map(Arc::from).as_ref(), 50).0, how);
    }
}

#[test]
fn single_rows_are_found_by_their_index() {
    let crowd = Crowd::new();
    crowd.check(BY_SEQ, "SEARCH approvals USING INTEGER PRIMARY KEY");
    crowd.check(BY_ID, "SEARCH approvals USING INDEX sqlite_autoindex_approvals_1 (id=?)");
    crowd.check(OF_CALL, "SEARCH approvals USING INDEX approvals_call (call=?)");
    let update =
        "UPDATE approvals SET collected = 1 WHERE id = ?1 AND collected = 0 AND ended_us IS NOT NULL";
    crowd.check(update, "SEARCH approvals USING INDEX sqlite_autoindex_approvals_1 (id=?)");
    // The few that are the same request are sorted, so this one is looked at by itself.
    let plan: String = crowd
        .conn
        .query_row(&format!("EXPLAIN QUERY PLAN {SAME}"), [Value::Null, Value::Null], |row| row.get("detail"))
        .unwrap();
    assert_eq!(plan, "SEARCH approvals USING INDEX approvals_same (sameness=?)");
}

#[test]
fn what_is_due_and_what_is_to_be_sent_is_found_by_its_index() {
    let crowd = Crowd::new();
    crowd.check(READY, "SEARCH approvals USING INDEX approvals_ready (node=? AND due_us>? AND due_us<?)");
    crowd.check(HOLDERS, "SEARCH approvals USING INDEX approvals_ready (node>?)");
    crowd.check(EXPIRED, "SEARCH approvals USING INDEX approvals_due (due_us>? AND due_us<?)");
    crowd.check(NEXT_DUE, "SEARCH approvals USING INDEX approvals_due (due_us>?)");
    crowd.check(UNSENT, "SEARCH approvals USING INDEX approvals_unsent (project=? AND rowid>?)");
    crowd.check(ORPHANS, "SEARCH approvals USING INDEX approvals_state");
    crowd.check(EXACT, "SEARCH approvals USING COVERING INDEX approvals_ended (exact=? AND ended_us<?)");
    crowd.check(OVER, "USING COVERING INDEX approvals_ended (exact=? AND ended_us<?)");
}

#[test]
fn those_that_wait_are_counted_in_the_index() {
    let crowd = Crowd::new();
    let of_caller = "COVERING INDEX approvals_waiting (project=? AND principal=? AND agent=? AND state=?)";
    crowd.check(WAITING_OF_CALLER, of_caller);
    crowd.check(WAITING, "SEARCH approvals USING COVERING INDEX approvals_state_project (state=?)");
    assert_eq!(waiting(&crowd.conn, 20_000).unwrap(), 10_000);
    assert_eq!(waiting(&crowd.conn, 700).unwrap(), 700, "it counts no further than it has to");
    let caller =
        SessionKey { project: "p1".into(), principal: "a21".into(), agent: None, door: "mcp".into() };
    assert_eq!(waiting_of_caller(&crowd.conn, &caller, 1000).unwrap(), 200);
}

#[test]
fn a_page_is_walked_in_the_order_of_an_index() {
    let crowd = Crowd::new();
    let pending = ApprovalFilter { state: Some(State::PendingApproval), ..ApprovalFilter::default() };
    crowd.check_list(&pending, None, "SEARCH approvals USING COVERING INDEX approvals_state (state=?)");
    let by_both = "SEARCH approvals USING COVERING INDEX approvals_state_project (state=? AND project=?)";
    crowd.check_list(&pending, Some("p1"), by_both);
    let second = ApprovalFilter { cursor: Some(5000), ..pending };
    crowd.check_list(&second, None, "approvals_state (state=? AND rowid<?)");
    crowd.check_list(&second, Some("p1"), "approvals_state_project (state=? AND project=? AND rowid<?)");
    let all = ApprovalFilter::default();
    crowd.check_list(&all, Some("p1"), "USING COVERING INDEX approvals_project (project=?)");
    let of_session = ApprovalFilter { session: Some(SessionId::generate()), ..ApprovalFilter::default() };
    crowd.check_list(&of_session, None, "approvals_session (session=?)");
    let of_call = ApprovalFilter { call: Some(CallId::generate()), ..ApprovalFilter::default() };
    crowd.check_list(&of_call, None, "approvals_call (call=?)");
}

#[test]
fn a_page_of_ten_thousand_looks_at_no_more_than_itself() {
    let crowd = Crowd::new();
    let filter = ApprovalFilter { state: Some(State::PendingApproval), ..ApprovalFilter::default() };
    let (sql, values) = places(&filter, Some(&"p1".into()), 50);
    let mut query = crowd.conn.prepare(&sql).unwrap();
    let found = query.query_map(params_from_iter(values), |row| row.get(0)).unwrap();
    let found: Vec<i64> = found.collect::<Result<_, _>>().unwrap();
    assert_eq!((found.len(), found[0], found[50]), (51, 19_991, 19_491));
    let steps = query.get_status(StatementStatus::VmStep);
    assert!(steps < 1000, "{steps} steps for 51 rows");
}
