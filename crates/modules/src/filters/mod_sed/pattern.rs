//! The regular expressions of sed, which are those of System V: a sequence of items, each of them
//! repeated or not. There are no alternatives, and groups are not repeated.
//!
//! Source: `sed_compile` (modules/filters/regexp.c).

/// A regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Whether it begins with `^`.
    pub is_anchored: bool,
    /// What it consists of.
    pub items: Vec<Item>,
}

/// An item of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// What it matches.
    pub kind: Kind,
    /// How often.
    pub repeat: Repeat,
}

/// What an item matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A byte.
    Byte(u8),
    /// Any byte (`.`), a newline among them.
    Any,
    /// A byte of a set (`[…]`).
    Set(Box<Set>),
    /// The end of the line (`$`).
    End,
    /// The beginning of a group.
    Open(usize),
    /// The end of a group.
    Close(usize),
    /// The text of a group once more (`\1`).
    Back(usize),
}

/// How often an item matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Once.
    Once,
    /// Any number of times (`*`).
    Star,
    /// `\{least,most\}`
    Range(u16, u16),
}

/// A set of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set([u64; 4]);

impl Set {
    /// Whether a byte belongs to it.
    pub fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6)).copied().unwrap_or(0);
        word & (1 << (byte & 63)) != 0
    }

    fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    /// The other bytes.
    fn negated(&self) -> Set {
        Set(self.0.map(|word| !word))
    }
}

/// Most groups of a pattern.
pub(crate) const GROUPS_MAX: usize = 9;

/// What `\{least,\}` allows beyond the least (`getrnge`).
const OPEN_RANGE: u16 = 20_000;

/// Why a pattern can't be compiled: what precedes the script's line in the message.
pub(crate) type Wrong = &'static str;

const DELIMITER: Wrong = "Illegal or missing delimiter: ";
const IMBALANCE: Wrong = "\\( \\) imbalance: ";
/// Too many commands for Apache's space.
pub(crate) const TOO_MUCH: Wrong = "too much command text: ";
/// A back-reference to a group that does not exist.
pub(crate) const NO_SUCH_GROUP: Wrong = "``\\digit'' out of range: ";
/// What Apache compiles to something without sense.
const NOT_REPEATABLE: Wrong = "\\{ \\} after a group or an interval is not supported: ";

const OPEN_GROUP: Wrong = "\\digit within its group is not supported: ";

/// What a compilation yields.
pub(crate) enum Compiled {
    /// The pattern before.
    Empty,
    /// A pattern, and how many groups it has.
    Pattern(Pattern, usize),
}

/// Compiles a pattern.
pub(crate) struct Compiler<'t> {
    text: &'t [u8],
    at: usize,
    delimiter: u8,
    room: usize,
    space: usize,
    items: Vec<Item>,
    /// The item that `*` or an interval repeats.
    last: Option<usize>,
    groups: usize,
    closed: usize,
    open: Vec<usize>,
}

impl<'t> Compiler<'t> {
    /// Compiles what `text` has at `at`, up to `delimiter`. `space` is what Apache's compiled
    /// script takes until here, in bytes, and `room` limits it.
    pub fn new(text: &'t [u8], at: usize, delimiter: u8, space: usize, room: usize) -> Self {
        let (items, open, last) = (Vec::new(), Vec::new(), None);
        // Before the program there is a flag for `^`.
        let space = space + 1;
        Compiler { text, at, delimiter, room, space, items, last, groups: 0, closed: 0, open }
    }

    /// Returns the pattern; then [`Compiler::ends`] tells where it ends.
    pub fn compile(&mut self) -> Result<Compiled, Wrong> {
        let first = self.next();
        if first == self.delimiter {
            return Ok(Compiled::Empty);
        }
        if first == b'\n' {
            self.at -= 1;
            return Ok(Compiled::Empty);
        }
        let is_anchored = first == b'^';
        if !is_anchored {
            self.at -= 1;
        }
        loop {
            if self.space >= self.room {
                return Err(TOO_MUCH);
            }
            let byte = self.next();
            if byte == self.delimiter {
                self.space += 1;
                if !self.open.is_empty() {
                    return Err(IMBALANCE);
                }
                let items = std::mem::take(&mut self.items);
                return Ok(Compiled::Pattern(Pattern { is_anchored, items }, self.groups));
            }
            self.item(byte)?;
        }
    }

