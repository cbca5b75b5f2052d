//! The directives of mod_charset_lite.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::CharsetLite;

type Here<'a, 't> = Cx<'a, 't, CharsetLite>;

pub(super) const ROWS: &[Row<CharsetLite>] = &[
    row(
        "CharsetDefault",
        Takes::One(|cx, arg| {
            cx.dir().default.set(arg.text.to_vec());
            Ok(())
        }),
        "charset",
        "Names the character set that is sent.",
    ),
    row(
        "CharsetOptions",
        Takes::Each(option),
        "option [option] ...",
        "Sets whether filters are added, and whether all media types are translated.",
    )
    .default("ImplicitAdd"),
    row(
        "CharsetSourceEnc",
        Takes::One(|cx, arg| {
            cx.dir().source.set(arg.text.to_vec());
            Ok(())
        }),
        "charset",
        "Names the character set of files.",
    ),
];

const fn row(
    name: &'static str,
    takes: Takes<CharsetLite>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<CharsetLite> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

/// Source: `add_charset_options`.
fn option(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let dir = cx.dir();
    match arg.text.to_ascii_lowercase().as_slice() {
        b"implicitadd" => dir.adds.set(true),
        b"noimplicitadd" => dir.adds.set(false),
        b"translateallmimetypes" => dir.all_types.set(true),
        b"notranslateallmimetypes" => dir.all_types.set(false),
        _ => {
            let why = format!("Invalid CharsetOptions option: {}", arg.text);
            return Err(Fault::new(why).at(arg));
        }
    }
    Ok(())
}
