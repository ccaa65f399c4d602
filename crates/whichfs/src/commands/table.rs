//! Tables as wide as the terminal.

use crate::output;
pub use whichfs_report::table as of_width;

/// `rows` under `head`, as wide as the terminal at most.
pub fn text(head: &[&str], rows: Vec<Vec<String>>) -> String {
    of_width(head, rows, output::width())
}
