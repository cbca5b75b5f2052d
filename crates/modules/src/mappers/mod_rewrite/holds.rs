//! Evaluates the conditions of a rule.
//!
//! Source: `apply_rewrite_cond`.

use conf::expr::{Backrefs, EvalError, Expr};
use pcre::{Captures, Matched, Regex};
use server::errorlog::Verbatim;
use server::log::Level;
use server::matching::{self, Stop};
use server::path::{self, Entry};
use server::request::{FileInfo, FileKind, Request};
use server::{expr, subrequest};
use wire::Method;

use super::condition::{Condition, FileTest, Test, order};
use super::expand::may_ask;
use super::pass::Pass;
use super::trace::Question;
use crate::atoi::atoi;

impl Pass<'_> {
    /// Whether all conditions hold, where conditions joined by `[OR]` need only one. A last
    /// condition with `[OR]` always holds.
    ///
    /// # Errors
    /// The status that ends the request.
    pub async fn conditions_hold(&mut self, conditions: &[Condition]) -> Result<bool, u16> {
        let mut rest = conditions;
        while let Some((condition, after)) = rest.split_first() {
            rest = after;
            let holds = self.holds(condition).await?;
            if condition.no_vary || (condition.or_next && !holds) {
                self.scope.fields.clear();
            }
            match (condition.or_next, holds) {
                (true, false) => continue,
                (false, false) => return Ok(false),
                (true, true) => {
                    // Skip the others of the group.
                    let end = rest.iter().position(|condition| !condition.or_next);
                    rest = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
                }
                (false, true) => {}
            }
            self.vary.append(&mut self.scope.fields);
        }
        Ok(true)
    }

    async fn holds(&mut self, condition: &Condition) -> Result<bool, u16> {
        let is_expression = matches!(condition.test, Test::Expression(_));
        let input = match is_expression {
            true => b"(null)".to_vec(),
            false => self.scope.fill_briefly(self.request, &condition.input).await?,
        };
        let found = match &condition.test {
            Test::Regex(regex) => self.regex_matches(condition, regex, &input).await?,
            Test::Expression(expr) => self.expression_holds(condition, expr).await?,
            Test::File(test) => stands(self.request, *test, &input),
            Test::Url => self.may_have_url(&input).await,
            Test::LookUpFile => self.may_have_file(&input).await,
            Test::Text(compare, text) => compare.holds(order(&input, text, condition.ignores_case)),
            Test::Number(compare, number) => compare.holds(atoi(&input).cmp(number)),
        };
        let holds = found != condition.negated;
        let asked = Question::Condition(condition, &input, holds);
        self.scope.trace.condition(self.request, self.scope.path(), asked);
        self.scope.spare = input;
        Ok(holds)
    }

    /// A successful match sets `%1` and so on.
    async fn regex_matches(
        &mut self,
        condition: &Condition,
        regex: &Regex,
        input: &[u8],
    ) -> Result<bool, u16> {
        let mut captures = Captures::new();
        let matched = loop {
            match self.request.matches(regex, input, Some(&mut captures)) {
                Ok(matched) => break matched,
                Err(_later) => matching::decide(self.request).await,
            }
        };
        let matched = match matched {
            Matched::Yes => true,
            Matched::No => false,
            Matched::Undecided(_) => return Err(500),
        };
        if matched && !condition.negated {
            self.scope.of_condition.set(input, captures);
        }
        Ok(matched)
    }

    async fn expression_holds(&mut self, condition: &Condition, expr: &Expr) -> Result<bool, u16> {
        let mut backrefs = Backrefs::new();
        let found = matching::settled(self.request, |request| {
            backrefs = Backrefs::new();
            let found = expr::condition(expr, request, &mut backrefs)?;
            Ok::<_, Stop>(found)
        });
        let holds = match found.await? {
            Ok(holds) => holds,
            Err(EvalError::Undecided) => return Err(500),
            Err(why) => {
                let pattern = Verbatim::new(&condition.pattern);
                let line = format_args!("RewriteCond: expr='{pattern}' evaluation failed: {why}");
                self.line(Level::Trace1, line);
                false
            }
        };
        if holds && !condition.negated {
            self.scope.of_condition.set(backrefs.subject(), *backrefs.captures());
        }
        Ok(holds)
    }

    /// `-U`
    async fn may_have_url(&mut self, url: &[u8]) -> bool {
        if url.is_empty() || !may_ask(self.request) {
            return false;
        }
        let sub = subrequest::lookup_uri(self.request, url, Method::GET).await;
        let (url, status) = (Verbatim::new(url), sub.response.status);
        let line = format_args!("RewriteCond URI (-U check: path={url} -> status={status}");
        self.plain_line(Level::Trace5, line);
        status < 400
    }

    /// `-F`
    async fn may_have_file(&mut self, file: &[u8]) -> bool {
        if file.is_empty() || !may_ask(self.request) {
            return false;
        }
        let sub = subrequest::lookup_file(self.request, file).await;
        let (path, file, status) =
            (Verbatim::new(file), Verbatim::new(&sub.resource.filename), sub.response.status);
        let line =
            format_args!("RewriteCond file (-F check: path={path} -> file={file} status={status}");
        self.plain_line(Level::Trace5, line);
        status < 300 && stat(self.request, &sub.resource.filename).is_some()
    }
}

/// Evaluates a test of a path.
fn stands(request: &mut Request, test: FileTest, path: &[u8]) -> bool {
    if test == FileTest::Link {
        return lstat(request, path).is_some_and(|entry| entry.is_symlink);
    }
    stat(request, path).is_some_and(|info| match test {
        FileTest::Regular => info.kind == FileKind::Regular,
        FileTest::NotEmpty => info.kind == FileKind::Regular && info.size > 0,
        FileTest::Directory => info.kind == FileKind::Directory,
        FileTest::Executable => info.mode & 0o111 != 0,
        FileTest::Link => false,
    })
}

fn stat(request: &mut Request, path: &[u8]) -> Option<FileInfo> {
    let bare = match path {
        [rest @ .., b'/'] if !rest.is_empty() => rest,
        _ => path,
    };
    if !path::is_canonical(bare) {
        request.depends.pure = false;
        return path::stat(path).ok();
    }
    request.trace_path(bare);
    let info = request.engine.stat(bare).ok()?;
    // Only a directory has a name with a trailing slash.
    (bare.len() == path.len() || info.kind == FileKind::Directory).then_some(info)
}

fn lstat(request: &mut Request, path: &[u8]) -> Option<Entry> {
    if !path::is_canonical(path) || path.ends_with(b"/") {
        request.depends.pure = false;
        return path::lstat(path).ok();
    }
    request.trace_path(path);
    request.engine.lstat(path).ok()
}
