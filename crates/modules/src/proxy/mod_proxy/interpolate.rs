//! Variables in the directives' texts, by `interpolate` and ProxyPassInterpolateEnv.
//!
//! Source: `proxy_interpolate`.

use std::borrow::Cow;

use wire::Table;

use super::target::split_at_text;

/// Replaces each `${NAME}` by the variable's value. A value is not expanded again.
pub(super) fn expand<'t>(env: &Table, text: &'t [u8]) -> Cow<'t, [u8]> {
    let Some((before, after)) = split_at_text(text, b"${") else { return text.into() };
    let Some((name, rest)) = split_at_text(after, b"}") else { return text.into() };
    let value = env.get(name).unwrap_or_default();
    [before, value, &expand(env, rest)].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced() {
        let mut env = Table::new();
        env.set(b"A", b"1${B}");
        for (text, is) in [("x${A}y${C}z", "x1${B}yz"), ("${A", "${A"), ("a}b", "a}b")] {
            assert_eq!(*expand(&env, text.as_bytes()), *is.as_bytes());
        }
    }
}
