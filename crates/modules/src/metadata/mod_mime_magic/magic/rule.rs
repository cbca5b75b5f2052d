//! A rule: where to look, what to compare, and what to print.

/// Bytes of a text in a rule, and of what is compared with it (`MAXstring`).
pub(super) const VALUE_BYTES: usize = 64;

/// A line of a magic file (`struct magic`).
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The number of `>` in front of it.
    pub level: usize,
    /// The offset of the value.
    pub offset: i64,
    /// The offset is the place of an offset.
    pub indirect: Option<Indirect>,
    /// `None` if the type is invalid: the rule never holds.
    pub kind: Option<Kind>,
    /// The comparison has no signs.
    pub is_unsigned: bool,
    /// The bits of the value that count.
    pub mask: u64,
    /// The relation: `=`, `>`, `<`, `&`, `^`, `!`, or `x` for any value.
    pub relation: u8,
    /// The number or text to compare with.
    pub value: Value,
    /// The length of the text.
    pub length: usize,
    /// No blank is printed in front of it.
    pub joins: bool,
    /// What is printed, a format of `printf`.
    pub description: Vec<u8>,
}

/// An offset at an offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indirect {
    /// Its size.
    pub width: Width,
    /// What is added to it.
    pub added: i64,
}

/// The size of an indirect offset.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Byte,
    Short,
    Long,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Byte,
    /// Two bytes in the machine's order.
    Short,
    /// Eight bytes in the machine's order, as in Apache.
    Long,
    Text,
    /// Like `Long`, printed as a time.
    Date,
    BigShort,
    BigLong,
    BigDate,
    LittleShort,
    LittleLong,
    LittleDate,
}

impl Kind {
    /// Extends the sign of a number (`signextend`).
    pub fn extend(self, number: u64, is_unsigned: bool) -> u64 {
        match self {
            _ if is_unsigned => number,
            Kind::Byte => i64::from(number as i8) as u64,
            Kind::Short | Kind::BigShort | Kind::LittleShort => i64::from(number as i16) as u64,
            _ => number,
        }
    }
}

/// A number or a text (`union VALUETYPE`). Its bytes are those of a little-endian machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(pub [u8; VALUE_BYTES]);

impl Value {
    pub const ZERO: Value = Value([0; VALUE_BYTES]);

    pub fn set_short(&mut self, number: u16) {
        let [first, second, ..] = &mut self.0;
        [*first, *second] = number.to_le_bytes();
    }

    pub fn set_long(&mut self, number: u64) {
        if let Some(place) = self.0.first_chunk_mut() {
            *place = number.to_le_bytes();
        }
    }

    pub fn byte(&self) -> u8 {
        let [first, ..] = self.0;
        first
    }

    pub fn short(&self) -> u16 {
        let [first, second, ..] = self.0;
        u16::from_le_bytes([first, second])
    }

    pub fn long(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Its number as a type has it.
    pub fn number(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Byte => u64::from(self.byte()),
            Kind::Short | Kind::BigShort | Kind::LittleShort => u64::from(self.short()),
            _ => self.long(),
        }
    }
}
