//! Lines in columns, as Java's `%-10s` makes them: a cell that is wider than its column pushes the rest to the right.

/// The cells of one line, each padded to the width of its column, with a space between.
pub(super) fn line<T: AsRef<str>>(widths: &[usize], cells: &[T]) -> String {
    let mut line = String::new();
    for (column, cell) in cells.iter().enumerate() {
        if column > 0 {
            line.push(' ');
        }
        let width = widths.get(column).copied().unwrap_or_default();
        line.push_str(&format!("{:<width$}", cell.as_ref()));
    }
    line
}

/// The width of the widest of these.
pub(super) fn widest<'a>(cells: impl IntoIterator<Item = &'a str>) -> usize {
    cells
        .into_iter()
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_padded_and_never_cut() {
        assert_eq!(line(&[3, 2, 4], &["a", "long", "b"]), "a   long b   ");
        assert_eq!(widest(["a", "äöü", ""]), 3);
    }
}
