//! The directives.

use std::sync::Arc;

use conf::Arg;
use conf::word::is_blank;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::expr;

use super::Rewrite;
use super::condition::{self, Condition, Kind, Test};
use super::flags;
use super::line::Line;
use super::map;
use super::rule::{Rule, Target};
use super::settings::{Common, Options};
use super::template::{Template, TooDeep};
use crate::atoi::atoi;

const fn row(
    name: &'static str,
    takes: Takes<Rewrite>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Rewrite> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

pub(super) const ROWS: &[Row<Rewrite>] = &[
    row(
        "RewriteEngine",
        Takes::Flag(engine),
        "on|off",
        "Enables or disables the rewriting engine.",
    )
    .default("off"),
    row(
        "RewriteOptions",
        Takes::Each(options),
        "Option [Option] ...",
        "Sets the inheritance of rules and other options.",
    ),
    row(
        "RewriteBase",
        Takes::One(base),
        "URL-path",
        "Sets the URL path of a directory, which its rules put before relative results.",
    )
    .standing(Places::PER_DIR, Override::FILE_INFO),
    row(
        "RewriteCond",
        Takes::Raw(condition),
        "TestString CondPattern [flags]",
        "Adds a condition to the following RewriteRule.",
    ),
    row(
        "RewriteRule",
        Takes::Raw(rule),
        "Pattern Substitution [flags]",
        "Rewrites URLs whose path matches a regular expression.",
    ),
    Row::new(
        "RewriteMap",
        Takes::Some { least: 2, most: 3, set: map },
        "MapName MapType:MapSource [MapTypeOptions]",
        "Defines a map from keys to values for rules.",
    )
    .state(State::DoneExcept("DBM files other than SDBM are refused")),
];

type Here<'a, 't> = Cx<'a, 't, Rewrite>;

/// The settings of the directive's section, which takes its path from its first directive
/// (`config_perdir_create`).
fn common<'c>(cx: &'c mut Here<'_, '_>) -> &'c mut Common {
    mention(cx);
    let Some(path) = cx.path().map(with_slash) else { return &mut cx.server().common };
    let dir = cx.dir();
    dir.path.get_or_insert(path);
    dir.is_skipped = false;
    &mut dir.common
}

/// A directive that an `.htaccess` may not have: the engine's check of links is for its folder.
pub(super) fn skip(cx: &mut Here<'_, '_>) {
    let is_first = cx.path().is_some() && cx.dir().path.is_none();
    common(cx);
    if is_first {
        cx.dir().is_skipped = true;
    }
}

fn with_slash(path: &[u8]) -> Arc<[u8]> {
    match path.last() {
        Some(b'/') => path.into(),
        _ => [path, b"/"].concat().into(),
    }
}

fn mention(cx: &mut Here<'_, '_>) {
    if !cx.in_htaccess() {
        cx.server().is_mentioned = true;
    }
}

/// Sets a value for the server and its directories.
fn everywhere(cx: &mut Here<'_, '_>, set: impl Fn(&mut Common)) {
    set(common(cx));
    if cx.path().is_none() {
        set(&mut cx.dir().common);
    }
}

fn engine(cx: &mut Here<'_, '_>, on: bool) -> Set {
    everywhere(cx, |common| common.engine = Some(on));
    Ok(())
}

/// A word may contain several options.
fn options(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    for word in arg.text.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()) {
        if word.get(..13).is_some_and(|start| start.eq_ignore_ascii_case(b"MaxRedirects=")) {
            let span = cx.span();
            let why = "RewriteOptions: MaxRedirects option has been removed in favor of the global \
                       LimitInternalRecursion directive and will be ignored.";
            cx.build().remark(span, "AH00664", why);
            everywhere(cx, |common| common.options = Some(common.options()));
            continue;
        }
        let Some(option) = Options::of_word(word) else {
            let word = bstr::BStr::new(word);
            return Err(Fault::new(format!("RewriteOptions: unknown option '{word}'")).at(arg));
        };
        everywhere(cx, |common| common.add_option(option));
    }
    Ok(())
}

fn base(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if cx.path().is_none() {
        return Err("RewriteBase: only valid in per-directory config files".into());
    }
    if arg.text.first() != Some(&b'/') {
        return Err(Fault::new("RewriteBase: argument is not a valid URL").at(arg));
    }
    common(cx);
    cx.dir().base = Some(arg.text.as_slice().into());
    Ok(())
}

fn condition(cx: &mut Here<'_, '_>, raw: &Arg) -> Set {
    let added = read_condition(cx, raw)?;
    common(cx).pending.push(added);
    Ok(())
}

