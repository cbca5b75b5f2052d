//! The tokens of old conditions.
//!
//! Source: `get_ptoken`

use super::super::parse::is_space;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word, or text in single quotes.
    Text(Vec<u8>),
    /// A pattern between slashes.
    Pattern(Vec<u8>),
    /// `&&`
    And,
    /// `||`
    Or,
    /// `!`
    Not,
    /// `-A`
    Access,
    /// `(`
    Open,
    /// `)`
    Close,
    /// An operator with two texts.
    Compare(Comparison),
}

/// An operator with two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Reads a condition token by token.
pub struct Tokens<'c> {
    rest: &'c [u8],
    /// Whether the last token was `-A`, behind which a slash begins no pattern.
    after_access: bool,
}

impl<'c> Tokens<'c> {
    /// The tokens of a condition.
    pub fn new(condition: &'c [u8]) -> Tokens<'c> {
        Tokens { rest: condition, after_access: false }
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn operator(&mut self) -> Option<Token> {
        let (first, second) = (*self.rest.first()?, self.rest.get(1).copied());
        let (token, length) = match (first, second) {
            (b'(', _) => (Token::Open, 1),
            (b')', _) => (Token::Close, 1),
            (b'=', Some(b'=')) => (Token::Compare(Comparison::Equal), 2),
            (b'=', _) => (Token::Compare(Comparison::Equal), 1),
            (b'!', Some(b'=')) => (Token::Compare(Comparison::NotEqual), 2),
            (b'!', _) => (Token::Not, 1),
            (b'<', Some(b'=')) => (Token::Compare(Comparison::LessOrEqual), 2),
            (b'<', _) => (Token::Compare(Comparison::Less), 1),
            (b'>', Some(b'=')) => (Token::Compare(Comparison::GreaterOrEqual), 2),
            (b'>', _) => (Token::Compare(Comparison::Greater), 1),
            (b'|', Some(b'|')) => (Token::Or, 2),
            (b'&', Some(b'&')) => (Token::And, 2),
            (b'-', Some(b'A')) => (Token::Access, 2),
            _ => return None,
        };
        self.skip(length);
        Some(token)
    }

    /// Text up to `quote`; empty if there is none.
    fn quoted(&mut self, quote: u8) -> Vec<u8> {
        self.skip(1);
        let mut text = Vec::new();
        let mut bytes = self.rest.iter().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match *byte {
                b'\\' => match bytes.next() {
                    Some((_, escaped)) => text.push(*escaped),
                    None => break,
                },
                byte if byte == quote => {
                    self.skip(at + 1);
                    return text;
                }
                byte => text.push(byte),
            }
        }
        self.rest = b"";
        Vec::new()
    }

    fn word(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(byte) = self.rest.first().copied() {
            let is_double = self.rest.get(1) == Some(&byte);
            let is_end = is_space(byte)
                || b"()=!<>".contains(&byte)
                || (matches!(byte, b'|' | b'&') && is_double);
            if is_end {
                break;
            }
            self.skip(1);
            match byte {
                b'\\' => {
                    text.extend(self.rest.first());
                    self.skip(1);
                }
                byte => text.push(byte),
            }
        }
        text
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let blanks = self.rest.iter().take_while(|byte| is_space(**byte)).count();
        self.skip(blanks);
        let after_access = std::mem::take(&mut self.after_access);
        if let Some(operator) = self.operator() {
            self.after_access = operator == Token::Access;
            return Some(operator);
        }
        Some(match *self.rest.first()? {
            b'\'' => Token::Text(self.quoted(b'\'')),
            b'/' if !after_access => Token::Pattern(self.quoted(b'/')),
            _ => Token::Text(self.word()),
        })
    }
}