    /// Where the text continues, and the space that is taken.
    pub fn ends(&self) -> (usize, usize) {
        (self.at, self.space)
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn item(&mut self, byte: u8) -> Result<(), Wrong> {
        match byte {
            b'.' => self.push(Kind::Any, 1),
            b'\n' | 0 => return Err(DELIMITER),
            b'*' => match self.last.and_then(|last| self.items.get_mut(last)) {
                None => self.push(Kind::Byte(b'*'), 2),
                Some(Item { kind: Kind::Open(_) | Kind::Close(_), .. }) => {
                    self.push(Kind::Byte(b'*'), 2);
                }
                Some(Item { repeat: Repeat::Range(..), .. }) => {}
                Some(item) => item.repeat = Repeat::Star,
            },
            b'$' if self.peek() == self.delimiter || self.peek() == b'\n' => {
                self.push(Kind::End, 1);
            }
            b'[' => self.set()?,
            b'\\' => {
                let byte = self.next();
                self.escaped(byte)?;
            }
            _ => self.push(Kind::Byte(byte), 2),
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, space: usize) {
        self.last = Some(self.items.len());
        self.items.push(Item { kind, repeat: Repeat::Once });
        self.space += space;
    }

    fn escaped(&mut self, byte: u8) -> Result<(), Wrong> {
        match byte {
            b'(' => {
                if self.groups >= GROUPS_MAX {
                    return Err("Too many \\(: ");
                }
                self.open.push(self.groups);
                self.push(Kind::Open(self.groups), 2);
                self.groups += 1;
            }
            b')' => {
                let group = self.open.pop().ok_or(IMBALANCE)?;
                self.push(Kind::Close(group), 2);
                self.closed += 1;
            }
            b'{' if self.last.is_some() => self.interval()?,
            b'\n' | 0 => return Err(DELIMITER),
            b'n' => self.push(Kind::Byte(b'\n'), 2),
            b'1'..=b'9' => {
                let group = usize::from(byte - b'1');
                if group >= self.closed {
                    return Err(NO_SUCH_GROUP);
                }
                if self.open.contains(&group) {
                    return Err(OPEN_GROUP);
                }
                self.push(Kind::Back(group), 2);
            }
            _ => self.push(Kind::Byte(byte), 2),
        }
        Ok(())
    }

    /// `\{least,most\}`
    fn interval(&mut self) -> Result<(), Wrong> {
        let least = self.number()?;
        let mut range = (least, 0);
        if self.text.get(self.at.wrapping_sub(1)) == Some(&b',') {
            if self.peek() == b'\\' {
                self.at += 1;
                range.1 = OPEN_RANGE;
            } else {
                let most = self.number()?;
                if self.text.get(self.at.wrapping_sub(1)) == Some(&b',') {
                    return Err("More than 2 numbers given in \\{ \\}: ");
                }
                self.ends_interval()?;
                range.1 =
                    most.checked_sub(least).ok_or("First number exceeds second in \\{ \\}: ")?;
                return self.repeat(range);
            }
        }
        self.ends_interval()?;
        self.repeat(range)
    }

    fn ends_interval(&mut self) -> Result<(), Wrong> {
        if self.next() == b'}' { Ok(()) } else { Err("} expected after \\: ") }
    }

    fn repeat(&mut self, (least, more): (u16, u16)) -> Result<(), Wrong> {
        let item = self.last.and_then(|last| self.items.get_mut(last)).ok_or(NOT_REPEATABLE)?;
        let is_single = matches!(item.kind, Kind::Byte(_) | Kind::Any | Kind::Set(_));
        if !is_single || matches!(item.repeat, Repeat::Range(..)) {
            return Err(NOT_REPEATABLE);
        }
        item.repeat = Repeat::Range(least, more);
        self.space += 2;
        Ok(())
    }

    /// A number, and the comma or backslash behind it.
    fn number(&mut self) -> Result<u16, Wrong> {
        let (mut number, mut byte) = (0u32, self.next());
        loop {
            if !byte.is_ascii_digit() {
                return Err("Bad number: ");
            }
            number = number.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
            byte = self.next();
            if byte == b'\\' || byte == b',' {
                break;
            }
        }
        u16::try_from(number)
            .ok()
            .filter(|number| *number < 255)
            .ok_or("Range endpoint too large: ")
    }

    /// `[…]`, in which a backslash is a byte like others.
    fn set(&mut self) -> Result<(), Wrong> {
        if self.space + 17 >= self.room {
            return Err(TOO_MUCH);
        }
        let mut byte = self.next();
        let is_negated = byte == b'^';
        if is_negated {
            byte = self.next();
        }
        let (mut set, mut last, mut is_wide) = (Set::default(), 0u8, false);
        loop {
            if byte == 0 || byte == b'\n' {
                return Err("[ ] imbalance: ");
            }
            is_wide |= byte >= 0x80;
            if byte == b'-' && last != 0 {
                byte = self.next();
                if byte == b']' {
                    set.insert(b'-');
                    break;
                }
                is_wide |= byte >= 0x80;
                (last..byte).for_each(|byte| set.insert(byte));
            }
            last = byte;
            set.insert(byte);
            byte = self.next();
            if byte == b']' {
                break;
            }
        }
        if is_wide && self.space + 33 >= self.room {
            return Err(TOO_MUCH);
        }
        let set = if is_negated { set.negated() } else { set };
        self.push(Kind::Set(Box::new(set)), if is_wide { 33 } else { 17 });
        Ok(())
    }
}
