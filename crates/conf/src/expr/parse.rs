//! Parses text into a tree by recursive descent: `or` over `and` over `not` over comparisons over
//! words.
//!
//! The grammar is that of the manual's expr.html and of util_expr_parse.y of Apache 2.4.

use pcre::Regex;

use super::ast::{Condition, List, Word};
use super::lexer::{Kind, Lexer, Piece, Stop, Token};
use super::lookup::{self, Function};
use super::{Error, Flags, Names, Variable};
use crate::values::Subnet;

/// Most bytes of a literal in an expression; Apache's `MAX_STRING_LEN`.
pub const MAX_LITERAL_BYTES: usize = 8192;
/// Deepest nesting of parentheses, negations and variables in variables.
pub const MAX_NESTING: usize = 100;

pub(super) fn condition(text: &[u8], flags: Flags, names: &dyn Names) -> Result<Condition, Error> {
    let mut parser = Parser::new(text, flags, names);
    let condition = parser.whole();
    parser.outcome(condition)
}

pub(super) fn string(text: &[u8], flags: Flags, names: &dyn Names) -> Result<Word, Error> {
    let mut parser = Parser::new(text, flags, names);
    let word = parser.string(Stop::EndOfText);
    parser.outcome(word)
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    peeked: Option<Token>,
    flags: Flags,
    names: &'t dyn Names,
    depth: usize,
    /// The error for the last unknown name.
    missing: Option<Error>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t [u8], flags: Flags, names: &'t dyn Names) -> Parser<'t> {
        Parser { lexer: Lexer::new(text), peeked: None, flags, names, depth: 0, missing: None }
    }

    fn whole(&mut self) -> Result<Condition, Error> {
        let condition = self.any_of()?;
        match self.next()? {
            Token { kind: Kind::End, .. } => Ok(condition),
            token => unexpected(&token, "$end"),
        }
    }

    /// As Apache's parser, this one continues after an unknown name, and reports both errors if the
    /// syntax is wrong as well.
    fn outcome<T>(self, parsed: Result<T, Error>) -> Result<T, Error> {
        let Some(missing) = self.missing else { return parsed };
        match parsed {
            Ok(_) => Err(missing),
            Err(error) => {
                let message = format!("{}: {}", error.message, missing.message);
                Err(Error { message, ..missing })
            }
        }
    }

    /// Notes an unknown name; an empty text stands for its value.
    fn miss(&mut self, token: &Token, message: String) -> Word {
        let length = token.end.saturating_sub(token.start);
        self.missing = Some(Error { message, offset: token.start, length });
        Word::Literal(Default::default())
    }

    fn next(&mut self) -> Result<Token, Error> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    fn peek(&mut self) -> Result<&Token, Error> {
        let token = self.next()?;
        Ok(self.peeked.insert(token))
    }

    /// Consumes the next token if it is of this kind.
    fn takes(&mut self, kind: &Kind) -> Result<bool, Error> {
        let is_next = self.peek()?.kind == *kind;
        if is_next {
            self.peeked = None;
        }
        Ok(is_next)
    }

    fn expect(&mut self, mark: u8, expecting: &str) -> Result<(), Error> {
        match self.next()? {
            Token { kind: Kind::Mark(found), .. } if found == mark => Ok(()),
            token => unexpected(&token, expecting),
        }
    }

    fn any_of(&mut self) -> Result<Condition, Error> {
        let mut parts = vec![self.all_of()?];
        while self.takes(&Kind::Or)? {
            parts.push(self.all_of()?);
        }
        Ok(one_or(parts, Condition::Any))
    }

    fn all_of(&mut self) -> Result<Condition, Error> {
        let mut parts = vec![self.negation()?];
        while self.takes(&Kind::And)? {
            parts.push(self.negation()?);
        }
        Ok(one_or(parts, Condition::All))
    }

    fn negation(&mut self) -> Result<Condition, Error> {
        let mut negated = false;
        while self.takes(&Kind::Not)? {
            negated = !negated;
        }
        let condition = self.primary()?;
        Ok(if negated { Condition::Not(Box::new(condition)) } else { condition })
    }

    fn primary(&mut self) -> Result<Condition, Error> {
        let token = self.next()?;
        match token.kind {
            Kind::True => Ok(Condition::Constant(true)),
            Kind::False => Ok(Condition::Constant(false)),
            Kind::Mark(b'(') => {
                self.enter(token.start)?;
                let condition = self.any_of()?;
                self.depth -= 1;
                self.expect(b')', "T_OP_OR or T_OP_AND or ')'")?;
                Ok(condition)
            }
            Kind::Unary(ref name) => {
                let name = name.clone();
                let argument = self.word()?;
                self.unary(&name, argument, &token)
            }
            _ => {
                self.peeked = Some(token);
                self.comparison()
            }
        }
    }

    fn comparison(&mut self) -> Result<Condition, Error> {
        let left = self.word()?;
        let token = self.next()?;
        match token.kind {
            Kind::Compare(how) => Ok(Condition::Compare(how, left, self.word()?)),
            Kind::Match { negated } => {
                let regex = self.regex()?;
                Ok(Condition::Matches { word: left, regex, negated })
            }
            Kind::In => Ok(Condition::In(left, self.list()?)),
            Kind::Binary(ref name) => {
                let name = name.clone();
                let right = self.word()?;
                self.binary(&name, left, right, &token)
            }
            _ => unexpected(&token, ""),
        }
    }

    fn unary(&self, name: &str, word: Word, token: &Token) -> Result<Condition, Error> {
        if name == "R" {
            return Ok(Condition::ClientIn(subnet(name, &word, token)?));
        }
        if let Some(operator) = lookup::unary(name) {
            let of_page = operator.reads_file_system() && self.flags.without_files;
            self.check_restricted(of_page, &format!("-{name}"), token)?;
            return Ok(Condition::Unary(operator, word));
        }
        match self.names.unary(name) {
            Some(id) => Ok(Condition::ModuleUnary { id, word }),
            None => error_at(token, format!("Unary operator '-{name}' does not exist")),
        }
    }

    fn binary(
        &self,
        name: &str,
        left: Word,
        right: Word,
        token: &Token,
    ) -> Result<Condition, Error> {
        if name.eq_ignore_ascii_case("ipmatch") {
            return Ok(Condition::AddressIn(left, subnet("ipmatch", &right, token)?));
        }
        if let Some(kind) = lookup::wildcard(name) {
            return Ok(Condition::Wildcard { word: left, pattern: right, kind });
        }
        match self.names.binary(name) {
            Some(id) => Ok(Condition::ModuleBinary { id, left, right }),
            None => error_at(token, format!("Binary operator '-{name}' does not exist")),
        }
    }

    fn regex(&mut self) -> Result<Regex, Error> {
        let token = self.next()?;
        let Kind::Pattern { pattern, caseless } = &token.kind else {
            return unexpected(&token, "T_REGEX or T_REGEX_I");
        };
        let defaults = self.flags.pattern;
        let flags = if *caseless { defaults.ignoring_case() } else { defaults };
        Regex::new(pattern, flags)
            .or_else(|_| error_at(&token, "Failed to compile regular expression".to_owned()))
    }

    fn list(&mut self) -> Result<List, Error> {
        let token = self.next()?;
        match token.kind {
            Kind::Mark(b'{') => {
                let mut words = vec![self.word()?];
                while self.takes(&Kind::Mark(b','))? {
                    words.push(self.word()?);
                }
                self.expect(b'}', "'}' or ','")?;
                Ok(List::Words(words))
            }
            Kind::Identifier(ref name) => {
                let argument = Box::new(self.parenthesised(token.start)?);
                match self.names.list_function(name) {
                    Some(id) => Ok(List::Module { id, argument }),
                    None => {
                        let message = format!("List-returning function '{name}' does not exist");
                        error_at(&token, message)
                    }
                }
            }
            _ => unexpected(&token, "T_ID or '{'"),
        }
    }

    fn word(&mut self) -> Result<Word, Error> {
        let mut parts = vec![self.simple_word()?];
        while self.takes(&Kind::Concat)? {
            parts.push(self.simple_word()?);
        }
        Ok(one_or(parts, Word::Concat))
    }

    fn simple_word(&mut self) -> Result<Word, Error> {
        let token = self.next()?;
        match token.kind {
            Kind::Digits(digits) => Ok(Word::Literal(digits)),
            Kind::Backref(index) => Ok(Word::Backref(index)),
            Kind::StringStart(quote) => self.string(Stop::Quote(quote)),
            Kind::VariableStart => self.variable(token.start),
            Kind::Identifier(ref name) => {
                let argument = self.parenthesised(token.start)?;
                self.function(name, argument, &token)
            }
            _ => unexpected(&token, ""),
        }
    }

    /// Parses `( word )` after a function's name.
    fn parenthesised(&mut self, start: usize) -> Result<Word, Error> {
        self.enter(start)?;
        self.expect(b'(', "'('")?;
        let word = self.word()?;
        self.expect(b')', "T_OP_CONCAT or ')'")?;
        self.depth -= 1;
        Ok(word)
    }

    /// Parses the inside of a string, up to its end.
    fn string(&mut self, stop: Stop) -> Result<Word, Error> {
        let mut parts: Vec<Word> = Vec::new();
        loop {
            let start = self.lexer.at();
            match self.lexer.piece(stop)? {
                Piece::End => break,
                Piece::Text(text) => parts.push(Word::Literal(text)),
                Piece::Backref(index) => parts.push(Word::Backref(index)),
                Piece::VariableStart => parts.push(self.variable(start)?),
            }
        }
        if parts.is_empty() {
            return Ok(Word::Literal(Default::default()));
        }
        Ok(one_or(parts, Word::Concat))
    }

    /// Parses the inside of `%{…}`: a variable, or a function with a string after a colon.
    fn variable(&mut self, start: usize) -> Result<Word, Error> {
        self.enter(start)?;
        let name = self.lexer.variable_name()?;
        let has_argument = self.lexer.variable_has_argument()?;
        let argument_start = self.lexer.at();
        let argument = match has_argument {
            true => Some(self.string(Stop::Brace)?),
            false => None,
        };
        self.depth -= 1;
        let token = Token { kind: Kind::VariableStart, start, end: self.lexer.at() };
        match argument {
            Some(_) if self.lexer.at() == argument_start + 1 => {
                let end = Token { start: argument_start, ..token };
                let message = "syntax error, unexpected T_VAR_END, expecting T_ERROR or T_STRING \
                               or T_REGEX_BACKREF or T_VAR_BEGIN";
                error_at(&end, message.to_owned())
            }
            Some(argument) => self.function(&name, argument, &token),
            None => self.plain_variable(&name, &token),
        }
    }

    fn plain_variable(&mut self, name: &str, token: &Token) -> Result<Word, Error> {
        if let Some(variable) = Variable::by_name(name) {
            return Ok(Word::Variable(variable));
        }
        match self.names.variable(name) {
            Some(id) => {
                let argument = Box::new(Word::Literal(name.into()));
                Ok(Word::ModuleFunction { id, argument })
            }
            None => Ok(self.miss(token, format!("Variable '{name}' does not exist"))),
        }
    }

    fn function(&mut self, name: &str, argument: Word, token: &Token) -> Result<Word, Error> {
        let argument = Box::new(argument);
        if let Some((function, restricted)) = lookup::function(name) {
            self.check_restricted(restricted, &name.to_ascii_lowercase(), token)?;
            return Ok(match function {
                Function::Lookup(table) => Word::Lookup(table, argument),
                Function::Pure(function) => Word::Pure(function, argument),
            });
        }
        match self.names.function(name) {
            Some(id) => Ok(Word::ModuleFunction { id, argument }),
            None => Ok(self.miss(token, format!("Function '{name}' does not exist"))),
        }
    }

    fn check_restricted(&self, restricted: bool, name: &str, token: &Token) -> Result<(), Error> {
        if restricted && self.flags.restricted {
            return error_at(token, format!("{name} not available in restricted context"));
        }
        Ok(())
    }

    fn enter(&mut self, start: usize) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("nested deeper than {MAX_NESTING} levels");
            return Err(Error { message, offset: start, length: 0 });
        }
        Ok(())
    }
}

/// The only part, or all of them in one node.
fn one_or<T>(mut parts: Vec<T>, wrap: impl FnOnce(Vec<T>) -> T) -> T {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            wrap(parts)
        }
    }
}

fn subnet(operator: &str, word: &Word, token: &Token) -> Result<Subnet, Error> {
    let Word::Literal(text) = word else {
        let message = format!("-{operator} requires subnet/netmask as constant argument");
        return error_at(token, message);
    };
    Subnet::parse(text).or_else(|_| error_at(token, "parsing of subnet/netmask failed".to_owned()))
}

fn error_at<T>(token: &Token, message: String) -> Result<T, Error> {
    Err(Error { message, offset: token.start, length: token.end.saturating_sub(token.start) })
}

fn unexpected<T>(token: &Token, expecting: &str) -> Result<T, Error> {
    let mut message = format!("syntax error, unexpected {}", token.kind.apache_name());
    if !expecting.is_empty() {
        message = format!("{message}, expecting {expecting}");
    }
    error_at(token, message)
}
