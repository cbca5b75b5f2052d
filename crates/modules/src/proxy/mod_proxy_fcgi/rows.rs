//! The directives of mod_proxy_fcgi.

use std::sync::Arc;

use conf::Arg;
use conf::expr::Expr;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::expr;

use super::{BackendType, ProxyFcgi, SetEnvIf};

type Here<'a, 't> = Cx<'a, 't, ProxyFcgi>;

pub(super) const ROWS: &[Row<ProxyFcgi>] = &[
    Row::<ProxyFcgi>::new(
        "ProxyFCGIBackendType",
        Takes::One(backend_type),
        "FPM|GENERIC",
        "Specify the type of FastCGI server: 'Generic', 'FPM'",
    )
    .standing(Places::ALL, Override::FILE_INFO)
    .default("FPM"),
    Row::<ProxyFcgi>::new(
        "ProxyFCGISetEnvIf",
        Takes::Some { least: 2, most: 3, set: set_env_if },
        "conditional-expression [!]environment-variable-name [value-expression]",
        "Sets or unsets a variable for the FastCGI server if a condition holds.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
];

/// Source: `cmd_servertype`.
fn backend_type(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let backend_type = match arg.text.to_ascii_lowercase().as_slice() {
        b"fpm" => BackendType::Fpm,
        b"generic" => BackendType::Generic,
        _ => {
            let text = "ProxyFCGIBackendType requires one of the following arguments: 'GENERIC', \
                        'FPM'";
            return Err(Fault::new(text).at(arg));
        }
    };
    cx.dir().backend_type.set(backend_type);
    Ok(())
}

/// Source: `cmd_setenv`.
fn set_env_if(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let [condition, variable, value @ ..] = args else { return Ok(()) };
    let registry = cx.build().registry.clone();
    let fault = |arg: &Arg, why: conf::expr::Error| {
        Fault::new(format!("Could not parse expression \"{}\": {why}", arg.text)).at(arg)
    };
    let parsed = expr::parse_bool(&registry, &condition.text, cx.expr_flags());
    let condition = Arc::new(parsed.map_err(|why| fault(condition, why))?);
    let (name, value) = match variable.text.strip_prefix(b"!") {
        Some(name) => {
            if let Some(third) = value.first() {
                let text = format!(
                    "Third argument (\"{}\") is not allowed when using ProxyFCGISetEnvIf's unset \
                     mode ({})",
                    third.text, variable.text
                );
                return Err(Fault::new(text).at(third));
            }
            if name.is_empty() {
                let text = "ProxyFCGISetEnvIf: \"!\" is not a valid variable name";
                return Err(Fault::new(text).at(variable));
            }
            (name.to_vec(), None)
        }
        None => {
            let text: &[u8] = value.first().map_or(b"", |value| &value.text);
            let parsed = expr::parse_string(&registry, text, cx.expr_flags());
            let value: Expr =
                parsed.map_err(|why| fault(value.first().unwrap_or(variable), why))?;
            (variable.text.to_vec(), Some(Arc::new(value)))
        }
    };
    cx.dir().variables.push(SetEnvIf { condition, name, value });
    Ok(())
}
