//! The directive `Options`.

use conf::Arg;
use server::context::{Override, Places};
use server::core::OptionFlags;
use server::directive::{Cx, Fault, Row, Set, State, Takes};

use super::Core;

/// The rows of this file.
pub(super) const ROWS: &[Row<Core>] = &[Row {
    name: "Options",
    places: Places::ALL,
    allow: Override::OPTIONS,
    takes: Takes::Some { least: 0, most: usize::MAX, set: set_options },
    syntax: "[+|-]option [[+|-]option] ...",
    default: "FollowSymlinks",
    doc: "Enables or disables features of a directory; signed options change the inherited ones, \
        unsigned options replace them.",
    state: State::Done,
}];

/// Signed words may follow `None` and `All`, which begin a list, but no other unsigned words.
///
/// Source: `set_options` (server/core.c).
fn set_options(cx: &mut Cx<'_, '_, Core>, words: &[Arg]) -> Set {
    let allowed = cx.target.allowed_options;
    let mut options = cx.dir().options;
    let (mut are_signed, mut is_all_or_none) = (false, false);
    for (index, word) in words.iter().enumerate() {
        let (sign, name) = match word.text.split_first() {
            Some((sign @ (b'+' | b'-'), name)) => (Some(*sign), name),
            _ => (None, word.text.as_slice()),
        };
        let is_first = index == 0;
        let is_mixed = match sign {
            Some(_) => !is_all_or_none && !is_first && !are_signed,
            None => are_signed,
        };
        if is_mixed {
            let mixed = "Either all Options must start with + or -, or no Option may.";
            return Err(Fault::new(mixed).at(word));
        }
        are_signed |= sign.is_some();
        if is_first && !are_signed {
            options.begin_absolute();
        }
        let flags = match all_or_none(name, is_first, are_signed) {
            Some(flags) => {
                is_all_or_none = true;
                flags.map_err(|why| Fault::new(why).at(word))?
            }
            None => OptionFlags::of_word(name).ok_or_else(|| {
                Fault::new(format!("Illegal option {}", bstr::BStr::new(name))).at(word)
            })?,
        };
        if allowed.is_some_and(|allowed| !allowed.has(flags)) {
            let name = bstr::BStr::new(name);
            return Err(Fault::new(format!("Option {name} not allowed here")).at(word));
        }
        options.word(sign, flags);
    }
    cx.dir().options = options;
    Ok(())
}

/// The words that begin a list: their flags, or why they are not allowed here.
fn all_or_none(
    name: &[u8],
    is_first: bool,
    are_signed: bool,
) -> Option<Result<OptionFlags, &'static str>> {
    let (flags, late, signed) = if name.eq_ignore_ascii_case(b"None") {
        (
            OptionFlags::NONE,
            "'Options None' must be the first Option given.",
            "You may not use 'Options +None' or 'Options -None'.",
        )
    } else if name.eq_ignore_ascii_case(b"All") {
        (
            OptionFlags::ALL,
            "'Options All' must be the first option given.",
            "You may not use 'Options +All' or 'Options -All'.",
        )
    } else {
        return None;
    };
    Some(match (is_first, are_signed) {
        (false, _) => Err(late),
        (true, true) => Err(signed),
        (true, false) => Ok(flags),
    })
}
