//! SSLRequire's expressions. The language is that of `Require expr` but for the comparisons: here
//! `<`, `lt` and their like compare lengths first and then bytes, and integers are compared by
//! `-lt`.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslrequire>

use std::cmp::Ordering;
use std::fmt;

mod lexer;

use lexer::{Lexer, Token};

/// Parentheses and negations nest no deeper.
pub const MAX_DEPTH: usize = 64;

/// An expression, parsed once when the configuration is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    root: Node,
    patterns: Vec<Pattern>,
}

/// A regular expression as written, for the caller to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Between the delimiters.
    pub source: String,
    /// The letters behind the closing delimiter, as `i`.
    pub flags: String,
}

/// What an expression asks of a request.
pub trait Facts {
    /// The value of `%{name}`; empty where there is none.
    fn variable(&self, name: &str) -> Vec<u8>;
    /// The result of a function, as `file("…")`, `http(…)`.
    fn function(&self, name: &str, argument: &[u8]) -> Vec<u8>;
    /// The values of an extension of the client's certificate
    /// ([`crate::vars::certificate::extension_values`]).
    fn peer_extensions(&self, oid: &str) -> Vec<Vec<u8>>;
    /// Whether the pattern at `index` of [`Requirement::patterns`] matches.
    fn matches(&self, index: usize, value: &[u8]) -> bool;
}

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Bytes from the beginning of the expression.
    pub offset: usize,
    /// A few words.
    pub message: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.message, self.offset)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Constant(bool),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Compare { left: Word, how: Comparison, integers: bool, right: Word },
    In(Word, Vec<Word>),
    InExtension(Word, Word),
    Match { word: Word, pattern: usize, wanted: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Text(String),
    Variable(String),
    Function(String, Box<Self>),
    Joined(Vec<Self>),
}

impl Requirement {
    /// Parses an expression.
    ///
    /// # Errors
    /// The first thing that does not belong there.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut parser =
            Parser { lexer: Lexer::new(text), ahead: None, patterns: Vec::new(), depth: 0 };
        let root = parser.or()?;
        match parser.next()? {
            Token::End => Ok(Self { root, patterns: parser.patterns }),
            token => Err(parser.unexpected(&token)),
        }
    }

    /// The regular expressions in it, in order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether the request fulfils it.
    pub fn holds(&self, facts: &impl Facts) -> bool {
        self.root.holds(facts)
    }
}

impl Node {
    fn holds(&self, facts: &impl Facts) -> bool {
        match self {
            Self::Constant(value) => *value,
            Self::Not(inner) => !inner.holds(facts),
            Self::And(left, right) => left.holds(facts) && right.holds(facts),
            Self::Or(left, right) => left.holds(facts) || right.holds(facts),
            Self::Compare { left, how, integers, right } => {
                let (left, right) = (left.value(facts), right.value(facts));
                let order = match integers {
                    true => integer(&left).cmp(&integer(&right)),
                    false => left.len().cmp(&right.len()).then_with(|| left.cmp(&right)),
                };
                how.accepts(order)
            }
            Self::In(word, list) => {
                let value = word.value(facts);
                list.iter().any(|one| one.value(facts) == value)
            }
            Self::InExtension(word, oid) => {
                let value = word.value(facts);
                let oid = String::from_utf8_lossy(&oid.value(facts)).into_owned();
                facts.peer_extensions(&oid).contains(&value)
            }
            Self::Match { word, pattern, wanted } => {
                facts.matches(*pattern, &word.value(facts)) == *wanted
            }
        }
    }
}

