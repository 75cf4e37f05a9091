//! Every registered statement is prepared on both databases, in every form that it can have.

mod postgres;

use super::{Condition, List, Query, Statement, Value};
use crate::{approvals, grants, keys, ledger, retention, session_totals, sessions};
use postgres::Postgres;
use std::fs;
use std::path::Path;

/// The statements of every file that has some.
fn files() -> Vec<&'static [Statement]> {
    let mut files = vec![
        crate::STATEMENTS,
        grants::STATEMENTS,
        keys::STATEMENTS,
        retention::STATEMENTS,
        session_totals::STATEMENTS,
        sessions::STATEMENTS,
    ];
    files.extend(approvals::ALL_STATEMENTS);
    files.extend(ledger::ALL_STATEMENTS);
    files
}

const LISTS: [List; 4] = [approvals::APPROVALS, grants::GRANTS, ledger::CALLS, sessions::SESSIONS];

/// A list with some of its conditions.
fn text(list: List, conditions: &[Condition], n_values: usize) -> String {
    let mut query = Query::new(list);
    for condition in conditions {
        let n_values = if condition.0.contains("($?)") { n_values } else { condition.0.matches('$').count() };
        query.push(*condition, &vec![Value::Null; n_values]);
    }
    query.finish(50).0
}

/// Every statement, and of each list: none of its conditions, each alone, all of them, and any number of values.
pub(crate) fn every_text() -> Vec<String> {
    let mut texts: Vec<String> = files().concat().iter().map(|statement| statement.0.to_owned()).collect();
    for list in LISTS {
        texts.push(text(list, &[], 0));
        texts.extend(list.conditions.iter().map(|condition| text(list, &[*condition], 1)));
        texts.push(text(list, list.conditions, 1));
        texts.push(text(list, list.conditions, 3));
    }
    texts
}

/// The numbers of the placeholders, by their first use.
fn numbers(sql: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in sql.split('$').skip(1) {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse().unwrap_or_else(|_| panic!("a placeholder without a number: {sql}"));
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

#[test]
fn placeholders_are_first_used_in_their_order() {
    for sql in every_text() {
        let used = numbers(&sql);
        let expected: Vec<u32> = (1..).take(used.len()).collect();
        assert_eq!(used, expected, "{sql}");
    }
}

#[test]
fn every_file_with_statements_is_listed() {
    fn count(folder: &Path, what: &str) -> usize {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| {
                if path.is_dir() {
                    return count(&path, what);
                }
                let text = fs::read_to_string(&path).unwrap();
                text.lines().filter(|line| line.starts_with(what)).count()
            })
            .sum()
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_eq!(count(&source, "statements! {"), files().len());
    assert_eq!(count(&source, "list! {"), LISTS.len());
}

#[test]
fn postgresql_takes_every_statement() {
    let postgres = Postgres::start();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres");
    let mut migrations: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    migrations.sort();
    for migration in migrations {
        postgres.run(&fs::read_to_string(migration).unwrap());
    }
    let prepare = |(n, sql): (usize, String)| format!("PREPARE s{n} AS {sql};\n");
    let script: String = every_text().into_iter().enumerate().map(prepare).collect();
    postgres.run(&script);
    assert!(postgres.try_run("PREPARE bad AS SELECT seq FROM approvals;").is_err(), "it checks nothing");
}
