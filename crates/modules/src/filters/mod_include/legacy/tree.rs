//! The structure of old conditions.
//!
//! `&&` and `||` have the same priority, and what follows one is its right side as a whole. What
//! is wrong with a part shows only when that part is evaluated, unless it is out of place.

use std::iter::Peekable;

use super::pattern::{Pattern, Patterns};
use super::token::{Comparison, Token, Tokens};
use super::{Invalid, Kind};

/// A part of a condition. A part that is absent is `None`.
#[derive(Debug)]
pub enum Node {
    /// A text: true unless it is empty.
    Text(Vec<u8>),
    /// A pattern.
    Pattern(Pattern),
    /// `!`
    Not(Option<Box<Node>>),
    /// `-A`
    Access(Option<Box<Node>>),
    /// Parentheses.
    Group(Option<Box<Node>>),
    /// A parenthesis that is not closed.
    Unclosed,
    /// A comparison of a text.
    Compare(Comparison, Vec<u8>, Option<Box<Node>>),
    /// `&&` or `||`
    Both {
        /// Whether it is `&&`.
        and: bool,
        /// What precedes it.
        left: Box<Node>,
        /// What follows it.
        right: Option<Box<Node>>,
    },
}

/// The deepest nesting of a condition.
const NESTING_MAX: usize = 100;

/// A part that is out of place.
const MISPLACED: Invalid = Invalid::expression(3188);

/// Parses a condition of a page that has `patterns`; `None` if it is empty.
///
/// # Errors
/// A part is out of place.
pub fn parse(condition: &[u8], patterns: &Patterns) -> Result<Option<Box<Node>>, Invalid> {
    let tokens = Tokens::new(condition).peekable();
    let mut parser = Parser { tokens, patterns, depth: 0, open: 0 };
    if !matches!(
        parser.tokens.peek(),
        None | Some(Token::Text(_) | Token::Not | Token::Access | Token::Open)
    ) {
        return Err(MISPLACED);
    }
    let tree = parser.sequence()?;
    match parser.tokens.next() {
        None => Ok(tree),
        Some(Token::Close) => Err(Invalid { number: 3189, kind: Kind::Unopened }),
        Some(_) => Err(MISPLACED),
    }
}

struct Parser<'c> {
    tokens: Peekable<Tokens<'c>>,
    patterns: &'c Patterns,
    depth: usize,
    /// The number of open parentheses.
    open: usize,
}

type Part = Result<Option<Box<Node>>, Invalid>;

impl Parser<'_> {
    /// Operands between `&&` and `||`.
    fn sequence(&mut self) -> Part {
        self.enter()?;
        let left = self.operand(true)?;
        let joined = self.join(left);
        self.depth -= 1;
        joined
    }

    fn join(&mut self, left: Option<Box<Node>>) -> Part {
        let Some(left) = left else { return Ok(None) };
        let and = match self.tokens.peek() {
            Some(Token::And) => true,
            Some(Token::Or) => false,
            _ => return Ok(Some(left)),
        };
        // These operators need something complete before them.
        if left.is_open_ended() {
            return Err(MISPLACED);
        }
        self.tokens.next();
        let right = self.sequence()?;
        Ok(Some(Box::new(Node::Both { and, left, right })))
    }

    /// What an operator is applied to; a comparison only if `may_compare`.
    fn operand(&mut self, may_compare: bool) -> Part {
        let node = match self.tokens.peek() {
            Some(Token::Not) => {
                self.tokens.next();
                Node::Not(self.inner()?)
            }
            Some(Token::Access) => {
                self.tokens.next();
                Node::Access(self.inner()?)
            }
            Some(Token::Open) => {
                self.tokens.next();
                self.group()?
            }
            Some(Token::Text(_)) => {
                let text = self.text();
                return self.compared(text, may_compare).map(|node| Some(Box::new(node)));
            }
            _ => return Ok(None),
        };
        Ok(Some(Box::new(node)))
    }

    fn inner(&mut self) -> Part {
        self.enter()?;
        let inner = self.operand(false);
        self.depth -= 1;
        inner
    }

    fn group(&mut self) -> Result<Node, Invalid> {
        self.open += 1;
        let inner = self.sequence()?;
        self.open -= 1;
        match self.tokens.peek() {
            Some(Token::Close) => {
                self.tokens.next();
                Ok(Node::Group(inner))
            }
            None => Ok(Node::Unclosed),
            Some(_) => Err(MISPLACED),
        }
    }

    /// Texts in a row are one, with blanks between them.
    fn text(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(Token::Text(_)) = self.tokens.peek() {
            let Some(Token::Text(text)) = self.tokens.next() else { break };
            if !all.is_empty() {
                all.push(b' ');
            }
            all.extend_from_slice(&text);
        }
        all
    }

    fn compared(&mut self, text: Vec<u8>, may_compare: bool) -> Result<Node, Invalid> {
        let Some(Token::Compare(how)) = self.tokens.peek() else { return Ok(Node::Text(text)) };
        if !may_compare {
            return Err(MISPLACED);
        }
        let how = *how;
        self.tokens.next();
        let is_equality = matches!(how, Comparison::Equal | Comparison::NotEqual);
        let right = match self.tokens.peek() {
            Some(Token::Pattern(_)) if is_equality => {
                let Some(Token::Pattern(pattern)) = self.tokens.next() else {
                    return Err(MISPLACED);
                };
                Some(Box::new(Node::Pattern(self.patterns.pattern(pattern))))
            }
            _ => self.inner()?,
        };
        Ok(Node::Compare(how, text, right))
    }

    fn enter(&mut self) -> Result<(), Invalid> {
        self.depth += 1;
        if self.depth > NESTING_MAX { Err(MISPLACED) } else { Ok(()) }
    }
}

impl Node {
    /// Whether its last operator has no right side.
    fn is_open_ended(&self) -> bool {
        match self {
            Node::Not(inner) | Node::Access(inner) | Node::Compare(_, _, inner) => {
                inner.as_ref().is_none_or(|inner| inner.is_open_ended())
            }
            _ => false,
        }
    }
}
