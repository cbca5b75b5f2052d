//! Tokens of expressions. Strings and variables contain expressions in turn, so the parser reads
//! them piece by piece.

use bstr::{BString, ByteSlice};

use super::Error;
use super::ast::{Comparison, Relation};
use super::parse::MAX_LITERAL_BYTES;

/// The delimiters of a pattern after `m`.
const DELIMITERS: &[u8] = b"/#$%^,;:_?|!.'\"-";

/// A token and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    End,
    True,
    False,
    And,
    Or,
    Not,
    In,
    Concat,
    Compare(Comparison),
    /// `=~`, or `!~` if negated.
    Match {
        negated: bool,
    },
    Digits(BString),
    Identifier(String),
    /// A quote; the string follows.
    StringStart(u8),
    /// `%{`; the variable follows.
    VariableStart,
    Backref(usize),
    Pattern {
        pattern: BString,
        caseless: bool,
    },
    /// A minus and a letter.
    Unary(String),
    /// A minus and a longer name.
    Binary(String),
    /// `(`, `)`, `{`, `}`, `,` or `:`.
    Mark(u8),
}

/// A piece of a string.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(BString),
    Backref(usize),
    /// `%{`; the variable follows.
    VariableStart,
    /// The end of the string, which is consumed.
    End,
}

/// What ends a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Quote(u8),
    /// The end of the text, if all of it is a string.
    EndOfText,
    /// The `}` of `%{name:…}`, which is consumed.
    Brace,
}