fn read_condition(cx: &mut Here<'_, '_>, raw: &Arg) -> Result<Condition, Fault> {
    let Some(line) = Line::parse(&raw.text) else {
        return Err(format!("RewriteCond: bad argument line '{}'", raw.text).into());
    };
    let flags = line.flags.map_or_else(|| Ok(condition::Flags::default()), condition::Flags::parse);
    let flags = flags.map_err(|why| Fault::new(format!("RewriteCond: {why}")))?;
    let (mut negated, pattern) = match line.second.strip_prefix(b"!") {
        Some(rest) => (true, rest),
        None => (false, line.second),
    };
    let is_expression = line.first.eq_ignore_ascii_case(b"expr");
    let kind = Kind::of(pattern);
    let mut ignores_case = flags.ignores_case;
    if ignores_case && (is_expression || !kind.heeds_case()) {
        warn_of_case(cx, if is_expression { pattern } else { kind.shown(pattern) });
        ignores_case = false;
    }
    let test = match kind {
        _ if is_expression => expression(cx, pattern, flags.no_vary)?,
        Kind::Regex(pattern) => Test::Regex(regex(cx, "RewriteCond", pattern, ignores_case)?),
        Kind::File(test) => Test::File(test),
        Kind::Url => Test::Url,
        Kind::LookUpFile => Test::LookUpFile,
        Kind::Text(compare, text) => Test::Text(compare, text.to_vec()),
        Kind::Number(compare, number, turned) => {
            negated ^= turned;
            Test::Number(compare, atoi(number))
        }
    };
    let input =
        if is_expression { Template::default() } else { template("RewriteCond", line.first)? };
    let condition::Flags { or_next, no_vary, .. } = flags;
    let pattern = line.second.to_vec();
    let span = cx.span();
    Ok(Condition { span, input, pattern, test, negated, ignores_case, or_next, no_vary })
}

fn warn_of_case(cx: &mut Here<'_, '_>, pattern: &[u8]) {
    let (pattern, place) = (bstr::BStr::new(pattern), cx.span());
    let (file, line) = cx.build().sources.place(place);
    let why = format!(
        "RewriteCond: NoCase option for non-regex pattern '{pattern}' is not supported and will be \
         ignored. ({file}:{line})"
    );
    cx.build().remark(place, "AH00665", why);
}

fn expression(cx: &mut Here<'_, '_>, text: &[u8], no_vary: bool) -> Result<Test, Fault> {
    let flags = conf::expr::Flags { dont_vary: no_vary, ..cx.expr_flags() };
    let place = if cx.in_htaccess() { " in htaccess context" } else { "" };
    let parsed = expr::parse_bool(&cx.build().registry, text, flags).map_err(|why| {
        let text = bstr::BStr::new(text);
        Fault::new(format!("RewriteCond: cannot compile expression{place} \"{text}\" {why}"))
    })?;
    Ok(Test::Expression(Arc::new(parsed)))
}

fn regex(
    cx: &mut Here<'_, '_>,
    name: &str,
    pattern: &[u8],
    ignores_case: bool,
) -> Result<pcre::Regex, Fault> {
    cx.build().regex(pattern, ignores_case).map_err(|fault| {
        let pattern = bstr::BStr::new(pattern);
        let message = format!("{name}: cannot compile regular expression '{pattern}'");
        Fault { message, ..fault }
    })
}

fn template(name: &str, text: &[u8]) -> Result<Template, Fault> {
    Template::parse(text).map_err(|why| too_deep(name, why))
}

fn too_deep(name: &str, why: TooDeep) -> Fault {
    Fault::new(format!("{name}: {why}"))
}

fn rule(cx: &mut Here<'_, '_>, raw: &Arg) -> Set {
    let Some(line) = Line::parse(&raw.text) else {
        return Err(format!("RewriteRule: bad argument line '{}'", raw.text).into());
    };
    let flags = line.flags.map_or_else(|| Ok(flags::Flags::default()), flags::parse);
    let flags = flags.map_err(|why| Fault::new(format!("RewriteRule: {why}")))?;
    let (negated, pattern) = match line.first.strip_prefix(b"!") {
        Some(rest) => (true, rest),
        None => (false, line.first),
    };
    let regex = regex(cx, "RewriteRule", pattern, flags.ignores_case)?;
    let target = Target::parse(line.second, &flags).map_err(|why| too_deep("RewriteRule", why))?;
    if let Some(handler) = flags.handler.as_ref().and_then(Template::constant) {
        cx.target.check_handler(&handler.to_ascii_lowercase());
    }
    let span = cx.span();
    let common = common(cx);
    let conditions = std::mem::take(&mut common.pending);
    common.rules.push(Rule { span, regex, negated, conditions, target, flags });
    Ok(())
}

fn map(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [name, source, more @ ..] = args else { return Ok(()) };
    let identity = more.first().map(|identity| identity.text.as_slice());
    let made = map::parse(cx.target, &name.text, source, identity)
        .map_err(|why| Fault { span: Some(source.span), ..why })?;
    mention(cx);
    cx.server().maps.insert(name.text.to_vec(), Arc::new(made));
    Ok(())
}
