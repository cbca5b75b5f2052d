//! The effects of a matching rule.
//!
//! Source: `apply_rewrite_rule`, `splitout_queryargs`, `force_type_handler`.

use std::sync::Arc;

use pcre::Captures;
use server::errorlog::Verbatim;
use server::log::Level;

use super::expand::Filled;
use super::pass::{Applied, Pass};
use super::rule::Rule;
use super::{Rewrite, cookie, url};

impl<'r> Pass<'r> {
    /// Applies a rule whose pattern has matched.
    ///
    /// # Errors
    /// The status that ends the request.
    pub async fn act(&mut self, rule: &'r Arc<Rule>) -> Result<Applied, u16> {
        self.scope.fields.clear();
        self.scope.of_condition.clear();
        match rule.negated {
            true => self.scope.of_rule = Captures::new(),
            false => self.scope.of_rule = self.captures,
        }
        if !self.conditions_hold(&rule.conditions).await? {
            return Ok(Applied::No);
        }
        let target = match &rule.target.template {
            Some(template) => {
                let escape = rule.flags.escape.as_ref();
                let filled = self.scope.fill(self.request, template, escape).await?;
                let (from, to) = (Verbatim::new(&self.scope.subject), Verbatim::new(&filled.text));
                self.line(Level::Trace2, format_args!("rewrite '{from}' -> '{to}'"));
                if self.is_unsafe(rule, &filled) {
                    return Ok(Applied::Refused);
                }
                Some(filled.text)
            }
            None => None,
        };
        self.set_variables(rule).await?;
        let Some(target) = target else {
            self.remember_type(rule).await?;
            if rule.flags.ends {
                self.request.response.status = rule.flags.status;
                let (status, file) =
                    (self.request.response.status, Verbatim::new(&self.request.resource.filename));
                let line = format_args!("forcing responsecode {status} for {file}");
                self.line(Level::Trace2, line);
            }
            return Ok(Applied::Kept);
        };
        self.take_result(rule, target);
        if self.go_elsewhere(rule) {
            return Ok(Applied::Rewritten);
        }
        self.merge_slashes(rule);
        self.remember_type(rule).await?;
        Ok(Applied::Rewritten)
    }

    /// Reduces leading slashes of the result to one, unless the rule itself has more.
    fn merge_slashes(&mut self, rule: &Rule) {
        let file = &mut self.request.resource.filename;
        if rule.flags.keeps_slashes || rule.target.text.starts_with(b"//") {
            return;
        }
        let slashes = file.iter().take_while(|byte| **byte == b'/').count();
        file.drain(..slashes.saturating_sub(1));
    }

    /// Whether the question mark that begins the query came with the request.
    fn is_unsafe(&mut self, rule: &Rule, filled: &Filled) -> bool {
        let mark = match rule.flags.splits_at_last {
            true => filled.last_mark,
            false => filled.first_mark,
        };
        if rule.flags.allows_question_mark || mark != Some(false) {
            return false;
        }
        let why = "Unsafe URL with %3f URL rewritten without UnsafeAllow3F";
        self.request.log::<Rewrite>(Level::Error, 10508, format_args!("{why}"));
        self.request.response.status = 403;
        true
    }

    /// `E`, `CO`
    async fn set_variables(&mut self, rule: &Rule) -> Result<(), u16> {
        for template in &rule.flags.env {
            let text = self.scope.fill_briefly(self.request, template).await?;
            self.set_variable(&text);
            self.scope.spare = text;
        }
        for template in &rule.flags.cookies {
            let text = self.scope.fill(self.request, template, None).await?.text;
            cookie::add(self.request, self.scope.trace, &text);
        }
        Ok(())
    }

