//! `--diff`: the rows of two reports that differ.

use super::rows::Row;

/// A row under its heading.
pub type Line = (String, Row);

/// A row that the other report lacks: whether it belongs to the new report, and the row.
pub type Difference = (bool, Line);

/// Compares two reports, regardless of the places of directives and of the date.
pub fn between(old: &[Line], new: &[Line]) -> Vec<Difference> {
    let counts = common(old, new);
    let (mut at, mut on) = (0, 0);
    let mut found = Vec::new();
    while let (Some(one), Some(other)) = (old.get(at), new.get(on)) {
        if same(one, other) {
            (at, on) = (at + 1, on + 1);
        } else if length(&counts, at + 1, on) >= length(&counts, at, on + 1) {
            found.push((false, one.clone()));
            at += 1;
        } else {
            found.push((true, other.clone()));
            on += 1;
        }
    }
    found.extend(old.iter().skip(at).map(|line| (false, line.clone())));
    found.extend(new.iter().skip(on).map(|line| (true, line.clone())));
    found
}

fn same(one: &Line, other: &Line) -> bool {
    let is_date = |row: &Row| row.text.starts_with("Date: ");
    let outcome = |row: &Row| row.outcome.split("over ").next().map(str::to_owned);
    let ((group, row), (of_other, beside)) = (one, other);
    group == of_other
        && row.label == beside.label
        && (row.text == beside.text || is_date(row) && is_date(beside))
        && outcome(row) == outcome(beside)
}

/// The lengths of the longest common subsequences of all suffixes.
fn common(old: &[Line], new: &[Line]) -> Vec<Vec<usize>> {
    let mut counts = vec![vec![0; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for on in (0..new.len()).rev() {
            let both = old.get(at).zip(new.get(on));
            let value = match both.is_some_and(|(one, other)| same(one, other)) {
                true => length(&counts, at + 1, on + 1) + 1,
                false => length(&counts, at + 1, on).max(length(&counts, at, on + 1)),
            };
            if let Some(slot) = counts.get_mut(at).and_then(|row| row.get_mut(on)) {
                *slot = value;
            }
        }
    }
    counts
}

fn length(counts: &[Vec<usize>], at: usize, on: usize) -> usize {
    counts.get(at).and_then(|row| row.get(on)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        ("storage".to_owned(), Row { text: text.to_owned(), ..Row::default() })
    }

    #[test]
    fn only_what_differs_is_left() {
        let (old, new) = (["a", "b", "c"].map(line), ["a", "x", "c", "d"].map(line));
        let found = between(&old, &new);
        let texts: Vec<_> = found.iter().map(|(new, (_, row))| (*new, row.text.as_str())).collect();
        assert_eq!(texts, [(false, "b"), (true, "x"), (true, "d")]);
        assert!(between(&old, &old).is_empty());
    }
}
