//! Figures of several rounds, as a table for people and as JSON for programs.

use serde_json::{Map, Value, json};
use std::fmt;

/// What one round found out about one row: the column and its value.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// A table whose rows are told apart by their labels.
#[derive(Debug)]
pub(super) struct Table {
    title: String,
    /// The names of the labels.
    labels: &'static [&'static str],
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    labels: Vec<String>,
    columns: Vec<(&'static str, Vec<f64>)>,
}

impl Table {
    pub(super) fn new(title: &str, labels: &'static [&'static str]) -> Self {
        Self { title: title.to_owned(), labels, rows: Vec::new() }
    }

    /// Adds what a round found out about a row.
    pub(super) fn add(&mut self, labels: &[&str], figures: Figures) {
        let known = self.rows.iter().position(|row| row.labels == labels);
        let n = known.unwrap_or_else(|| {
            self.rows.push(Row {
                labels: labels.iter().map(|label| (*label).to_owned()).collect(),
                columns: Vec::new(),
            });
            self.rows.len() - 1
        });
        let columns = &mut self.rows[n].columns;
        for (name, value) in figures {
            match columns.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => columns.push((name, vec![value])),
            }
        }
    }

    /// The columns of all rows, in the order in which they came up.
    fn columns(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.columns) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names
    }

    /// The rows, each as an object of labels and of `{median, min, max}` for each column.
    pub(super) fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let labels =
                self.labels.iter().zip(&row.labels).map(|(name, label)| ((*name).into(), json!(label)));
            let figures = row.columns.iter().map(|(name, values)| {
                let Spread { median, min, max } = Spread::of(values);
                ((*name).into(), json!({ "median": median, "min": min, "max": max }))
            });
            Value::Object(labels.chain(figures).collect::<Map<_, _>>())
        });
        json!({ "title": self.title, "rows": rows.collect::<Vec<_>>() })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        let head = self.labels.iter().chain(&columns).map(|name| (*name).to_owned()).collect();
        let mut lines: Vec<Vec<String>> = vec![head];
        lines.extend(self.rows.iter().map(|row| {
            let figures = columns.iter().map(|name| {
                let values = row.columns.iter().find(|(known, _)| known == name);
                values.map_or_else(|| "—".to_owned(), |(_, values)| Spread::of(values).to_string())
            });
            row.labels.iter().cloned().chain(figures).collect()
        }));
        let width = |n: usize| lines.iter().map(|line| line[n].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.labels.len() + columns.len()).map(width).collect();
        let rule = widths.iter().map(|width| "-".repeat(*width)).collect();
        lines.insert(1, rule);

        writeln!(f, "## {}\n", self.title)?;
        for (n, line) in lines.iter().enumerate() {
            // The rule under the head says which columns are figures and stand to the right.
            let gap = if n == 1 { '-' } else { ' ' };
            let end = if n == 1 { ':' } else { ' ' };
            let (labels, figures) = line.split_at(self.labels.len());
            for (label, width) in labels.iter().zip(&widths) {
                write!(f, "|{gap}{label:<width$}{gap}")?;
            }
            for (figure, width) in figures.iter().zip(&widths[labels.len()..]) {
                write!(f, "|{gap}{figure:>width$}{end}")?;
            }
            writeln!(f, "|")?;
        }
        Ok(())
    }
}

/// The same figure of several rounds.
#[derive(Debug)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |n: usize| sorted.get(n).copied().unwrap_or(f64::NAN);
        Self { median: at(sorted.len() / 2), min: at(0), max: at(sorted.len().saturating_sub(1)) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, min, max) = (rounded(self.median), rounded(self.min), rounded(self.max));
        if min == max { f.write_str(&median) } else { write!(f, "{median} ({min}–{max})") }
    }
}

/// Three digits that mean something, no more.
fn rounded(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_the_median_with_the_least_and_the_most() {
        let mut table = Table::new("A title", &["who"]);
        for value in [30.0, 10.0, 20.0] {
            table.add(&["gantry"], vec![("µs", value), ("same", 1.0)]);
            table.add(&["echo"], vec![("µs", value * 10.0)]);
        }
        let expected = "\
## A title

| who    |               µs | same |
|--------|-----------------:|-----:|
| gantry | 20.0 (10.0–30.0) | 1.00 |
| echo   |    200 (100–300) |    — |
";
        assert_eq!(table.to_string(), expected);
        assert_eq!(table.to_json()["rows"][1]["µs"]["median"], 200.0);
    }
}
