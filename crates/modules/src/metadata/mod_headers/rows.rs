//! The directives.

use std::sync::Arc;

use conf::Arg;
use pcre::Regex;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;

use super::Headers;
use super::apply::Fields;
use super::entry::{Action, Condition, Entry, Value};
use super::format::Format;

pub(super) const ROWS: &[Row<Headers>] = &[
    Row::new(
        "Header",
        Takes::Some { least: 0, most: usize::MAX, set: header },
        "[always|onsuccess] add|append|echo|edit|edit*|merge|set|setifempty|unset|note header \
         [[expr=]value [replacement] [early|env=[!]varname|expr=expression]]",
        "Changes response fields.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
    Row::new(
        "RequestHeader",
        Takes::Some { least: 0, most: usize::MAX, set: request_header },
        "add|append|edit|edit*|merge|set|setifempty|unset header [[expr=]value [replacement] \
         [early|env=[!]varname|expr=expression]]",
        "Changes request fields before a handler runs.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
];

type Here<'a, 't> = Cx<'a, 't, Headers>;

fn header(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let (fields, args) = match args {
        [first, rest @ ..] if first.is("always") => (Fields::Always, rest),
        [first, rest @ ..] if first.is("onsuccess") => (Fields::Success, rest),
        _ => (Fields::Success, args),
    };
    add(cx, fields, args)
}

fn request_header(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    add(cx, Fields::Request, args)
}

/// The action that the first word names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Set,
    SetIfEmpty,
    Add,
    Append,
    Merge,
    Unset,
    Echo,
    Edit,
    EditAll,
    Note,
}

const VERBS: [(&str, Verb); 10] = [
    ("set", Verb::Set),
    ("setifempty", Verb::SetIfEmpty),
    ("add", Verb::Add),
    ("append", Verb::Append),
    ("merge", Verb::Merge),
    ("unset", Verb::Unset),
    ("echo", Verb::Echo),
    ("edit", Verb::Edit),
    ("edit*", Verb::EditAll),
    ("note", Verb::Note),
];

/// Source: `header_cmd`, `header_inout_cmd`
fn add(cx: &mut Here<'_, '_>, fields: Fields, args: &[Arg]) -> Set {
    if args.len() > 5 {
        return Err(format!("{} has too many arguments", cx.target.directive).into());
    }
    let verb = args.first().and_then(|arg| VERBS.iter().find(|(word, _)| arg.is(word)));
    let Some((_, verb)) = verb else {
        return Err("first argument must be 'add', 'set', 'setifempty', 'append', 'merge', \
                    'unset', 'echo', 'note', 'edit', or 'edit*'."
            .into());
    };
    if fields == Fields::Request && *verb == Verb::Note {
        return Err("RequestHeader does not support the 'note' action".into());
    }
    let name = args.get(1).map(|arg| arg.text.to_vec()).unwrap_or_default();
    let rest = args.get(2..).unwrap_or_default();
    let (action, condition) = match verb {
        Verb::Edit | Verb::EditAll => edit(cx, *verb, rest)?,
        Verb::Unset | Verb::Echo => without_value(cx, *verb, fields, &name, rest)?,
        _ => with_value(cx, *verb, rest)?,
    };
    let condition = match condition {
        Some(arg) => parse_condition(cx, arg)?,
        None => Condition::Always,
    };
    let name = name.split(|byte| *byte == b':').next().unwrap_or_default().to_vec();
    let span = cx.span();
    let dir = cx.dir();
    let list = match fields {
        Fields::Request => &mut dir.request,
        Fields::Success => &mut dir.success,
        Fields::Always => &mut dir.always,
    };
    list.push(Entry { span, action, name, condition });
    Ok(())
}

type Parsed<'a> = Result<(Action, Option<&'a Arg>), Fault>;

fn edit<'a>(cx: &mut Here<'_, '_>, verb: Verb, args: &'a [Arg]) -> Parsed<'a> {
    let (pattern, replacement, condition) = match args {
        [pattern, replacement] => (pattern, replacement, None),
        [pattern, replacement, condition] => (pattern, replacement, Some(condition)),
        _ => return Err("Header edit requires a match and a substitution".into()),
    };
    let regex = compile(cx, pattern, "Header edit regex could not be compiled")?;
    let value = parse_value(cx, replacement)?;
    let action = match verb {
        Verb::EditAll => Action::EditAll(regex, value),
        _ => Action::Edit(regex, value),
    };
    Ok((action, condition))
}

