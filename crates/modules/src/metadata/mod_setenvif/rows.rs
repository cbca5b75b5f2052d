//! The directives.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;

use super::condition::{Attribute, Condition, Effect, Pattern, Test, plain_text};
use super::{Setenvif, Settings};

type Here<'a, 't> = Cx<'a, 't, Setenvif>;

const fn row(
    name: &'static str,
    set: fn(&mut Here<'_, '_>, &[Arg]) -> Set,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Setenvif> {
    // The setters check the number of arguments: their messages name the one that is missing.
    Row::new(name, Takes::Some { least: 0, most: usize::MAX, set }, syntax, doc)
        .standing(Places::ALL, Override::FILE_INFO)
}

pub(super) const ROWS: &[Row<Setenvif>] = &[
    row(
        "SetEnvIf",
        |cx, args| set_env_if(cx, args, false),
        "attribute regex [!]env-variable[=value] [[!]env-variable[=value]] ...",
        "Sets variables if a property of the request matches a regular expression.",
    ),
    row(
        "SetEnvIfNoCase",
        |cx, args| set_env_if(cx, args, true),
        "attribute regex [!]env-variable[=value] [[!]env-variable[=value]] ...",
        "Sets variables if a property of the request matches a regular expression, ignoring case.",
    ),
    row(
        "SetEnvIfExpr",
        set_env_if_expr,
        "expr [!]env-variable[=value] [[!]env-variable[=value]] ...",
        "Sets variables if an expression is true.",
    ),
    row(
        "BrowserMatch",
        |cx, args| browser_match(cx, args, false),
        "regex [!]env-variable[=value] [[!]env-variable[=value]] ...",
        "Sets variables if the User-Agent field matches a regular expression.",
    ),
    row(
        "BrowserMatchNoCase",
        |cx, args| browser_match(cx, args, true),
        "regex [!]env-variable[=value] [[!]env-variable[=value]] ...",
        "Sets variables if the User-Agent field matches a regular expression, ignoring case.",
    ),
];

fn set_env_if(cx: &mut Here<'_, '_>, args: &[Arg], ignoring_case: bool) -> Set {
    let name = cx.target.directive;
    let Some((attribute, rest)) = args.split_first().filter(|(name, _)| !name.text.is_empty())
    else {
        return Err(format!("Missing header-field name for {name}").into());
    };
    let attribute = attribute_of(cx, attribute, ignoring_case)?;
    add(cx, attribute, rest, ignoring_case)
}

fn browser_match(cx: &mut Here<'_, '_>, args: &[Arg], ignoring_case: bool) -> Set {
    add(cx, Attribute::Named(b"User-Agent".to_vec()), args, ignoring_case)
}

/// A name with characters other than letters, digits, `-` and `_` is a regular expression.
fn attribute_of(cx: &mut Here<'_, '_>, arg: &Arg, ignoring_case: bool) -> Result<Attribute, Fault> {
    if let Some(special) = Attribute::special(&arg.text) {
        return Ok(special);
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if arg.text.iter().all(is_plain) {
        return Ok(Attribute::Named(arg.text.to_vec()));
    }
    let name = cx.target.directive;
    let regex = cx.build().regex(&arg.text, ignoring_case).map_err(|fault| Fault {
        message: format!("{name}Header name regex could not be compiled."),
        span: Some(arg.span),
        ..fault
    })?;
    Ok(Attribute::Matching(regex))
}

/// Source: `add_setenvif_core`
fn add(cx: &mut Here<'_, '_>, attribute: Attribute, args: &[Arg], ignoring_case: bool) -> Set {
    let name = cx.target.directive;
    let Some((regex, words)) = args.split_first().filter(|(arg, _)| !arg.text.is_empty()) else {
        return Err(format!("Missing regular expression for {name}").into());
    };
    let pattern = match plain_text(&regex.text) {
        Some(text) if ignoring_case => Pattern::Caseless(text),
        Some(text) => Pattern::Plain(text),
        None => {
            let compiled = cx.build().regex(&regex.text, ignoring_case);
            Pattern::Regex(compiled.map_err(|fault| Fault {
                message: format!("{name} regex could not be compiled."),
                span: Some(regex.span),
                ..fault
            })?)
        }
    };
    push(cx, Test::Attribute(attribute, pattern), words)
}

fn set_env_if_expr(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let Some((text, words)) = args.split_first().filter(|(arg, _)| !arg.text.is_empty()) else {
        return Err("Missing expression for SetEnvIfExpr".into());
    };
    let registry = cx.build().registry.clone();
    let parsed = expr::parse_bool(&registry, &text.text, cx.expr_flags()).map_err(|why| Fault {
        message: format!("Could not parse expression \"{}\": {why}", text.text),
        span: Some(text.part(why.offset, why.length)),
        help: None,
    })?;
    push(cx, Test::Expression(Arc::new(parsed)), words)
}

fn push(cx: &mut Here<'_, '_>, test: Test, words: &[Arg]) -> Set {
    let words = words.iter().take_while(|word| !word.text.is_empty());
    let effects: Arc<[Effect]> = words.map(|word| Effect::parse(&word.text)).collect();
    if effects.is_empty() {
        let name = cx.target.directive;
        return Err(format!("Missing envariable expression for {name}").into());
    }
    let settings: &mut Settings = match cx.path().is_some() {
        true => cx.dir(),
        false => cx.server(),
    };
    settings.conditions.push(Condition { test, effects });
    Ok(())
}
