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
        "Gives files with one of the extensions a media type.",
    ),
    file_info(
        "AddEncoding",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).encoding = Meaning::Is(lower(&value.text));
            Ok(())
        }),
        "encoding extension [extension] ...",
        "Gives files with one of the extensions a content coding.",
    ),
    file_info(
        "AddLanguage",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).language = Meaning::Is(lower(&value.text));
            Ok(())
        }),
        "language-tag extension [extension] ...",
        "Gives files with one of the extensions a language.",
    ),
    file_info(
        "AddHandler",
        Takes::EachOf(|cx, value, extension| {
            let name = lower(&value.text);
            cx.target.check_handler(&name);
            cx.dir().extensions.edit(&extension.text).handler = Meaning::Is(name);
            Ok(())
        }),
        "handler-name extension [extension] ...",
        "Gives files with one of the extensions a handler.",
    ),
    file_info(
        "AddCharset",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).charset = Meaning::Is(lower(&value.text));
            Ok(())
        }),
        "charset extension [extension] ...",
        "Gives files with one of the extensions a charset.",
    ),
    file_info(
        "AddInputFilter",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).input_filters =
                Meaning::Is(lower(&value.text));
            Ok(())
        }),
        "filter[;filter...] extension [extension] ...",
        "Gives files with one of the extensions input filters.",
    ),
    file_info(
        "AddOutputFilter",
        Takes::EachOf(|cx, value, extension| {
            cx.dir().extensions.edit(&extension.text).output_filters =
                Meaning::Is(lower(&value.text));
            Ok(())
        }),
        "filter[;filter...] extension [extension] ...",
        "Gives files with one of the extensions output filters.",
    ),
    remove(
        "RemoveType",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).media_type = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddType said of the extensions back.",
    ),
    remove(
        "RemoveEncoding",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).encoding = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddEncoding said of the extensions back.",
    ),
    remove(
        "RemoveLanguage",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).language = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddLanguage said of the extensions back.",
    ),
    remove(
        "RemoveHandler",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).handler = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddHandler said of the extensions back.",
    ),
    remove(
        "RemoveCharset",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).charset = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddCharset said of the extensions back.",
    ),
    remove(
        "RemoveInputFilter",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).input_filters = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddInputFilter said of the extensions back.",
    ),
    remove(
        "RemoveOutputFilter",
        Takes::Each(|cx, extension| {
            cx.dir().extensions.edit(&extension.text).output_filters = Meaning::Removed;
            Ok(())
        }),
        "Takes what AddOutputFilter said of the extensions back.",
    ),
    file_info(
        "DefaultLanguage",
        Takes::One(|cx, language| {
            cx.dir().default_language.set(language.text.to_vec());
            Ok(())
        }),
        "language-tag",
        "Names the language of files whose extensions name none.",
    ),
    file_info(
        "MultiviewsMatch",
        Takes::Each(multiviews_match),
        "Any|NegotiatedOnly|Filters|Handlers [Handlers|Filters]",
        "Says which extensions a file may have to be a variant for MultiViews.",
    )
    .default("NegotiatedOnly"),
    Row::<Mime>::new(
        "ModMimeUsePathInfo",
        Takes::Flag(|cx, on| {
            cx.dir().use_path_info.set(on);
            Ok(())
        }),
        "On|Off",
        "Reads extensions in what follows the file in the URL, too.",
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
        "Names the file of media types and their extensions.",
    )
    .standing(Places::SERVER, Override::NONE)
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
    // The manual leaves "server config" out; Debian's mime.conf stands there.
    let row = Row::new(name, takes, "extension [extension] ...", doc);
    row.standing(Places::ALL, Override::FILE_INFO)
}

/// Apache keeps names in lower case (`ap_str_tolower`).
fn lower(text: &[u8]) -> Vec<u8> {
    text.to_ascii_lowercase()
}

/// Source: `multiviews_match`
fn multiviews_match(cx: &mut Here<'_, '_>, word: &Arg) -> Set {
    cx.not_within("MultiviewsMatch", &[Within::Limit, Within::Location])?;
    let before = cx.dir().multiviews_match.get().copied();
    let mut views = before.unwrap_or_default();
    if word.is("Any") {
        if before.is_some_and(|views| views.handlers || views.filters) {
            return Err(Fault::new(
                "Any is incompatible with NegotiatedOnly, Filters and Handlers",
            )
            .at(word));
        }
        views.any = true;
    } else if word.is("NegotiatedOnly") {
        if before.is_some() {
            return Err(Fault::new(
                "NegotiatedOnly is incompatible with Any, Filters and Handlers",
            )
            .at(word));
        }
    } else if word.is("Filters") {
        views.filters = true;
    } else if word.is("Handlers") {
        views.handlers = true;
    } else {
        return Err(Fault::new(format!("Unrecognized option '{}'", word.text)).at(word));
    }
    cx.dir().multiviews_match.set(views);
    Ok(())
}