impl Comparison {
    fn of(operator: &str) -> Option<Self> {
        Some(match operator {
            "==" | "=" | "eq" => Self::Equal,
            "!=" | "ne" => Self::NotEqual,
            "<" | "lt" => Self::Less,
            "<=" | "le" => Self::LessOrEqual,
            ">" | "gt" => Self::Greater,
            ">=" | "ge" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Word {
    fn value(&self, facts: &impl Facts) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Variable(name) => facts.variable(name),
            Self::Function(name, argument) => facts.function(name, &argument.value(facts)),
            Self::Joined(words) => words.iter().flat_map(|word| word.value(facts)).collect(),
        }
    }
}

/// As `atoi`: what does not begin with digits is 0.
fn integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let value = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |sum, byte| sum.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    if negative { -value } else { value }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Option<Token>,
    patterns: Vec<Pattern>,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.and()?;
        while self.accept_operator(&["||", "or"])? {
            left = Node::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.unary()?;
        while self.accept_operator(&["&&", "and"])? {
            left = Node::And(Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("the expression is nested too deeply"));
        }
        let node = if self.accept_operator(&["!", "not"])? {
            Node::Not(Box::new(self.unary()?))
        } else if self.accept_operator(&["("])? {
            let inner = self.or()?;
            self.expect_operator(")")?;
            inner
        } else if self.accept_operator(&["true"])? {
            Node::Constant(true)
        } else if self.accept_operator(&["false"])? {
            Node::Constant(false)
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, SyntaxError> {
        let left = self.word()?;
        let token = self.next()?;
        let Token::Operator(operator) = &token else { return Err(self.unexpected(&token)) };
        match operator.as_str() {
            "in" | "-in" => self.membership(left),
            "=~" | "!~" => {
                let wanted = operator == "=~";
                let pattern = self.lexer.pattern()?;
                self.patterns.push(pattern);
                Ok(Node::Match { word: left, pattern: self.patterns.len() - 1, wanted })
            }
            operator => {
                let integers = operator.starts_with('-');
                let how = Comparison::of(operator.trim_start_matches('-'));
                let how = how.ok_or_else(|| self.unexpected(&token))?;
                Ok(Node::Compare { left, how, integers, right: self.word()? })
            }
        }
    }

    fn membership(&mut self, left: Word) -> Result<Node, SyntaxError> {
        if self.accept_operator(&["{"])? {
            let mut list = vec![self.word()?];
            while self.accept_operator(&[","])? {
                list.push(self.word()?);
            }
            self.expect_operator("}")?;
            return Ok(Node::In(left, list));
        }
        match self.word()? {
            Word::Function(name, oid) if name.eq_ignore_ascii_case("PeerExtList") => {
                Ok(Node::InExtension(left, *oid))
            }
            _ => Err(self.error("a list in braces or PeerExtList(…) is expected")),
        }
    }

    fn word(&mut self) -> Result<Word, SyntaxError> {
        match self.next()? {
            Token::Text(words) => Ok(match <[Word; 1]>::try_from(words) {
                Ok([word]) => word,
                Err(words) => Word::Joined(words),
            }),
            Token::Variable(name) => Ok(Word::Variable(name)),
            Token::Name(name) => {
                self.expect_operator("(")?;
                let argument = self.word()?;
                self.expect_operator(")")?;
                Ok(Word::Function(name, Box::new(argument)))
            }
            token => Err(self.unexpected(&token)),
        }
    }

    fn next(&mut self) -> Result<Token, SyntaxError> {
        match self.ahead.take() {
            Some(token) => Ok(token),
            None => self.lexer.next_token(),
        }
    }

    fn accept_operator(&mut self, wanted: &[&str]) -> Result<bool, SyntaxError> {
        let token = self.next()?;
        if matches!(&token, Token::Operator(operator) if wanted.contains(&operator.as_str())) {
            return Ok(true);
        }
        self.ahead = Some(token);
        Ok(false)
    }

    fn expect_operator(&mut self, wanted: &str) -> Result<(), SyntaxError> {
        match self.accept_operator(&[wanted])? {
            true => Ok(()),
            false => Err(self.error(&format!("'{wanted}' is expected"))),
        }
    }

    fn unexpected(&self, token: &Token) -> SyntaxError {
        match token {
            Token::End => self.error("the expression ends too early"),
            _ => self.error("syntax error"),
        }
    }

    fn error(&self, message: &str) -> SyntaxError {
        SyntaxError { offset: self.lexer.offset(), message: message.into() }
    }
}

#[cfg(test)]
mod tests;
