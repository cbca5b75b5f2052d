//! Runs the rules on a sample.
//!
//! Source: `match`, `mget`, `mcheck`, `mprint` (modules/metadata/mod_mime_magic.c).

use super::print::{self, Argument};
use super::rule::{Kind, Rule, VALUE_BYTES, Value, Width};
use super::{Sample, c_string};
use crate::ctime::ctime;

/// What Apache logs while it tests a file: number and text.
pub type Remark = (u32, &'static str);

const INVALID_TYPE: Remark = (1538, "invalid type 0 in mconvert().");
const ANY: Remark = (1539, "BOINK");

/// Prints the first rule that holds, and the rules below it that hold. `None` if none does.
pub(super) fn run(
    rules: &[Rule],
    sample: &Sample,
    remarks: &mut Vec<Remark>,
) -> Option<Vec<Vec<u8>>> {
    let mut rest = rules;
    loop {
        let (first, below) = rest.split_first()?;
        let count = below.iter().take_while(|rule| rule.level > 0).count();
        let (below, others) = below.split_at(count);
        if let Some(value) = first.holds(sample, remarks) {
            let mut printed = vec![first.print(&value)];
            print_below(first, below, sample, remarks, &mut printed);
            return Some(printed);
        }
        rest = others;
    }
}

fn print_below(
    first: &Rule,
    below: &[Rule],
    sample: &Sample,
    remarks: &mut Vec<Remark>,
    printed: &mut Vec<Vec<u8>>,
) {
    let mut needs_blank = !first.description.is_empty();
    // A rule counts if that above it has held.
    let mut level = 1;
    for rule in below {
        if rule.level > level {
            continue;
        }
        level = rule.level;
        let Some(value) = rule.holds(sample, remarks) else { continue };
        let has_text = !rule.description.is_empty();
        if needs_blank && !rule.joins && has_text {
            printed.push(b" ".to_vec());
            needs_blank = false;
        }
        printed.push(rule.print(&value));
        needs_blank |= has_text;
        level += 1;
    }
}

impl Rule {
    /// The value in the sample, if the rule holds.
    fn holds(&self, sample: &Sample, remarks: &mut Vec<Remark>) -> Option<Value> {
        let first = at(sample, self.offset)?;
        let Some(kind) = self.kind else {
            remarks.push(INVALID_TYPE);
            return None;
        };
        let mut value = convert(kind, first);
        if let Some(indirect) = self.indirect {
            let offset = match indirect.width {
                Width::Byte => i64::from(value.byte()),
                Width::Short => i64::from(value.short()),
                Width::Long => value.long() as i64,
            };
            value = convert(kind, at(sample, offset.wrapping_add(indirect.added))?);
        }
        self.compares(kind, &value, remarks).then_some(value)
    }

    fn compares(&self, kind: Kind, value: &Value, remarks: &mut Vec<Remark>) -> bool {
        // As in Apache, the number 120 looks like the text "x", which once meant any value.
        if matches!(self.value.0, [b'x', 0, ..]) {
            remarks.push(ANY);
            return true;
        }
        let (found, wanted) = match kind {
            Kind::Text => (self.difference(value), 0),
            _ => (value.number(kind), self.value.long()),
        };
        let found = kind.extend(found, self.is_unsigned) & self.mask;
        match self.relation {
            b'x' => true,
            b'!' => found != wanted,
            b'=' => found == wanted,
            b'>' if self.is_unsigned => found > wanted,
            b'>' => found as i64 > wanted as i64,
            b'<' if self.is_unsigned => found < wanted,
            b'<' => (found as i64) < wanted as i64,
            b'&' => found & wanted == wanted,
            _ => found & wanted != wanted,
        }
    }

    /// The difference of the first bytes that differ, as `strncmp`.
    fn difference(&self, value: &Value) -> u64 {
        let pairs = value.0.iter().zip(&self.value.0).take(self.length);
        let mut differences = pairs.map(|(found, own)| i64::from(*found) - i64::from(*own));
        differences.find(|difference| *difference != 0).unwrap_or(0) as u64
    }

    fn print(&self, value: &Value) -> Vec<u8> {
        let text = |bytes| print::print(&self.description, &Argument::Text(c_string(bytes)));
        match self.kind {
            Some(Kind::Text) if self.relation == b'=' => text(&self.value.0),
            Some(Kind::Text) => text(&value.0),
            Some(Kind::Date | Kind::BigDate | Kind::LittleDate) => {
                let time = ctime(value.long() as i64);
                print::print(&self.description, &Argument::Text(time.as_bytes()))
            }
            Some(kind) => {
                let number = kind.extend(value.number(kind), self.is_unsigned) & self.mask;
                print::print(&self.description, &Argument::Number(number))
            }
            None => Vec::new(),
        }
    }
}

/// The bytes at an offset. As in Apache, there is no value if fewer are left than a text may have.
fn at(sample: &Sample, offset: i64) -> Option<Value> {
    let start = usize::try_from(offset).ok()?;
    let bytes = sample.bytes().get(start..start.checked_add(VALUE_BYTES)?)?;
    Some(Value(bytes.try_into().ok()?))
}

/// Converts the value to the machine's order (`mconvert`).
fn convert(kind: Kind, mut value: Value) -> Value {
    let [a, b, c, d, ..] = value.0;
    match kind {
        Kind::Byte | Kind::Short | Kind::Long | Kind::Date | Kind::LittleShort => {}
        Kind::Text => {
            let [.., last] = &mut value.0;
            *last = 0;
            let end = value.0.iter().position(|byte| matches!(byte, 0 | b'\n'));
            if let Some(end) = end.and_then(|at| value.0.get_mut(at)) {
                *end = 0;
            }
        }
        Kind::BigShort => value.set_short(u16::from_be_bytes([a, b])),
        // An int, whose sign is extended.
        Kind::BigLong | Kind::BigDate => {
            value.set_long(i64::from(i32::from_be_bytes([a, b, c, d])) as u64);
        }
        Kind::LittleLong | Kind::LittleDate => {
            value.set_long(i64::from(i32::from_le_bytes([a, b, c, d])) as u64);
        }
    }
    value
}
