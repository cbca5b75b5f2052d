//! Pages as they are executed: parsed once for each state of their file.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use conf::expr::{Error, Expr, Flags};
use server::body::Body;
use server::budget::Budget;
use server::expr;
use server::registry::Registry;
use server::request::Request;

use super::Include;
use super::config::Tags;
use super::legacy::{self, Invalid, Node, Patterns};
use super::parse::{Element, Piece, parse};

/// A parsed page.
pub struct Compiled {
    /// The page.
    pub source: Bytes,
    /// Its pieces.
    pub pieces: Vec<Piece>,
    /// The conditions of its elements: those of pieces with these indexes, in ascending order.
    conditions: Vec<(usize, Condition)>,
}

/// A parsed condition, or what is wrong with it.
pub enum Condition {
    /// An expression.
    Expr(Result<Expr, Error>),
    /// One in the syntax of Apache 2.2, which may be empty.
    Legacy(Result<Option<Box<Node>>, Invalid>),
}

/// A page has more than the most bytes.
pub struct TooLong;

impl Compiled {
    /// The page that is `body`, and what follows if that fails at its end. What a file's page was
    /// parsed to is used as long as the file is unchanged.
    ///
    /// # Errors
    /// [`TooLong`], for a page of more than `bytes_max`.
    pub async fn of_body(
        request: &Request,
        body: Body,
        bytes_max: usize,
    ) -> Result<(Arc<Compiled>, Body), TooLong> {
        let default = Arc::default();
        let tags: &Arc<Tags> =
            request.server_of::<Include>().and_then(|config| config.tags.get()).unwrap_or(&default);
        let is_legacy = has_legacy_expressions(request);
        let file = request.file_parse(&body, number(tags, is_legacy));
        if let Some(known) = file.as_ref().and_then(|file| file.get::<Compiled>()) {
            return Ok((known, Body::Empty));
        }
        let (source, rest) = body.gathered(bytes_max + 1).await.split_head();
        if source.len() > bytes_max {
            return Err(TooLong);
        }
        let registry = (!is_legacy).then(|| &*request.engine.server.registry);
        let budget = Budget::of(usize::MAX);
        let compiled = Arc::new(Compiled::new(tags, source, registry));
        let bytes = budget.taken() + compiled.source.len();
        if let (Some(file), Body::Empty) = (file, &rest) {
            file.put(compiled.clone(), bytes);
        }
        Ok((compiled, rest))
    }

    /// Parses a page; without a registry its conditions are those of Apache 2.2.
    fn new(tags: &Tags, source: Bytes, registry: Option<&Registry>) -> Compiled {
        let pieces = parse(tags, &source);
        let patterns = Patterns::new();
        let condition = |(at, piece): (usize, &Piece)| {
            let Piece::Element(element) = piece else { return None };
            let condition = condition_of(element)?;
            Some((
                at,
                match registry {
                    Some(registry) => Condition::Expr(parse_condition(registry, condition)),
                    None => Condition::Legacy(legacy::parse(condition, &patterns)),
                },
            ))
        };
        let conditions = pieces.iter().enumerate().filter_map(condition).collect();
        Compiled { source, pieces, conditions }
    }

    /// The condition of the piece with this index.
    pub fn condition(&self, at: usize) -> Option<&Condition> {
        let index = self.conditions.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        self.conditions.get(index).map(|(_, condition)| condition)
    }
}

/// `SSILegacyExprParser`
fn has_legacy_expressions(request: &Request) -> bool {
    request.dir_of::<Include>().is_some_and(|dir| dir.legacy_expressions.or(false))
}

/// A number for everything besides its bytes that a page is parsed by.
fn number(tags: &Tags, is_legacy: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&tags.start, &tags.end, is_legacy).hash(&mut hasher);
    hasher.finish()
}

/// The condition of an `if` or `elif`.
fn condition_of(element: &Element) -> Option<&[u8]> {
    let has_condition = matches!(element.name.as_slice(), b"if" | b"elif");
    match element.arguments.as_slice() {
        [argument] if has_condition && argument.name == b"expr" => argument.value.as_deref(),
        _ => None,
    }
}

fn parse_condition(registry: &Registry, condition: &[u8]) -> Result<Expr, Error> {
    // What was made before is already on its way: Apache never adds to `Vary`.
    let flags =
        Flags { restricted: true, without_files: true, dont_vary: true, ..Flags::default() };
    expr::parse_of_page(registry, condition, flags)
}