/// Reads tokens from a text.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// Returns an error about `length` bytes at the current position.
    fn error<T>(&self, message: impl Into<String>, length: usize) -> Result<T, Error> {
        Err(Error { message: message.into(), offset: self.at, length })
    }

    pub(super) fn next(&mut self) -> Result<Token, Error> {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().iter().take_while(blank).count();
        let start = self.at;
        let kind = self.kind()?;
        Ok(Token { kind, start, end: self.at })
    }

    fn kind(&mut self) -> Result<Kind, Error> {
        let rest = self.rest();
        let Some(&first) = rest.first() else { return Ok(Kind::End) };
        let second = rest.get(1).copied();
        let (kind, length) = match (first, second) {
            (b'"' | b'\'', _) => (Kind::StringStart(first), 1),
            (b'%', Some(b'{')) => (Kind::VariableStart, 2),
            (b'$', Some(digit @ b'0'..=b'9')) => (Kind::Backref(usize::from(digit - b'0')), 2),
            (b'm', Some(delimiter)) if DELIMITERS.contains(&delimiter) => {
                // `m_` could begin a name; as in Apache, a longer name wins.
                if delimiter != b'_' || identifier_length(rest) <= 2 {
                    return self.pattern(2, delimiter);
                }
                return Ok(self.identifier());
            }
            (b'/', _) => return self.pattern(1, b'/'),
            (b'a'..=b'z' | b'A'..=b'Z', _) => return Ok(self.identifier()),
            (b'0'..=b'9', _) | (b'-', Some(b'0'..=b'9')) => return Ok(self.digits()),
            (b'-', Some(b'a'..=b'z' | b'A'..=b'Z' | b'_')) => return Ok(self.operator()),
            (b'&', Some(b'&')) => (Kind::And, 2),
            (b'|', Some(b'|')) => (Kind::Or, 2),
            (b'=', Some(b'~')) => (Kind::Match { negated: false }, 2),
            (b'!', Some(b'~')) => (Kind::Match { negated: true }, 2),
            (b'=', Some(b'=')) => (text_order(Relation::Equal), 2),
            (b'!', Some(b'=')) => (text_order(Relation::NotEqual), 2),
            (b'<', Some(b'=')) => (text_order(Relation::LessOrEqual), 2),
            (b'>', Some(b'=')) => (text_order(Relation::GreaterOrEqual), 2),
            (b'=', _) => (text_order(Relation::Equal), 1),
            (b'<', _) => (text_order(Relation::Less), 1),
            (b'>', _) => (text_order(Relation::Greater), 1),
            (b'!', _) => (Kind::Not, 1),
            (b'.', _) => (Kind::Concat, 1),
            (b'(' | b')' | b'{' | b'}' | b',' | b':', _) => (Kind::Mark(first), 1),
            _ => return self.error(format!("Parse error near '{}'", printable(first)), 1),
        };
        self.at += length;
        Ok(kind)
    }

    fn identifier(&mut self) -> Kind {
        let name = self.take(identifier_length(self.rest()));
        match name.as_str() {
            "true" => Kind::True,
            "false" => Kind::False,
            "and" => Kind::And,
            "or" => Kind::Or,
            "not" => Kind::Not,
            "in" => Kind::In,
            _ => number_order(&name).unwrap_or(Kind::Identifier(name)),
        }
    }

    fn digits(&mut self) -> Kind {
        let rest = self.rest();
        let sign = usize::from(rest.first() == Some(&b'-'));
        let length = rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        Kind::Digits(self.take(sign + length).into())
    }

    /// Reads the operator after a minus: a known one, or its name.
    fn operator(&mut self) -> Kind {
        let name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = self.rest().iter().skip(1).take_while(name).count();
        self.at += 1;
        let name = self.take(length);
        match name.as_str() {
            "in" => Kind::In,
            _ if length == 1 => Kind::Unary(name),
            _ => number_order(&name).unwrap_or(Kind::Binary(name)),
        }
    }

    /// Reads a pattern up to its unescaped delimiter, and an optional `i`.
    fn pattern(&mut self, skipped: usize, delimiter: u8) -> Result<Kind, Error> {
        let body = self.rest().get(skipped..).unwrap_or(&[]);
        let Some(length) = body.find_byte(delimiter) else {
            let message = "Unterminated regexp: there is no closing delimiter";
            return self.error(message, self.rest().len());
        };
        let pattern = body.get(..length).unwrap_or(&[]).into();
        self.at += skipped + length + 1;
        let caseless = self.rest().first() == Some(&b'i');
        self.at += usize::from(caseless);
        Ok(Kind::Pattern { pattern, caseless })
    }

    /// Reads a name after `%{`.
    pub(super) fn variable_name(&mut self) -> Result<String, Error> {
        match identifier_length(self.rest()) {
            0 => match self.rest().first() {
                None => self.error("Unterminated string or variable", 0),
                Some(byte @ (b'}' | b':')) => {
                    let token = if *byte == b'}' { "T_VAR_END" } else { "':'" };
                    self.error(format!("syntax error, unexpected {token}, expecting T_ID"), 1)
                }
                Some(byte) => {
                    let shown = printable(*byte);
                    self.error(format!("Invalid character in variable name '{shown}'"), 1)
                }
            },
            length => Ok(self.take(length)),
        }
    }

    /// Reads the byte after the name: returns true for `:`, false for `}`.
    pub(super) fn variable_has_argument(&mut self) -> Result<bool, Error> {
        match self.rest().first() {
            Some(byte @ (b':' | b'}')) => {
                self.at += 1;
                Ok(*byte == b':')
            }
            None => self.error("Unterminated string or variable", 0),
            Some(byte) => {
                let shown = printable(*byte);
                self.error(format!("Invalid character in variable name '{shown}'"), 1)
            }
        }
    }

    /// Reads the next piece of a string.
    pub(super) fn piece(&mut self, stop: Stop) -> Result<Piece, Error> {
        let mut literal = BString::default();
        loop {
            let rest = self.rest();
            let Some(&byte) = rest.first() else {
                return match stop {
                    Stop::EndOfText => Ok(piece_or(literal, Piece::End)),
                    Stop::Quote(_) | Stop::Brace => {
                        self.error("Unterminated string or variable", 0)
                    }
                };
            };
            let special = match (byte, rest.get(1)) {
                (b'%', Some(b'{')) => Some((Piece::VariableStart, 2)),
                (b'$', Some(digit @ b'0'..=b'9')) => {
                    Some((Piece::Backref(usize::from(digit - b'0')), 2))
                }
                (b'}', _) if stop == Stop::Brace => Some((Piece::End, 1)),
                (quote, _) if stop == Stop::Quote(quote) => Some((Piece::End, 1)),
                _ => None,
            };
            if let Some((piece, length)) = special {
                // The literal so far comes first; the next call reads this again.
                if literal.is_empty() {
                    self.at += length;
                }
                return Ok(piece_or(literal, piece));
            }
            match byte {
                b'\\' => literal.push(self.escape()?),
                b'\n' => return self.error("Unterminated string or variable", 1),
                _ => {
                    literal.push(byte);
                    self.at += 1;
                }
            }
            if literal.len() >= MAX_LITERAL_BYTES {
                return self.error("String too long", 0);
            }
        }
    }

    /// Reads an escape and returns the byte it stands for.
    fn escape(&mut self) -> Result<u8, Error> {
        let after = self.rest().get(1..).unwrap_or(&[]);
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            let octal = after.get(..digits.min(3)).unwrap_or(&[]);
            if digits > 3 || octal.iter().any(|digit| *digit > b'7') {
                return self.error("Bad escape sequence", digits + 1);
            }
            let value = octal.iter().fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
            let Ok(byte) = u8::try_from(value) else {
                return self.error("Escape sequence out of bound", digits + 1);
            };
            self.at += digits + 1;
            return Ok(byte);
        }
        let (byte, length) = match after.first() {
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(b'b') => (0x08, 2),
            Some(b'f') => (0x0c, 2),
            Some(other) => (*other, 2),
            None => (b'\\', 1),
        };
        self.at += length;
        Ok(byte)
    }

    /// Consumes the next bytes, which are ASCII.
    fn take(&mut self, length: usize) -> String {
        let taken = self.rest().get(..length).unwrap_or(&[]);
        self.at += length;
        taken.to_str_lossy().into_owned()
    }
}

