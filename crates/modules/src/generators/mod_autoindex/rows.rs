//! The directives of mod_autoindex.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::merge::Setting;

use super::describe::Description;
use super::item::{By, Item};
use super::query::{Column, Order};
use super::{Autoindex, DirConfig};

type Here<'a, 't> = Cx<'a, 't, Autoindex>;

const fn row(
    name: &'static str,
    takes: Takes<Autoindex>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Autoindex> {
    Row::<Autoindex>::new(name, takes, syntax, doc).standing(Places::ALL, Override::INDEXES)
}

pub(super) const ROWS: &[Row<Autoindex>] = &[
    row(
        "AddIcon",
        Takes::EachOf(|cx, icon, name| add_icon(cx, By::Path, icon, name)),
        "icon name [name] ...",
        "Sets an icon by file name.",
    ),
    row(
        "AddIconByType",
        Takes::EachOf(|cx, icon, name| add_icon(cx, By::Type, icon, name)),
        "icon MIME-type [MIME-type] ...",
        "Sets an icon by media type.",
    ),
    row(
        "AddIconByEncoding",
        Takes::EachOf(|cx, icon, name| add_icon(cx, By::Encoding, icon, name)),
        "icon MIME-encoding [MIME-encoding] ...",
        "Sets an icon by content encoding.",
    ),
    row(
        "AddAlt",
        Takes::EachOf(|cx, text, name| add_alt(cx, By::Path, &text.text, name)),
        "string file [file] ...",
        "Sets the alternate text of an icon by file name.",
    ),
    row(
        "AddAltByType",
        Takes::EachOf(|cx, text, name| add_alt(cx, By::Type, &text.text, name)),
        "string MIME-type [MIME-type] ...",
        "Sets the alternate text of an icon by media type.",
    ),
    row(
        "AddAltByEncoding",
        Takes::EachOf(|cx, text, name| add_alt(cx, By::Encoding, &text.text, name)),
        "string MIME-encoding [MIME-encoding] ...",
        "Sets the alternate text of an icon by content encoding.",
    ),
    row(
        "IndexOptions",
        Takes::Some { least: 0, most: usize::MAX, set: index_options },
        "[+|-]option [[+|-]option] ...",
        "Sets options for directory listings.",
    )
    .default("By default, no options are enabled."),
    row(
        "IndexOrderDefault",
        Takes::Two(index_order_default),
        "Ascending|Descending Name|Date|Size|Description",
        "Sets the default order of listings.",
    )
    .default("Ascending Name"),
    row(
        "IndexIgnore",
        Takes::Each(|cx, pattern| {
            let item = Item::new(By::Section, &pattern.text, cx.path(), b"");
            cx.dir().ignored.items.push(item);
            Ok(())
        }),
        "file [file] ...",
        "Omits files from listings.",
    )
    .default("\".\""),
    row(
        "IndexIgnoreReset",
        Takes::Flag(|cx, on| {
            cx.dir().ignored.reset = on;
            Ok(())
        }),
        "ON|OFF",
        "Discards the IndexIgnore lists of outer sections.",
    ),
    row(
        "AddDescription",
        Takes::EachOf(|cx, text, file| {
            cx.dir().descriptions.push(Description::new(&text.text, &file.text));
            Ok(())
        }),
        "string file [file] ...",
        "Sets descriptions of files in listings.",
    ),
    row(
        "HeaderName",
        Takes::One(|cx, name| text(cx, name, |dir| &mut dir.header)),
        "filename",
        "Sets the file that is shown above a listing.",
    ),
    row(
        "ReadmeName",
        Takes::One(|cx, name| text(cx, name, |dir| &mut dir.readme)),
        "filename",
        "Sets the file that is shown below a listing.",
    ),
    row(
        "DefaultIcon",
        Takes::One(|cx, url| text(cx, url, |dir| &mut dir.default_icon)),
        "url-path",
        "Sets the icon of files for which no other directive sets one.",
    ),
    row(
        "IndexStyleSheet",
        Takes::One(|cx, url| text(cx, url, |dir| &mut dir.style_sheet)),
        "url-path",
        "Sets the style sheet of listings.",
    ),
    row(
        "IndexHeadInsert",
        Takes::One(|cx, markup| text(cx, markup, |dir| &mut dir.head_insert)),
        "\"markup ...\"",
        "Inserts text into the HTML head of listings.",
    ),
    Row::new(
        "FancyIndexing",
        Takes::Raw(fancy_indexing),
        "on|off",
        "Is an error, as in Apache: `IndexOptions FancyIndexing` replaces it.",
    )
    .standing(Places::ALL, Override::ALL),
];

fn fancy_indexing(_: &mut Here<'_, '_>, _: &Arg) -> Set {
    let text =
        "The FancyIndexing directive is no longer supported. Use IndexOptions FancyIndexing.";
    Err(Fault::new(text))
}

fn text(
    cx: &mut Here<'_, '_>,
    arg: &Arg,
    field: fn(&mut DirConfig) -> &mut Setting<Vec<u8>>,
) -> Set {
    field(cx.dir()).set(arg.text.to_vec());
    Ok(())
}

fn add_alt(cx: &mut Here<'_, '_>, by: By, text: &[u8], name: &Arg) -> Set {
    let item = Item::new(by, &name.text, cx.path(), text);
    cx.dir().alts.push(item);
    Ok(())
}

/// Adds an icon: its URL, or `(text,URL)`.
fn add_icon(cx: &mut Here<'_, '_>, by: By, icon: &Arg, name: &Arg) -> Set {
    let mut url = icon.text.as_slice();
    if let Some(both) = url.strip_prefix(b"(") {
        let Some(close) = both.iter().position(|byte| *byte == b')') else {
            return Err(Fault::new("missing closing paren").at(icon));
        };
        let both = both.get(..close).unwrap_or_default();
        let comma = both.iter().position(|byte| *byte == b',').unwrap_or(both.len());
        let (alt, rest) = both.split_at(comma);
        add_alt(cx, by, alt, name)?;
        let commas = rest.iter().take_while(|byte| **byte == b',').count();
        url = rest.get(commas..).unwrap_or_default();
    }
    let item = Item::new(by, &name.text, cx.path(), url);
    cx.dir().icons.push(item);
    Ok(())
}

fn index_options(cx: &mut Here<'_, '_>, words: &[Arg]) -> Set {
    let words = words.iter().map(|word| word.text.as_slice()).take_while(|word| !word.is_empty());
    cx.dir().options.take(words).map_err(Fault::from)
}

fn index_order_default(cx: &mut Here<'_, '_>, direction: &Arg, column: &Arg) -> Set {
    let ascending = match () {
        () if direction.is("Ascending") => true,
        () if direction.is("Descending") => false,
        () => {
            let wrong = "First keyword must be 'Ascending' or 'Descending'";
            return Err(Fault::new(wrong).at(direction));
        }
    };
    let columns = [
        ("Name", Column::Name),
        ("Date", Column::Modified),
        ("Size", Column::Size),
        ("Description", Column::Description),
    ];
    let Some((_, column)) = columns.iter().find(|(word, _)| column.is(word)) else {
        let wrong = "Second keyword must be 'Name', 'Date', 'Size', or 'Description'";
        return Err(Fault::new(wrong).at(column));
    };
    cx.dir().order.set(Order { column: *column, ascending });
    Ok(())
}
