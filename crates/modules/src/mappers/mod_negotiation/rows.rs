//! The directives.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::{Force, Negotiation};

type Here<'a, 't> = Cx<'a, 't, Negotiation>;

pub(super) const ROWS: &[Row<Negotiation>] = &[
    Row::new(
        "CacheNegotiatedDocs",
        Takes::Flag(cache_negotiated_docs),
        "On|Off",
        "Allows HTTP/1.0 caches to store negotiated responses.",
    )
    .default("Off"),
    Row::new(
        "LanguagePriority",
        Takes::Each(language_priority),
        "MIME-lang [MIME-lang] ...",
        "Sets the order of languages for clients without a preference.",
    )
    .standing(Places::ALL, Override::FILE_INFO),
    Row::new(
        "ForceLanguagePriority",
        Takes::Some { least: 1, most: usize::MAX, set: force_language_priority },
        "None|Prefer|Fallback [Prefer|Fallback]",
        "Sets whether LanguagePriority decides among equal variants, or if none is acceptable.",
    )
    .standing(Places::ALL, Override::FILE_INFO)
    .default("Prefer"),
];

fn cache_negotiated_docs(cx: &mut Here<'_, '_>, on: bool) -> Set {
    cx.server().cache_negotiated.set(on);
    Ok(())
}

fn language_priority(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let priority = &mut cx.dir().language_priority;
    let mut all = priority.get().cloned().unwrap_or_default();
    all.push(arg.text.to_vec());
    priority.set(all);
    Ok(())
}

/// Words in the same section accumulate; `None` can't be combined.
fn force_language_priority(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    let here = &mut cx.dir().force;
    for arg in args {
        let set = here.get().copied();
        let has_others = set.is_some_and(|force| force.prefer || force.fallback);
        let is_none = set.is_some() && !has_others;
        let mut force = set.unwrap_or(Force { prefer: false, fallback: false });
        let word = match () {
            () if arg.is("None") => {
                if has_others {
                    let text = "Cannot combine ForceLanguagePriority options with None";
                    return Err(Fault::new(text).at(arg));
                }
                here.set(force);
                continue;
            }
            () if arg.is("Prefer") => {
                force.prefer = true;
                "Prefer"
            }
            () if arg.is("Fallback") => {
                force.fallback = true;
                "Fallback"
            }
            () => {
                let text = format!("Invalid ForceLanguagePriority option {}", arg.text);
                return Err(Fault::new(text).at(arg));
            }
        };
        if is_none {
            let text = format!("Cannot combine ForceLanguagePriority options None and {word}");
            return Err(Fault::new(text).at(arg));
        }
        here.set(force);
    }
    Ok(())
}
