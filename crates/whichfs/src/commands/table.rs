//! Tables for the terminal: columns without lines, wrapped to its width. Names, which stand in
//! the first column and are copied, stay whole.

use crate::output;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

/// `rows` under `head`, as wide as the terminal at most.
pub fn text(head: &[&str], rows: Vec<Vec<String>>) -> String {
    of_width(head, rows, output::width())
}

/// `rows` under `head`, of at most `width` columns.
pub fn of_width(head: &[&str], rows: Vec<Vec<String>>, width: usize) -> String {
    let names = rows.iter().filter_map(|row| row.first());
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .set_header(head)
        .add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    if let Some(first) = table.column_mut(0).filter(|_| longest <= width / 2) {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_whole_beside_many_columns() {
        let cells = vec!["one two three four".to_owned(); 5];
        let row = [vec!["sandisk-extreme-pro-128gb".to_owned()], cells].concat();
        let text = of_width(&["name", "a", "b", "c", "d", "e"], vec![row], 80);
        assert!(text.contains("sandisk-extreme-pro-128gb"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn a_long_cell_wraps_and_nothing_is_lost() {
        let words = "one two three four five six seven eight nine ten eleven twelve";
        let text = of_width(&["a", "b"], vec![vec!["x".into(), words.into()]], 40);
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        let found: Vec<&str> = text.split_whitespace().collect();
        assert!(words.split(' ').all(|word| found.contains(&word)), "{text}");
    }
}
