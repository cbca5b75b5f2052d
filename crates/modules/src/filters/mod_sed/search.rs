//! Searches lines for patterns, without recursion: what was tried in vain is not tried again, so
//! that the time is proportional to the line's length unless the pattern has back-references.
//!
//! Source: `sed_step`, `_advance` (modules/filters/regexp.c).

use std::ops::Range;

use super::pattern::{GROUPS_MAX, Item, Kind, Pattern, Repeat};

/// Steps of a search; beyond, it fails. A step takes about two nanoseconds.
const STEPS_MAX: u64 = 8_000_000;

/// A search takes too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Where a pattern was found, and what a search needs.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The match.
    pub found: Range<usize>,
    /// Where groups begin and end.
    pub groups: [Range<usize>; GROUPS_MAX],
    /// Steps of all searches.
    pub steps: u64,
    choices: Vec<Choice>,
    /// For each item that is repeated, a range of places from all of which what follows the item
    /// was tried in this search, and did not match. While no match is found a range only grows or
    /// makes way for a later one, so that a place is tried again at most where ranges do not touch.
    failed: Vec<Range<usize>>,
}

/// A repeated item, and the places that are still to be tried for what follows it.
#[derive(Debug)]
struct Choice {
    item: usize,
    /// The next place; `None` if none is left.
    next: Option<usize>,
    least: usize,
    /// What the places are apart.
    width: usize,
    /// Where the item was entered, and the last place.
    all: Range<usize>,
}

impl Search {
    /// Finds the first match in `text` from `start` on; `again` if another one ends there, behind
    /// which nothing that was repeated may be empty.
    ///
    /// # Errors
    /// [`TooLong`]
    pub fn find(
        &mut self,
        pattern: &Pattern,
        text: &[u8],
        start: usize,
        again: bool,
    ) -> Result<bool, TooLong> {
        let limit = self.steps.saturating_add(STEPS_MAX);
        self.failed.clear();
        self.failed.resize(pattern.items.len(), 0..0);
        let barred = again.then_some(start);
        if pattern.is_anchored {
            return self.at(pattern, text, start, barred, limit);
        }
        let first = match pattern.items.first() {
            Some(Item { kind: Kind::Byte(byte), repeat: Repeat::Once }) => Some(*byte),
            _ => None,
        };
        let mut at = start;
        loop {
            if let Some(byte) = first {
                let rest = text.get(at..).unwrap_or_default();
                let Some(offset) = bstr::ByteSlice::find_byte(rest, byte) else {
                    return Ok(false);
                };
                self.steps += offset as u64 / 16;
                at += offset;
            }
            if self.at(pattern, text, at, barred, limit)? {
                return Ok(true);
            }
            if at >= text.len() {
                return Ok(false);
            }
            at += 1;
        }
    }

    /// Whether the pattern matches at `start`.
    fn at(
        &mut self,
        pattern: &Pattern,
        text: &[u8],
        start: usize,
        barred: Option<usize>,
        limit: u64,
    ) -> Result<bool, TooLong> {
        self.choices.clear();
        let can_skip = !pattern.items.iter().any(|item| matches!(item.kind, Kind::Back(_)));
        let (mut item, mut at) = (0, start);
        loop {
            self.steps += 1;
            if self.steps > limit {
                return Err(TooLong);
            }
            let Some(here) = pattern.items.get(item) else {
                self.found = start..at;
                return Ok(true);
            };
            let end = match here.repeat {
                Repeat::Once => self.once(&here.kind, text, at),
                _ => {
                    let choice = self.choice(here, item, text, at, can_skip);
                    self.choices.extend(choice);
                    None
                }
            };
            let next = end.map(|end| (item + 1, end));
            match next.or_else(|| self.retry(barred, can_skip)) {
                Some(place) => (item, at) = place,
                None => return Ok(false),
            }
        }
    }

