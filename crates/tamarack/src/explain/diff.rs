//! `--diff`: the rows of two reports that differ.

use super::rows::Row;

/// A row under its heading.
pub type Line = (String, Row);

/// A row that the other report lacks: whether it belongs to the new report, and the row.
pub type Difference = (bool, Line);

/// The most pairs of rows that are compared to find a shortest list of differences.
const PAIRS_LIMIT: usize = 4_000_000;

/// Compares two reports, regardless of the places of directives and of the date.
pub fn between(old: &[Line], new: &[Line], fresh: &Fresh) -> Vec<Difference> {
    let is_same = |(one, other): &(&Line, &Line)| same(one, other, fresh);
    let first = old.iter().zip(new).take_while(is_same).count();
    let (old, new) = (old.get(first..).unwrap_or_default(), new.get(first..).unwrap_or_default());
    let last = old.iter().rev().zip(new.iter().rev()).take_while(is_same).count();
    let old = old.get(..old.len() - last).unwrap_or_default();
    let new = new.get(..new.len() - last).unwrap_or_default();
    if old.len().saturating_mul(new.len()) <= PAIRS_LIMIT {
        return fewest(old, new, fresh);
    }
    let removed = old.iter().map(|line| (false, line.clone()));
    removed.chain(new.iter().map(|line| (true, line.clone()))).collect()
}

fn fewest(old: &[Line], new: &[Line], fresh: &Fresh) -> Vec<Difference> {
    let counts = common(old, new, fresh);
    let (mut at, mut on) = (0, 0);
    let mut found = Vec::new();
    while let (Some(one), Some(other)) = (old.get(at), new.get(on)) {
        if same(one, other, fresh) {
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

/// Values that are new with each request, such as those of cookies and identifiers: texts in which
/// `None` stands for such a word.
#[derive(Debug, Default)]
pub struct Fresh(Vec<Vec<Option<String>>>);

impl Fresh {
    /// What differs between two reports on the same request under the same configuration.
    pub fn of(one: &[Line], other: &[Line]) -> Fresh {
        let mut fresh = Fresh::default();
        for ((_, row), (_, again)) in one.iter().zip(other) {
            let (words, others) = (words(&row.text), words(&again.text));
            if row.text == again.text || row.label != again.label || words.len() != others.len() {
                continue;
            }
            let pairs = words.into_iter().zip(others);
            let text = pairs.map(|(word, other)| (word == other).then(|| word.to_owned()));
            let text: Vec<Option<String>> = text.collect();
            if !fresh.0.contains(&text) {
                fresh.0.push(text);
            }
        }
        fresh
    }

    /// Whether two texts differ only in such values.
    fn has_both(&self, one: &str, other: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let (one, other) = (words(one), words(other));
        let fits = |text: &[Option<String>], words: &[&str]| {
            let is_same = |(own, word): (&Option<String>, &&str)| {
                own.as_deref().is_none_or(|own| own == *word)
            };
            text.len() == words.len() && text.iter().zip(words).all(is_same)
        };
        self.0.iter().any(|text| fits(text, &one) && fits(text, &other))
    }
}

/// The words of a text, and what is between them.
fn words(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "@_.-".contains(letter);
    let (mut words, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let is_word = is_part(first);
        let end = rest.find(|letter: char| is_part(letter) != is_word).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

fn same(one: &Line, other: &Line, fresh: &Fresh) -> bool {
    let is_date = |row: &Row| row.text.starts_with("Date: ");
    let outcome = |row: &Row| row.outcome.split("over ").next().map(str::to_owned);
    let ((group, row), (of_other, beside)) = (one, other);
    group == of_other
        && row.label == beside.label
        && (row.text == beside.text
            || is_date(row) && is_date(beside)
            || fresh.has_both(&row.text, &beside.text))
        && outcome(row) == outcome(beside)
}

/// The lengths of the longest common subsequences of all suffixes.
fn common(old: &[Line], new: &[Line], fresh: &Fresh) -> Vec<Vec<usize>> {
    let mut counts = vec![vec![0; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for on in (0..new.len()).rev() {
            let both = old.get(at).zip(new.get(on));
            let value = match both.is_some_and(|(one, other)| same(one, other, fresh)) {
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
        let found = between(&old, &new, &Fresh::default());
        let texts: Vec<_> = found.iter().map(|(new, (_, row))| (*new, row.text.as_str())).collect();
        assert_eq!(texts, [(false, "b"), (true, "x"), (true, "d")]);
        assert!(between(&old, &old, &Fresh::default()).is_empty());
    }

    #[test]
    fn long_reports_are_compared_in_little_memory() {
        let many = |start: u32| -> Vec<Line> {
            (start..start + 20_000).map(|number| line(&number.to_string())).collect()
        };
        assert_eq!(between(&many(0), &many(20_000), &Fresh::default()).len(), 40_000);
        let mut changed = many(0);
        changed[10_000] = line("other");
        assert_eq!(between(&many(0), &changed, &Fresh::default()).len(), 2);
    }

    #[test]
    fn fresh_values_do_not_differ() {
        let cookie = |value: &str| [line(&format!("Set-Cookie: Apache=127.0.0.1.{value}; path=/"))];
        let fresh = Fresh::of(&cookie("5f2a"), &cookie("5f2b"));
        assert!(between(&cookie("1"), &cookie("2"), &fresh).is_empty());
        let other = [line("Set-Cookie: Apache=127.0.0.1.5f2a; path=/a")];
        assert_eq!(between(&cookie("1"), &other, &fresh).len(), 2);
        assert_eq!(between(&cookie("1"), &cookie("2"), &Fresh::default()).len(), 2);
    }
}