    fn set_variable(&mut self, text: &[u8]) {
        if let Some(name) = text.strip_prefix(b"!") {
            // A response from the cache would be logged with a variable of the connection.
            self.request.depends.pure = false;
            self.request.env.unset(name);
            self.request.make_decided(name);
            let name = Verbatim::new(name);
            return self.plain_line(Level::Trace5, format_args!("unsetting env variable '{name}'"));
        }
        let end = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
        let name = text.get(..end).unwrap_or_default();
        let value = text.get(end + 1..).unwrap_or_default();
        self.request.env.set(name, value);
        self.request.make_decided(name);
        let (name, value) = (Verbatim::new(name), Verbatim::new(value));
        let line = format_args!("setting env variable '{name}' to '{value}'");
        self.plain_line(Level::Trace5, line);
    }

    /// Stores the rule's result as the request's file name and query.
    fn take_result(&mut self, rule: &Rule, target: Vec<u8>) {
        if self.scope.directory.is_some() && rule.flags.drops_path_info {
            self.request.resource.path_info.clear();
        }
        let before = std::mem::replace(&mut self.request.resource.filename, target);
        self.own_file.get_or_insert(before);
        if self.request.resource.filename.first() != Some(&b'/')
            && url::scheme(&self.request.resource.filename).is_none()
        {
            self.add_prefix(rule);
        }
        self.split_query(rule);
    }

    /// Prefixes a relative result by the directory or the root.
    fn add_prefix(&mut self, rule: &Rule) {
        let file = Verbatim::new(&self.request.resource.filename);
        if let Some(path) = self.scope.path() {
            let prefix = Verbatim::new(path);
            let line = format_args!("add per-dir prefix: {file} -> {prefix}{file}");
            self.line(Level::Trace3, line);
            self.request.resource.filename = [path, &self.request.resource.filename].concat();
        } else if !rule.flags.proxy && !rule.flags.redirect {
            self.line(Level::Trace3, format_args!("add root prefix: {file} -> /{file}"));
            self.request.resource.filename.insert(0, b'/');
        }
    }

    /// Source: `splitout_queryargs`
    fn split_query(&mut self, rule: &Rule) {
        let flags = &rule.flags;
        if rule.target.drops_query {
            let line = "discarding query string, no parse from substitution";
            self.plain_line(Level::Trace2, format_args!("{line}"));
            self.request.set_query(None);
            return;
        }
        let scheme = url::scheme(&self.request.resource.filename);
        if scheme.is_some_and(|scheme| !scheme.has_query) {
            self.request.set_query(None);
            return;
        }
        if flags.drops_query {
            self.plain_line(Level::Trace2, format_args!("discarding query string"));
            self.request.set_query(None);
        }
        let start = scheme.map_or(0, |scheme| scheme.length);
        let searched = self.request.resource.filename.get(start..).unwrap_or_default();
        let mark = match flags.splits_at_last {
            true => searched.iter().rposition(|byte| *byte == b'?'),
            false => searched.iter().position(|byte| *byte == b'?'),
        };
        let Some(mark) = mark.map(|mark| start + mark) else { return };
        let before =
            self.scope.trace.writes(Level::Trace3).then(|| self.request.resource.filename.clone());
        let mut args = self.request.resource.filename.split_off(mark);
        args.remove(0);
        let own = self.request.query().map(<[u8]>::to_vec);
        self.request.set_query(joined(args, own, flags.appends_query));
        if let Some(before) = before {
            let (before, file) =
                (Verbatim::new(&before), Verbatim::new(&self.request.resource.filename));
            let args = Verbatim::new(self.request.query().unwrap_or(b"<none>"));
            let line = format_args!("split uri={before} -> uri={file}, args={args}");
            self.plain_line(Level::Trace3, line);
        }
    }