    /// Where a single item that begins at `at` ends.
    fn once(&mut self, kind: &Kind, text: &[u8], at: usize) -> Option<usize> {
        match kind {
            Kind::Open(group) => {
                self.groups.get_mut(*group)?.start = at;
                Some(at)
            }
            Kind::Close(group) => {
                self.groups.get_mut(*group)?.end = at;
                Some(at)
            }
            Kind::End => (at == text.len()).then_some(at),
            Kind::Back(group) => {
                let group = text.get(self.groups.get(*group)?.clone())?;
                self.steps += group.len() as u64 / 8;
                text.get(at..)?.starts_with(group).then(|| at + group.len())
            }
            _ => text.get(at).is_some_and(|byte| is_in(kind, *byte)).then_some(at + 1),
        }
    }

    /// The places where a repeated item may end that begins at `at`.
    fn choice(
        &mut self,
        here: &Item,
        item: usize,
        text: &[u8],
        at: usize,
        can_skip: bool,
    ) -> Option<Choice> {
        if let Kind::Back(group) = here.kind {
            return self.choice_of_group(group, item, text, at);
        }
        let rest = text.get(at..)?;
        let (least, most) = match here.repeat {
            Repeat::Range(least, more) => {
                (usize::from(least), usize::from(least) + usize::from(more))
            }
            _ => (0, usize::MAX),
        };
        let failed = self.failed.get(item).cloned().unwrap_or_default();
        let is_known = here.repeat == Repeat::Star && can_skip;
        let is_end = |(offset, byte): (usize, &u8)| {
            // From a place of a run that was tried, the run's end is known.
            !is_in(&here.kind, *byte) || (is_known && failed.contains(&(at + offset)))
        };
        let room = rest.get(..most.min(rest.len()))?;
        let length = match here.kind {
            Kind::Any => room.len(),
            _ => room.iter().enumerate().position(is_end).unwrap_or(room.len()),
        };
        if !matches!(here.kind, Kind::Any) {
            self.steps += length as u64 / 2;
        }
        if length < least {
            return None;
        }
        let mut last = at + length;
        if can_skip && failed.contains(&last) {
            // All of these were tried.
            last = failed.start.checked_sub(1).filter(|before| *before >= at + least)?;
        }
        let all = at + least..last + 1;
        Some(Choice { item, next: Some(last), least: at + least, width: 1, all })
    }

    fn choice_of_group(
        &mut self,
        group: usize,
        item: usize,
        text: &[u8],
        at: usize,
    ) -> Option<Choice> {
        let group = text.get(self.groups.get(group)?.clone())?;
        let mut last = at;
        // Apache repeats an empty group forever.
        while !group.is_empty() && text.get(last..)?.starts_with(group) {
            last += group.len();
            self.steps += 1 + group.len() as u64 / 8;
        }
        let width = group.len();
        Some(Choice { item, next: Some(last), least: at, width, all: at..at })
    }

    /// The next place to try: an item, and where it begins.
    fn retry(&mut self, barred: Option<usize>, can_skip: bool) -> Option<(usize, usize)> {
        while let Some(choice) = self.choices.last_mut() {
            let is_reference = choice.all.is_empty();
            match choice.next {
                Some(at) if is_reference || barred != Some(at) => {
                    let before = at.checked_sub(choice.width.max(1));
                    choice.next = before.filter(|at| *at >= choice.least && choice.width > 0);
                    return Some((choice.item + 1, at));
                }
                _ => {}
            }
            let (item, all) = (choice.item, choice.all.clone());
            self.choices.pop();
            if can_skip && let Some(failed) = self.failed.get_mut(item) {
                *failed = union(failed, all);
            }
        }
        None
    }
}

/// The union of two ranges if they touch, else the later one.
fn union(failed: &Range<usize>, all: Range<usize>) -> Range<usize> {
    let touches = all.start <= failed.end && failed.start <= all.end;
    match touches && !failed.is_empty() {
        true => failed.start.min(all.start)..failed.end.max(all.end),
        false => all,
    }
}

/// Whether a byte is of a kind that matches bytes.
fn is_in(kind: &Kind, byte: u8) -> bool {
    match kind {
        Kind::Byte(wanted) => byte == *wanted,
        Kind::Any => true,
        Kind::Set(set) => set.contains(byte),
        _ => false,
    }
}
