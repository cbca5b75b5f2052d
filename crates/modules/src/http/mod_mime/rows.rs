//! The directives.

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::within::Within;

use super::Mime;
use super::extension::Meaning;

type Here<'a, 't> = Cx<'a, 't, Mime>;

pub(super) const ROWS: &[Row<Mime>] = &[
    file_info(
        "AddType",
        Takes::EachOf(|cx, value, extension| {
            let media_type = lower(&value.text);
            cx.target.check_type(&media_type);
            cx.dir().extensions.edit(&extension.text).media_type = Meaning::Is(media_type);
            Ok(())
        }),
        "media-type extension [extension] ...",
        "Maps the given extensions to a media type.",
    ),
    file_info(
        "AddEncoding",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).encoding.add(lower(&value.text));
            Ok(())
        }),
        "encoding extension [extension] ...",
        "Maps the given extensions to a content coding.",
    ),
    file_info(
        "AddLanguage",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).language.add(lower(&value.text));
            Ok(())
        }),
        "language-tag extension [extension] ...",
        "Maps the given extensions to a language.",
    ),
    file_info(
        "AddHandler",
        Takes::EachOf(|cx, value, extension| {
            let name = lower(&value.text);
            cx.target.check_handler(&name);
            cx.dir().extensions.edit(&extension.text).handler.add(name);
            Ok(())
        }),
        "handler-name extension [extension] ...",
        "Maps the given extensions to a handler.",
    ),
    file_info(
        "AddCharset",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).charset.add(lower(&value.text));
            Ok(())
        }),
        "charset extension [extension] ...",
        "Maps the given extensions to a charset.",
    ),
    file_info(
        "AddInputFilter",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).input_filters.add(lower(&value.text));
            Ok(())
        }),
        "filter[;filter...] extension [extension] ...",
        "Maps the given extensions to input filters.",
    ),
    file_info(
        "AddOutputFilter",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).output_filters.add(lower(&value.text));
            Ok(())
        }),
        "filter[;filter...] extension [extension] ...",
        "Maps the given extensions to output filters.",
    ),
    remove(
        "RemoveType",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).media_type = Meaning::Removed;
            Ok(())
        }),
        "Removes media-type mappings for the given extensions.",
    ),
    remove(
        "RemoveEncoding",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).encoding.remove();
            Ok(())
        }),
        "Removes content-coding mappings for the given extensions.",
    ),
    remove(
        "RemoveLanguage",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).language.remove();
            Ok(())
        }),
        "Removes language mappings for the given extensions.",
    ),
    remove(
        "RemoveHandler",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).handler.remove();
            Ok(())
        }),
        "Removes handler mappings for the given extensions.",
    ),
    remove(
        "RemoveCharset",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).charset.remove();
            Ok(())
        }),
        "Removes charset mappings for the given extensions.",
    ),
    remove(
        "RemoveInputFilter",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).input_filters.remove();
            Ok(())
        }),
        "Removes input-filter mappings for the given extensions.",
    ),
    remove(
        "RemoveOutputFilter",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).output_filters.remove();
            Ok(())
        }),
        "Removes output-filter mappings for the given extensions.",
    ),
    file_info(
        "DefaultLanguage",
        Takes::One(|cx, language| {
            cx.dir().default_language.set(language.text.to_vec());
            Ok(())
        }),
        "language-tag",
        "Sets the language of files without a language extension.",
    ),
    file_info(
        "MultiviewsMatch",
        Takes::Each(multiviews_match),
        "Any|NegotiatedOnly|Filters|Handlers [Handlers|Filters]",
        "Sets which extensions a variant may have for MultiViews.",
    )
    .default("NegotiatedOnly"),
    Row::<Mime>::new(
        "ModMimeUsePathInfo",
        Takes::Flag(|cx, on| {
            cx.dir().use_path_info.set(on);
            Ok(())
        }),
        "On|Off",
        "Treats path information after the file name as part of the file name.",
    )
    .standing(Places::DIRECTORY, Override::NONE)
    .default("Off"),
    Row::<Mime>::new(
        "TypesConfig",
        Takes::One(|cx, file| {
            let path = cx.build().path(&file.text);
            cx.server().types_config.0.set(path);
            Ok(())
        }),
        "file-path",
        "Sets the file that maps extensions to media types.",
    )
    .standing(Places::HOST, Override::NONE)
    .default("mime.types"),
];

const fn file_info(
    name: &'static str,
    takes: Takes<Mime>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<Mime> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

const fn remove(name: &'static str, takes: Takes<Mime>, doc: &'static str) -> Row<Mime> {
    // The manual omits "server config", but Debian's mime.conf uses the directives there.
    let row = Row::new(name, takes, "extension [extension] ...", doc);
    row.standing(Places::ALL, Override::FILE_INFO)
}

/// Lowercases a name (`ap_str_tolower`).
fn lower(text: &[u8]) -> Vec<u8> {
    text.to_ascii_lowercase()
}

/// Source: `multiviews_match`
fn multiviews_match(cx: &mut Here<'_, '_>, word: &Arg) -> Set {
    cx.not_within("MultiviewsMatch", &[Within::Limit, Within::Location])?;
    let before = cx.dir().multiviews_match.get().copied();
    let mut views = before.unwrap_or_default();
    let is_any = before.is_some_and(|views| views.any);
    let is_some = before.is_some_and(|views| views.handlers || views.filters);
    let is_negotiated = before.is_some() && !is_any && !is_some;
    if word.is("Any") {
        if is_negotiated || is_some {
            return Err(Fault::new(
                "Any is incompatible with NegotiatedOnly, Filters and Handlers",
            )
            .at(word));
        }
        views.any = true;
    } else if word.is("NegotiatedOnly") {
        if is_any || is_some {
            return Err(Fault::new(
                "NegotiatedOnly is incompatible with Any, Filters and Handlers",
            )
            .at(word));
        }
    } else if word.is("Filters") || word.is("Handlers") {
        let is_filters = word.is("Filters");
        if is_any || is_negotiated {
            let name = if is_filters { "Filters" } else { "Handlers" };
            let why = format!("{name} is incompatible with Any and NegotiatedOnly");
            return Err(Fault::new(why).at(word));
        }
        views.filters |= is_filters;
        views.handlers |= !is_filters;
    } else {
        return Err(Fault::new(format!("Unrecognized option '{}'", word.text)).at(word));
    }
    cx.dir().multiviews_match.set(views);
    Ok(())
}