    /// Whether the result is a proxy request or a redirect.
    fn go_elsewhere(&mut self, rule: &Rule) -> bool {
        let target = std::mem::take(&mut self.request.resource.filename);
        if rule.flags.proxy {
            let target = url::qualify(self.request, target);
            let line = format_args!("forcing proxy-throughput with {}", Verbatim::new(&target));
            self.line(Level::Trace2, line);
            self.request.resource.filename = [b"proxy:", &target[..]].concat();
            return true;
        }
        if rule.flags.redirect {
            let target = url::qualify(self.request, target);
            let line = format_args!("explicitly forcing redirect with {}", Verbatim::new(&target));
            self.line(Level::Trace2, line);
            self.request.resource.filename = target;
            self.request.response.status = rule.flags.status;
            return true;
        }
        self.request.resource.filename = target;
        self.reduce();
        if url::scheme(&self.request.resource.filename).is_none() {
            return false;
        }
        let (status, target) = (rule.flags.status, Verbatim::new(&self.request.resource.filename));
        let line = format_args!("implicitly forcing redirect (rc={status} with {target}");
        self.line(Level::Trace2, line);
        self.request.response.status = status;
        true
    }

    /// Reduces a URL of this host to its path.
    fn reduce(&mut self) {
        let Some(path) = url::own_path(self.request, &self.request.resource.filename) else {
            return;
        };
        let (whole, shown) = (Verbatim::new(&self.request.resource.filename), Verbatim::new(&path));
        self.plain_line(Level::Trace3, format_args!("reduce {whole} -> {shown}"));
        self.request.resource.filename = path;
        self.request.keep(Reduced);
    }

    /// `T`, `H`
    async fn remember_type(&mut self, rule: &Rule) -> Result<(), u16> {
        let escape = rule.flags.escape.as_ref();
        let (media_type, handler) = (&rule.flags.media_type, &rule.flags.handler);
        let wanted =
            [(media_type, FORCED_TYPE, "MIME-type"), (handler, FORCED_HANDLER, "Content-handler")];
        for (template, note, what) in wanted {
            let Some(template) = template else { continue };
            let filled = self.scope.fill(self.request, template, escape).await?;
            let value = filled.text.to_ascii_lowercase();
            if !value.is_empty() {
                let (file, shown) =
                    (Verbatim::new(&self.request.resource.filename), Verbatim::new(&value));
                let line = format_args!("remember {file} to have {what} '{shown}'");
                self.line(Level::Trace2, line);
                self.request.notes.set(note, &value);
            }
        }
        Ok(())
    }
}

/// Marks a result that was a URL of this host: it is below `DocumentRoot`.
pub(super) struct Reduced;

/// The note that holds the media type of `T`.
pub(super) const FORCED_TYPE: &[u8] = b"rewrite-forced-mimetype";

/// The note that holds the handler of `H`.
pub(super) const FORCED_HANDLER: &[u8] = b"rewrite-forced-handler";

/// The query of a result, followed by the request's own if that is appended. A trailing `&` is
/// removed.
fn joined(args: Vec<u8>, own: Option<Vec<u8>>, appends: bool) -> Option<Vec<u8>> {
    let mut args = match (appends, args.is_empty()) {
        (false, _) => args,
        (true, true) => own?,
        (true, false) => [&args[..], b"&", own.as_deref().unwrap_or_default()].concat(),
    };
    if args.is_empty() {
        return None;
    }
    if args.last() == Some(&b'&') {
        args.pop();
    }
    Some(args)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn queries_are_joined() {
        let own = || Some(b"x=y".to_vec());
        assert_eq!(joined(b"a".to_vec(), own(), false).as_deref(), Some(&b"a"[..]));
        assert_eq!(joined(b"a".to_vec(), own(), true).as_deref(), Some(&b"a&x=y"[..]));
        assert_eq!(joined(b"a".to_vec(), None, true).as_deref(), Some(&b"a"[..]));
        assert_eq!(joined(b"".to_vec(), own(), true).as_deref(), Some(&b"x=y"[..]));
        assert_eq!(joined(b"".to_vec(), own(), false), None);
        assert_eq!(joined(b"a&".to_vec(), own(), true).as_deref(), Some(&b"a&&x=y"[..]));
        assert_eq!(joined(b"&".to_vec(), None, false).as_deref(), Some(&b""[..]));
    }
}