fn compile(cx: &mut Here<'_, '_>, arg: &Arg, message: &str) -> Result<Regex, Fault> {
    cx.build().regex(&arg.text, false).map_err(|fault| Fault {
        message: message.to_owned(),
        span: Some(arg.span),
        ..fault
    })
}

fn without_value<'a>(
    cx: &mut Here<'_, '_>,
    verb: Verb,
    fields: Fields,
    name: &[u8],
    args: &'a [Arg],
) -> Parsed<'a> {
    let condition = match args {
        [] => None,
        [condition] => Some(condition),
        [_, _] if verb == Verb::Unset => return Err("header unset takes two arguments".into()),
        [_, _] => return Err("Header echo takes two arguments".into()),
        _ => return Err("Too many arguments to directive".into()),
    };
    if verb == Verb::Unset {
        return Ok((Action::Unset, condition));
    }
    if fields == Fields::Request {
        return Err("Header echo only valid on Header directives".into());
    }
    let regex = cx.build().regex(name, false).map_err(|fault| Fault {
        message: "Header echo regex could not be compiled".to_owned(),
        ..fault
    })?;
    Ok((Action::Echo(regex), condition))
}

fn with_value<'a>(cx: &mut Here<'_, '_>, verb: Verb, args: &'a [Arg]) -> Parsed<'a> {
    let (value, condition) = match args {
        [] => return Err("Header requires three arguments".into()),
        [value] => (value, None),
        [value, condition] => (value, Some(condition)),
        _ => return Err("Too many arguments to directive".into()),
    };
    let value = parse_value(cx, value)?;
    let action = match verb {
        Verb::SetIfEmpty => Action::SetIfEmpty(value),
        Verb::Add => Action::Add(value),
        Verb::Append => Action::Append(value),
        Verb::Merge => Action::Merge(value),
        Verb::Note => Action::Note(value),
        _ => Action::Set(value),
    };
    Ok((action, condition))
}

fn parse_value(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<Value, Fault> {
    let registry = cx.build().registry.clone();
    let Some(text) = arg.text.strip_prefix(EXPRESSION) else {
        let format = Format::parse(&arg.text, &registry).map_err(|why| Fault::new(why).at(arg))?;
        return Ok(Value::Format(Arc::new(format)));
    };
    let parsed = expr::parse_string(&registry, text, cx.expr_flags()).map_err(|why| Fault {
        message: format!("Can't parse value expression : {why}"),
        span: Some(arg.part(why.offset + EXPRESSION.len(), why.length)),
        help: None,
    })?;
    Ok(Value::Expression(Arc::new(parsed)))
}

/// The prefix of an expression.
const EXPRESSION: &[u8] = b"expr=";

fn parse_condition(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<Condition, Fault> {
    let lower = arg.text.to_ascii_lowercase();
    if lower == b"early" {
        return Ok(Condition::Early);
    }
    if lower.starts_with(b"env=") {
        let name = arg.text.get(4..).unwrap_or_default();
        let (name, wanted) = match name.strip_prefix(b"!") {
            Some(name) => (name, false),
            None => (name, true),
        };
        if name.is_empty() {
            let form = "error: missing environment variable name. envclause should be in the \
                        form env=envar ";
            return Err(Fault::new(form).at(arg));
        }
        return Ok(Condition::Variable(name.to_vec(), wanted));
    }
    if !lower.starts_with(EXPRESSION) {
        return Err(Fault::new(format!("Unknown parameter: {}", arg.text)).at(arg));
    }
    let text = arg.text.get(EXPRESSION.len()..).unwrap_or_default();
    let registry = cx.build().registry.clone();
    let parsed = expr::parse_bool(&registry, text, cx.expr_flags()).map_err(|why| Fault {
        message: format!("Can't parse envclause/expression: {why}"),
        span: Some(arg.part(why.offset + EXPRESSION.len(), why.length)),
        help: None,
    })?;
    Ok(Condition::Expression(Arc::new(parsed)))
}
