//! Times and other figures of several rounds, as a table.

use std::fmt;

/// What one round found out about one row: the column and its value.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// A table whose rows are distinguished by their labels.
#[derive(Debug)]
pub(super) struct Table {
    title: String,
    labels: &'static [&'static str],
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    labels: Vec<String>,
    columns: Vec<(&'static str, Vec<f64>)>,
}

impl Table {
    pub(super) fn new(title: impl Into<String>, labels: &'static [&'static str]) -> Self {
        Self { title: title.into(), labels, rows: Vec::new() }
    }

    /// Adds what a round found out about a row.
    pub(super) fn add(&mut self, labels: &[&str], figures: Figures) {
        let known = self.rows.iter().position(|row| row.labels == labels).unwrap_or_else(|| {
            let labels = labels.iter().map(|label| (*label).to_owned()).collect();
            self.rows.push(Row { labels, columns: Vec::new() });
            self.rows.len() - 1
        });
        let columns = &mut self.rows[known].columns;
        for (name, value) in figures {
            match columns.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => columns.push((name, vec![value])),
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut columns: Vec<&str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.columns) {
            if !columns.contains(name) {
                columns.push(name);
            }
        }
        let head = self.labels.iter().chain(&columns).map(|name| (*name).to_owned()).collect();
        let mut lines: Vec<Vec<String>> = vec![head];
        lines.extend(self.rows.iter().map(|row| {
            let figures = columns.iter().map(|name| {
                let values = row.columns.iter().find(|(known, _)| known == name);
                values.map_or_else(|| "—".to_owned(), |(_, values)| cell(values))
            });
            row.labels.iter().cloned().chain(figures).collect()
        }));
        writeln!(f, "## {}\n", self.title)?;
        let width = |n: usize| lines.iter().map(|line| line[n].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
        // The rule under the head says which columns are figures and stand to the right.
        let is_label = |n: usize| n < self.labels.len();
        let rule = |(n, width): (usize, &usize)| {
            format!("|{}{}", "-".repeat(width + 1), if is_label(n) { '-' } else { ':' })
        };
        let rule: String = widths.iter().enumerate().map(rule).collect();
        for (n, line) in lines.iter().enumerate() {
            let cell = |(n, (text, width)): (usize, (&String, &usize))| match is_label(n) {
                true => format!("| {text:<width$} "),
                false => format!("| {text:>width$} "),
            };
            let cells: String = line.iter().zip(&widths).enumerate().map(cell).collect();
            writeln!(f, "{cells}|")?;
            if n == 0 {
                writeln!(f, "{rule}|")?;
            }
        }
        Ok(())
    }
}

/// The median, the least and the most.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [sorted.len() / 2, 0, sorted.len().saturating_sub(1)].map(|n| sorted.get(n).copied().unwrap_or(f64::NAN))
}

fn cell(values: &[f64]) -> String {
    let [median, min, max] = spread(values).map(rounded);
    if min == max { median } else { format!("{median} ({min}–{max})") }
}

/// Three digits that mean something, no more.
fn rounded(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    // The sum of nothing is -0.0.
    format!("{:.decimals$}", value + 0.0)
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
    }
}
