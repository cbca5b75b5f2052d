//! The directives of mod_proxy_hcheck.

use std::sync::Arc;

use bstr::BStr;
use conf::Arg;
use conf::word::{blanks, first_word};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, State, Takes};
use server::expr;

use super::parameters::{self, is_same};
use super::{Condition, ProxyHcheck, Template};
use crate::atoi::atoi;
use crate::proxy::mod_proxy::checks::{Checks, Method};

type Here<'a, 't> = Cx<'a, 't, ProxyHcheck>;

/// The longest name of a condition, bytes.
const NAME_BYTES: usize = 15;

pub(super) const ROWS: &[Row<ProxyHcheck>] = &[
    Row::<ProxyHcheck>::new(
        "ProxyHCExpr",
        Takes::Raw(condition),
        "name {ap_expr expression}",
        "Names a condition that responses to health checks have to fulfil.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
    Row::<ProxyHcheck>::new(
        "ProxyHCTemplate",
        Takes::Raw(template),
        "name parameter=setting [...]",
        "Names a set of parameters of health checks.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
    Row::<ProxyHcheck>::new(
        "ProxyHCTPsize",
        Takes::One(threads),
        "size",
        "Sets the number of threads that make health checks in Apache.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("16")
    .state(State::Accepted("health checks are tasks of a loop")),
];

/// Source: `set_hc_condition`.
fn condition(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    check_place(cx)?;
    let mut rest = &arg.text[..];
    let name = word(&mut rest);
    if name.is_empty() {
        return Err("Missing expression name for ProxyHCExpr".into());
    }
    if name.len() > NAME_BYTES {
        return Err(Fault::new(format!("Expression name limited to {NAME_BYTES} characters")));
    }
    let text = braced_word(&mut rest);
    if text.is_empty() {
        return Err("Missing expression for ProxyHCExpr".into());
    }
    let registry = cx.build().registry.clone();
    let parsed = expr::parse_bool(&registry, &text, cx.expr_flags());
    let expression = parsed.map_err(|why| {
        let shown = BStr::new(&text);
        Fault::new(format!("Could not parse expression \"{shown}\": {why}"))
    })?;
    let conditions = &mut cx.server().conditions.0;
    let new = Condition { name, text, expression: Arc::new(expression) };
    match conditions.iter_mut().find(|old| is_same(&old.name, &new.name)) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
    if !word(&mut rest).is_empty() {
        return Err("error: extra parameter(s)".into());
    }
    Ok(())
}

/// Source: `set_hc_template`.
fn template(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    check_place(cx)?;
    let mut rest = &arg.text[..];
    let name = word(&mut rest);
    if name.is_empty() {
        return Err("Missing template name for ProxyHCTemplate".into());
    }
    let has_ajp = cx.build().registry.is_active("proxy_ajp_module");
    let mut checks = Checks { method: Method::Tcp, ..Checks::default() };
    while !rest.is_empty() {
        let pair = word(&mut rest);
        let Some((key, value)) = crate::proxy::mod_proxy::target::split_at_text(&pair, b"=") else {
            let text = "Invalid ProxyHCTemplate parameter. Parameter must be in the form \
                        'key=value'";
            return Err(text.into());
        };
        // A template may name itself, without an effect.
        let is_itself =
            key.eq_ignore_ascii_case(b"hctemplate") && value.eq_ignore_ascii_case(&name);
        let is_known = |own: &Template| own.name.eq_ignore_ascii_case(&name);
        if is_itself && !cx.server().templates.0.iter().any(is_known) {
            continue;
        }
        let set = parameters::set(&mut checks, cx.server(), has_ajp, key, value);
        set.map_err(|why| {
            let (key, value, name) = (BStr::new(key), BStr::new(value), BStr::new(&name));
            Fault::new(format!("ProxyHCTemplate: {why} {key}={value}; {name}"))
        })?;
    }
    cx.server().templates.0.push(Template { name, checks });
    Ok(())
}

fn check_place(cx: &Here<'_, '_>) -> Set {
    match cx.in_htaccess() {
        true => {
            let name = cx.target.directive;
            Err(Fault::new(format!("{name} cannot occur within htaccess files")))
        }
        false => Ok(()),
    }
}

/// Source: `set_hc_tpsize`.
fn threads(_: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if atoi(&arg.text) < 0 {
        return Err("Invalid ProxyHCTPsize parameter. Parameter must be >= 0".into());
    }
    Ok(())
}

/// The next word; empty at the end.
fn word(rest: &mut &[u8]) -> Vec<u8> {
    *rest = rest.get(blanks(rest)..).unwrap_or_default();
    let (word, length) = first_word(rest).unwrap_or_default();
    *rest = rest.get(length..).unwrap_or_default();
    *rest = rest.get(blanks(rest)..).unwrap_or_default();
    word.into()
}

/// The next word, or what is between braces (`ap_getword_conf2`).
fn braced_word(rest: &mut &[u8]) -> Vec<u8> {
    let Some(inner) = rest.strip_prefix(b"{") else { return word(rest) };
    let mut depth = 1;
    let mut end = 0;
    for byte in inner {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        end += 1;
    }
    let (text, after) = inner.split_at(end);
    let after = after.get(1..).unwrap_or_default();
    *rest = after.get(blanks(after)..).unwrap_or_default();
    text.to_vec()
}
