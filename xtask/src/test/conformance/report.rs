//! The comparison: which checks Gantry breaks, and what to say about it.

use anyhow::{Result, bail};

use super::checks::{Check, Checks};
use super::exceptions::{Exception, Exceptions};
use super::matrix::MatrixCell;

/// The cells, judged.
#[derive(Debug)]
pub(super) struct Report {
    rows: Vec<Row>,
    /// Exceptions that excuse nothing, a sentence each.
    unused: Vec<String>,
}

#[derive(Debug)]
struct Row {
    cell: String,
    n_direct: Option<usize>,
    n_expected: usize,
    n_passed: usize,
    n_excepted: usize,
    /// One sentence each.
    failures: Vec<String>,
}

impl Report {
    pub(super) fn new(cells: &[MatrixCell], exceptions: &Exceptions) -> Self {
        // What the fixture of both eras passes is expected of every server cell; a client is its own measure.
        let expected = |cell: &MatrixCell| {
            let is_measure = |other: &&MatrixCell| {
                other.set == cell.set
                    && other.subject == if cell.subject == "client" { "client" } else { "dual" }
            };
            cells.iter().find(is_measure).and_then(|other| other.direct.as_ref())
        };
        let rows: Vec<Row> = cells.iter().map(|cell| judge(cell, expected(cell), exceptions)).collect();
        let unused = unused(cells, exceptions);
        Self { rows, unused }
    }

    /// A line for each cell, as in `docs/conformance.md`.
    pub(super) fn table(&self) -> String {
        let mut text = String::from(
            "| upstream | requirements | direct | expected | through Gantry | excepted |\n|---|---|--:|--:|--:|--:|\n",
        );
        for row in &self.rows {
            let (subject, set) = row.cell.split_once('/').unwrap_or((&row.cell, ""));
            let direct = row.n_direct.map_or("—".to_owned(), |n| n.to_string());
            text.push_str(&format!(
                "| {subject} | {set} | {direct} | {} | {} | {} |\n",
                row.n_expected, row.n_passed, row.n_excepted
            ));
        }
        text
    }

    pub(super) fn verdict(&self) -> Result<()> {
        let mut n_failures = self.unused.len();
        for row in self.rows.iter().filter(|row| !row.failures.is_empty()) {
            eprintln!("\n{}:", row.cell);
            row.failures.iter().for_each(|failure| eprintln!("  {failure}"));
            n_failures += row.failures.len();
        }
        self.unused.iter().for_each(|sentence| eprintln!("{sentence}"));
        if n_failures > 0 {
            bail!("{n_failures} findings of the conformance suite");
        }
        Ok(())
    }
}

fn name(cell: &MatrixCell) -> String {
    format!("{}/{}", cell.subject, cell.set)
}

fn judge(cell: &MatrixCell, expected: Option<&Checks>, exceptions: &Exceptions) -> Row {
    let name = name(cell);
    let mut failures: Vec<String> = Vec::new();
    let failed_directly = cell.direct.iter().flat_map(Checks::failed);
    failures.extend(failed_directly.map(|(check, why)| format!("without Gantry: {}: {why}", shown(check))));

    let expected: Vec<&Check> = expected.iter().flat_map(|checks| checks.passed()).collect();
    let (mut n_passed, mut n_excepted) = (0, 0);
    for check in &expected {
        match cell.through.failure(check) {
            None => n_passed += 1,
            Some(_) if exceptions.excuses(&name, check) => n_excepted += 1,
            Some(why) => failures.push(format!("{}: {why}", shown(check))),
        }
    }
    let n_direct = cell.direct.as_ref().map(|checks| checks.passed().count());
    Row { cell: name, n_direct, n_expected: expected.len(), n_passed, n_excepted, failures }
}

fn shown(check: &Check) -> String {
    format!("{} {}", check.scenario, check.id)
}

/// An exception that excuses nothing has to go, so that the list stays true.
fn unused(cells: &[MatrixCell], exceptions: &Exceptions) -> Vec<String> {
    let is_needed = |exception: &&Exception| {
        let mut cells = cells.iter().filter(|cell| name(cell) == exception.cell);
        cells.any(|cell| cell.through.failure(&exception.check).is_some())
    };
    let sentence = |exception: &Exception| {
        let (cell, check, reason) = (&exception.cell, shown(&exception.check), &exception.reason);
        format!("{cell}: {check}: the exception ({reason}) is not needed; remove it from exceptions.toml")
    };
    exceptions.iter().filter(|exception| !is_needed(exception)).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::super::matrix::MODERN;
    use super::*;

    fn cell(subject: &'static str, direct: Option<&str>, through: &str) -> MatrixCell {
        MatrixCell { subject, set: MODERN, direct: direct.map(Checks::of), through: Checks::of(through) }
    }

    fn exceptions(cell: &str, check: &str) -> Exceptions {
        let text =
            format!("[[exception]]\ncell = '{cell}'\nscenario = 's'\ncheck = '{check}'\nreason = 'why'\n");
        Exceptions::parse(&text).unwrap()
    }

    #[test]
    fn what_passes_directly_is_expected_of_every_upstream() {
        let cells = vec![cell("dual", Some("a b"), "a b"), cell("legacy", None, "a b!")];
        let report = Report::new(&cells, &Exceptions::default());
        let failures: Vec<&[String]> = report.rows.iter().map(|row| row.failures.as_slice()).collect();
        assert_eq!(failures, [&[] as &[String], &["s b: FAILURE: broken".to_owned()]]);
        assert!(report.verdict().is_err());
    }

    #[test]
    fn a_client_is_measured_by_itself() {
        let cells = vec![cell("dual", Some("a b"), "a b"), cell("client", Some("c"), "c")];
        assert!(Report::new(&cells, &Exceptions::default()).verdict().is_ok());
    }

    #[test]
    fn an_exception_excuses_its_check_in_its_cell() {
        let cells = || vec![cell("dual", Some("a b"), "a b!")];
        let report = Report::new(&cells(), &exceptions("dual/2026-07-28", "b"));
        assert!(report.verdict().is_ok());
        assert_eq!((report.rows[0].n_passed, report.rows[0].n_excepted), (1, 1));
        assert!(Report::new(&cells(), &exceptions("modern/2026-07-28", "b")).verdict().is_err());
    }

    #[test]
    fn an_exception_that_excuses_nothing_has_to_go() {
        let cells = vec![cell("dual", Some("a b"), "a b")];
        let report = Report::new(&cells, &exceptions("dual/2026-07-28", "b"));
        assert!(report.unused[0].contains("is not needed"), "{:?}", report.unused);
        assert!(report.verdict().is_err());
    }

    #[test]
    fn a_fixture_that_fails_by_itself_is_found() {
        let cells = vec![cell("dual", Some("a b!"), "a")];
        let report = Report::new(&cells, &Exceptions::default());
        assert!(report.rows[0].failures[0].starts_with("without Gantry: s b"), "{report:?}");
    }

    #[test]
    fn the_table_has_a_line_for_each_cell() {
        let cells = vec![cell("dual", Some("a b"), "a b"), cell("legacy", None, "a")];
        let table = Report::new(&cells, &Exceptions::default()).table();
        assert!(table.contains("| dual | 2026-07-28 | 2 | 2 | 2 | 0 |\n"), "{table}");
        assert!(table.contains("| legacy | 2026-07-28 | — | 2 | 1 | 0 |\n"), "{table}");
    }
}