fn piece_or(literal: BString, piece: Piece) -> Piece {
    if literal.is_empty() { piece } else { Piece::Text(literal) }
}

fn identifier_length(text: &[u8]) -> usize {
    if !text.first().is_some_and(u8::is_ascii_alphabetic) {
        return 0;
    }
    text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

fn text_order(relation: Relation) -> Kind {
    Kind::Compare(Comparison { numeric: false, relation })
}

fn number_order(name: &str) -> Option<Kind> {
    let relation = match name {
        "eq" => Relation::Equal,
        "ne" => Relation::NotEqual,
        "lt" => Relation::Less,
        "le" => Relation::LessOrEqual,
        "gt" => Relation::Greater,
        "ge" => Relation::GreaterOrEqual,
        _ => return None,
    };
    Some(Kind::Compare(Comparison { numeric: true, relation }))
}

fn printable(byte: u8) -> String {
    match byte {
        0x20..0x7f => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    }
}

impl Kind {
    /// The token's name in Apache's messages.
    pub(super) fn apache_name(&self) -> String {
        let name = match self {
            Kind::End => "$end",
            Kind::True => "T_TRUE",
            Kind::False => "T_FALSE",
            Kind::And => "T_OP_AND",
            Kind::Or => "T_OP_OR",
            Kind::Not => "T_OP_NOT",
            Kind::In => "T_OP_IN",
            Kind::Concat => "T_OP_CONCAT",
            Kind::Match { negated: false } => "T_OP_REG",
            Kind::Match { negated: true } => "T_OP_NRE",
            Kind::Digits(_) => "T_DIGIT",
            Kind::Identifier(_) => "T_ID",
            Kind::StringStart(_) => "T_STR_BEGIN",
            Kind::VariableStart => "T_VAR_BEGIN",
            Kind::Backref(_) => "T_REGEX_BACKREF",
            Kind::Pattern { caseless: false, .. } => "T_REGEX",
            Kind::Pattern { caseless: true, .. } => "T_REGEX_I",
            Kind::Unary(_) => "T_OP_UNARY",
            Kind::Binary(_) => "T_OP_BINARY",
            Kind::Mark(mark) => return format!("'{}'", char::from(*mark)),
            Kind::Compare(comparison) => return comparison.apache_name(),
        };
        name.to_owned()
    }
}

impl Comparison {
    fn apache_name(self) -> String {
        let relation = match self.relation {
            Relation::Equal => "EQ",
            Relation::NotEqual => "NE",
            Relation::Less => "LT",
            Relation::LessOrEqual => "LE",
            Relation::Greater => "GT",
            Relation::GreaterOrEqual => "GE",
        };
        format!("T_OP_{}{relation}", if self.numeric { "" } else { "STR_" })
    }
}
