//! The words of an SSLRequire expression.

use super::{Pattern, SyntaxError, Word};

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Signs, and the names that act as such: `and`, `-eq`, `true`.
    Operator(String),
    /// A quoted string in its parts, or digits.
    Text(Vec<Word>),
    /// `%{name}`.
    Variable(String),
    /// The name of a function.
    Name(String),
    /// There is no more.
    End,
}

/// Longer signs first.
const SIGNS: &[&str] =
    &["==", "!=", "<=", ">=", "=~", "!~", "&&", "||", "<", ">", "=", "!", "(", ")", "{", "}", ","];

const WORDS: &[&str] =
    &["eq", "ne", "lt", "le", "gt", "ge", "in", "and", "or", "not", "true", "false"];

pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// Bytes that have been read.
    pub fn offset(&self) -> usize {
        self.position
    }

    pub fn next_token(&mut self) -> Result<Token, SyntaxError> {
        self.skip_blanks();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if let Some(after) = rest.strip_prefix("%{") {
            return self.variable(after).map(Token::Variable);
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            self.position += sign.len();
            return Ok(Token::Operator((*sign).to_owned()));
        }
        match first {
            '"' | '\'' => self.quoted(first),
            '0'..='9' => {
                let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
                Ok(Token::Text(vec![Word::Text(digits)]))
            }
            '-' | 'a'..='z' | 'A'..='Z' | '_' => self.name(),
            _ => Err(self.error("an unexpected character")),
        }
    }

    /// The regular expression behind `=~`: `m/…/i` with any delimiter, or `/…/i`.
    pub fn pattern(&mut self) -> Result<Pattern, SyntaxError> {
        self.skip_blanks();
        if self.rest().starts_with('m') {
            self.position += 1;
        }
        let delimiter = self.rest().chars().next().filter(char::is_ascii_punctuation);
        let delimiter = delimiter.ok_or_else(|| self.error("a regular expression is expected"))?;
        self.position += delimiter.len_utf8();
        let mut source = String::new();
        loop {
            match self.next_char() {
                Some('\\') => match self.next_char() {
                    Some(next) if next == delimiter => source.push(next),
                    Some(next) => source.extend(['\\', next]),
                    None => return Err(self.error("the regular expression has no end")),
                },
                Some(next) if next == delimiter => break,
                Some(next) => source.push(next),
                None => return Err(self.error("the regular expression has no end")),
            }
        }
        let flags = self.take_while(|c| matches!(c, 'i' | 's' | 'm' | 'g'));
        Ok(Pattern { source, flags })
    }

    fn name(&mut self) -> Result<Token, SyntaxError> {
        let start = self.position;
        if self.rest().starts_with('-') {
            self.position += 1;
        }
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let name = self.text.get(start..self.position).unwrap_or_default();
        let plain = name.strip_prefix('-').unwrap_or(name);
        if WORDS.contains(&plain) {
            return Ok(Token::Operator(name.to_owned()));
        }
        if plain.len() < name.len() {
            return Err(self.error("an unknown operator"));
        }
        Ok(Token::Name(name.to_owned()))
    }

    fn variable(&mut self, after: &str) -> Result<String, SyntaxError> {
        let end = after.find('}').ok_or_else(|| self.error("'}' is missing"))?;
        let name = after.get(..end).unwrap_or_default().to_owned();
        self.position += 2 + end + 1;
        match name.is_empty() {
            true => Err(self.error("a variable without a name")),
            false => Ok(name),
        }
    }

    /// A string; `%{…}` in it is replaced, a backslash takes the next character as it is.
    fn quoted(&mut self, quote: char) -> Result<Token, SyntaxError> {
        self.position += quote.len_utf8();
        let mut words = Vec::new();
        let mut text = String::new();
        loop {
            if let Some(after) = self.rest().strip_prefix("%{") {
                words.push(Word::Text(std::mem::take(&mut text)));
                words.push(Word::Variable(self.variable(after)?));
                continue;
            }
            match self.next_char() {
                Some('\\') => text.extend(self.next_char()),
                Some(next) if next == quote => break,
                Some(next) => text.push(next),
                None => return Err(self.error("a string has no end")),
            }
        }
        words.push(Word::Text(text));
        if words.len() > 1 {
            words.retain(|word| *word != Word::Text(String::new()));
        }
        Ok(Token::Text(words))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn next_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.position += next.len_utf8();
        Some(next)
    }

    fn skip_blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.position += length;
        rest.get(..length).unwrap_or_default().to_owned()
    }

    fn error(&self, message: &str) -> SyntaxError {
        SyntaxError { offset: self.position, message: message.into() }
    }
}
