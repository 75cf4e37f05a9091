//! A simple table: rows of cells, the first row being the head.

/// Columns below the head of a table.
const COLUMNS: usize = 100;

/// The table that is being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Tables that are open; only the outermost one becomes a table.
    pub(super) depth: usize,
    rows: usize,
    cells: usize,
    /// A cell is open, so everything goes on one line.
    pub(super) in_cell: bool,
}

impl Table {
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 1
    }

    /// A table begins.
    pub(super) fn open(&mut self) {
        self.depth += 1;
        if self.is_outermost() {
            (self.rows, self.cells, self.in_cell) = (0, 0, false);
        }
    }

    /// Whether the next cell is the first of its row, and of the table.
    pub(super) fn is_at_start(&self) -> (bool, bool) {
        (self.cells == 0, self.cells == 0 && self.rows == 0)
    }

    /// Ends the open cell, if there is one.
    pub(super) fn end_cell(&mut self, out: &mut String) {
        if std::mem::take(&mut self.in_cell) {
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str(" |");
            self.cells += 1;
        }
    }

    /// Ends the open row, and says whether there was one. Below the first one comes a rule, which begins as lines do here.
    pub(super) fn end_row(&mut self, out: &mut String, line: &str) -> bool {
        self.end_cell(out);
        let cells = std::mem::take(&mut self.cells);
        if cells == 0 {
            return false;
        }
        self.rows += 1;
        if self.rows == 1 {
            out.push_str(&format!("\n{line}|{}", "---|".repeat(cells.min(COLUMNS))));
        }
        true
    }
}
