//! The value of old conditions.

use std::cmp::Ordering;
use std::pin::Pin;

use conf::expr::Backrefs;
use pcre::{Captures, Matched, Regex};
use server::errorlog::Verbatim;
use server::log::Level;
use server::{matching, subrequest};
use wire::Method;

use super::super::page::Page;
use super::pattern::compile;
use super::token::Comparison;
use super::tree::Node;
use super::{Invalid, Kind};

type Value<'v> = Pin<Box<dyn Future<Output = Result<bool, Invalid>> + 'v>>;

/// One evaluation.
struct Evaluation<'p, 'r> {
    page: &'p mut Page<'r>,
    /// The patterns that are not matched yet: as long as there are some, both sides of an operator
    /// are evaluated.
    patterns: usize,
}

/// Whether a condition holds.
///
/// # Errors
/// A part of it is incomplete.
pub async fn holds(page: &mut Page<'_>, tree: &Node) -> Result<bool, Invalid> {
    Evaluation { page, patterns: patterns(tree) }.value(tree).await
}

/// The number of patterns in a condition.
fn patterns(node: &Node) -> usize {
    match node {
        Node::Pattern(_) => 1,
        Node::Text(_) | Node::Unclosed => 0,
        Node::Not(inner)
        | Node::Access(inner)
        | Node::Group(inner)
        | Node::Compare(_, _, inner) => inner.as_deref().map_or(0, patterns),
        Node::Both { left, right, .. } => patterns(left) + right.as_deref().map_or(0, patterns),
    }
}

impl Evaluation<'_, '_> {
    fn value<'v>(&'v mut self, node: &'v Node) -> Value<'v> {
        Box::pin(async move {
            match node {
                Node::Text(text) => Ok(!self.page.substituted(text).is_empty()),
                Node::Not(None) => Ok(false),
                Node::Not(Some(inner)) => Ok(!self.value(inner).await?),
                Node::Group(None) => Ok(true),
                Node::Group(Some(inner)) => self.value(inner).await,
                Node::Access(uri) => self.access(uri.as_deref()).await,
                Node::Compare(how, left, right) => self.compare(*how, left, right.as_deref()).await,
                Node::Both { and, left, right } => {
                    let right = right.as_deref().ok_or(Invalid::expression(1332))?;
                    let first = self.value(left).await?;
                    if self.patterns == 0 && first != *and {
                        return Ok(first);
                    }
                    let second = self.value(right).await?;
                    Ok(if *and { first && second } else { first || second })
                }
                Node::Unclosed => Err(Invalid { number: 3191, kind: Kind::Unclosed }),
                Node::Pattern(_) => Err(Invalid::expression(3190)),
            }
        })
    }

    async fn compare(
        &mut self,
        how: Comparison,
        left: &[u8],
        right: Option<&Node>,
    ) -> Result<bool, Invalid> {
        if let Some(Node::Pattern(pattern)) = right {
            let left = self.page.substituted(left);
            let matched = match &pattern.kept {
                Some(kept) => self.matches(&left, &kept.text, kept.regex.as_ref()).await,
                None => {
                    let text = self.page.substituted(&pattern.text);
                    self.matches(&left, &text, compile(&text).ok().as_ref()).await
                }
            };
            self.patterns = self.patterns.saturating_sub(1);
            return Ok(matched == (how == Comparison::Equal));
        }
        let Some(Node::Text(right)) = right else {
            let is_equality = matches!(how, Comparison::Equal | Comparison::NotEqual);
            return Err(Invalid::expression(if is_equality { 1333 } else { 1334 }));
        };
        let order = self.page.substituted(left).cmp(&self.page.substituted(right));
        Ok(match how {
            Comparison::Equal => order == Ordering::Equal,
            Comparison::NotEqual => order != Ordering::Equal,
            Comparison::Less => order == Ordering::Less,
            Comparison::LessOrEqual => order != Ordering::Greater,
            Comparison::Greater => order == Ordering::Greater,
            Comparison::GreaterOrEqual => order != Ordering::Less,
        })
    }

    /// Whether a pattern matches; one that is invalid counts as a match.
    ///
    /// Source: `re_check`
    async fn matches(&mut self, subject: &[u8], pattern: &[u8], regex: Option<&Regex>) -> bool {
        let page = &mut *self.page;
        let Some(regex) = regex else {
            let shown = Verbatim::new(pattern);
            let text = format_args!("unable to compile pattern \"{shown}\"");
            page.log(Level::Error, 2667, text);
            return true;
        };
        let mut captures = Captures::new();
        let matched = loop {
            match page.request.matches(regex, subject, Some(&mut captures)) {
                Ok(matched) => break matched,
                Err(pcre::Later) => matching::decide(&mut page.request).await,
            }
        };
        let matched = matched == Matched::Yes;
        page.captured.groups = match matched {
            true => Backrefs::from_match(subject, captures),
            false => Backrefs::new(),
        };
        page.captured.pattern = Some(pattern.to_vec());
        page.captured.count = regex.group_count();
        matched
    }

    async fn access(&mut self, uri: Option<&Node>) -> Result<bool, Invalid> {
        let Some(Node::Text(uri)) = uri else {
            return Err(Invalid { number: 1335, kind: Kind::NoUri });
        };
        let uri = self.page.substituted(uri);
        let sub = subrequest::lookup_uri(&mut self.page.request, &uri, Method::GET).await;
        let may = sub.response.status < 400;
        if !may {
            let shown = Verbatim::new(&uri);
            let why = format_args!("The tested subrequest -A \"{shown}\" returned an error code.");
            self.page.log(Level::Debug, 1336, format_args!("mod_include: {why}"));
        }
        Ok(may)
    }
}
