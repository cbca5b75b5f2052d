//! The elements of HTML 4 with their attributes, and the start tags that end them.

use super::elements::{Element, element};

/// In order of their names.
pub(super) static ELEMENTS: &[Element] = &[
    element("a")
        .common()
        .optional(
            "charset type name href hreflang rel rev accesskey shape \
        coords tabindex onfocus onblur",
        )
        .old("target"),
    element("abbr").common(),
    element("acronym").common(),
    element("address").common(),
    element("applet").deprecated().old(
        "id class style title codebase archive alt name height \
        width align hspace vspace",
    ),
    element("area")
        .empty()
        .optional(
            "shape coords href nohref tabindex accesskey onfocus \
        onblur",
        )
        .old("target")
        .required("alt"),
    element("b").common(),
    element("base").empty().old("target").required("href"),
    element("basefont").empty().deprecated().old("id size color face"),
    element("bdo").optional("id class style title lang dir").required("dir"),
    element("big").common(),
    element("blockquote").common().optional("cite"),
    element("body").common().optional("onload onunload").old(
        "background bgcolor text link vlink \
        alink",
    ),
    element("br").empty().optional("id class style title").old("clear"),
    element("button").common().optional(
        "name value type disabled tabindex accesskey onfocus \
        onblur",
    ),
    element("caption").common(),
    element("center").deprecated().common_deprecated(),
    element("cite").common(),
    element("code").common(),
    element("col").empty().common().optional("span width align char charoff valign"),
    element("colgroup").common().optional("span width align char charoff valign"),
    element("dd").common(),
    element("del").common().optional("datetime cite"),
    element("dfn").common(),
    element("dir").deprecated().common_deprecated().old("compact"),
    element("div").common().old("align"),
    element("dl").common().old("compact"),
    element("dt").common(),
    element("em").common(),
    element("embed").deprecated().optional(
        "id class style title align alt border code codebase \
        frameborder height hidden hspace name palette pluginspace pluginurl src type units vspace \
        width",
    ),
    element("fieldset").common(),
    element("font").deprecated().old("id class style title lang dir size color face"),
    element("form")
        .common()
        .optional(
            "method enctype accept name onsubmit onreset \
        accept-charset",
        )
        .old("target")
        .required("action"),
    element("frame").empty().old(
        "id class style title longdesc name src frameborder marginwidth \
        marginheight noresize scrolling",
    ),
    element("frameset").old("id class style title rows cols onload onunload"),
    element("h1").common().old("align"),
    element("h2").common().old("align"),
    element("h3").common().old("align"),
    element("h4").common().old("align"),
    element("h5").common().old("align"),
    element("h6").common().old("align"),
    element("head").optional("lang dir profile"),
    element("hr").empty().common().old("align noshade size width"),
    element("html").optional("lang dir").old("version"),
    element("i").common(),
    element("iframe").old(
        "id class style title longdesc name src frameborder marginwidth \
        marginheight scrolling align height width",
    ),
    element("img")
        .empty()
        .common()
        .optional(
            "longdesc name height width usemap \
        ismap",
        )
        .old("align")
        .required("src alt"),
    element("input")
        .empty()
        .common()
        .optional(
            "type name value checked disabled readonly size \
        maxlength src alt usemap ismap tabindex accesskey onfocus onblur onselect onchange \
        accept",
        )
        .old("align"),
    element("ins").common().optional("datetime cite"),
    element("isindex").empty().deprecated().old("id class style title lang dir prompt"),
    element("kbd").common(),
    element("label").common().optional("for accesskey onfocus onblur"),
    element("legend").common().optional("accesskey").old("align"),
    element("li").common(),
    element("link")
        .empty()
        .common()
        .optional(
            "charset href hreflang type rel rev \
        media",
        )
        .old("target"),
    element("map").common().required("name"),
    element("menu").deprecated().common_deprecated().old("compact"),
    element("meta").empty().optional("lang dir http-equiv name scheme charset").required("content"),
    element("noframes").common(),
    element("noscript").common(),
    element("object")
        .common()
        .optional(
            "declare classid codebase data type codetype archive \
        standby height width usemap name tabindex",
        )
        .old("align border hspace vspace"),
    element("ol").common().old("type compact start"),
    element("optgroup").common().optional("disabled").required("label"),
    element("option").common().optional("disabled label selected value"),
    element("p").common().old("align"),
    element("param").empty().optional("id value valuetype type").required("name"),
    element("pre").common().old("width"),
    element("q").common().optional("cite"),
    element("s").deprecated().common_deprecated(),
    element("samp").common(),
    element("script").optional("charset src defer event for").old("language").required("type"),
    element("select").common().optional(
        "name size multiple disabled tabindex onfocus onblur \
        onchange",
    ),
    element("small").common(),
    element("span").common(),
    element("strike").deprecated().common_deprecated(),
    element("strong").common(),
    element("style").optional("lang dir media title").required("type"),
    element("sub").common(),
    element("sup").common(),
    element("table")
        .common()
        .optional(
            "summary width border frame rules cellspacing cellpadding \
        datapagesize",
        )
        .old("align bgcolor"),
    element("tbody").common().optional("align char charoff valign"),
    element("td")
        .common()
        .optional(
            "abbr axis headers scope rowspan colspan align char charoff \
        valign",
        )
        .old("nowrap bgcolor width height"),
    element("textarea")
        .common()
        .optional(
            "name disabled readonly tabindex accesskey onfocus \
        onblur onselect onchange",
        )
        .required("rows cols"),
    element("tfoot").common().optional("align char charoff valign"),
    element("th")
        .common()
        .optional(
            "abbr axis headers scope rowspan colspan align char charoff \
        valign",
        )
        .old("nowrap bgcolor width height"),
    element("thead").common().optional("align char charoff valign"),
    element("title").optional("lang dir"),
    element("tr").common().optional("align char charoff valign").old("bgcolor"),
    element("tt").common(),
    element("u").deprecated().common_deprecated(),
    element("ul").common().old("type compact"),
    element("var").common(),
];

/// Open elements, in order of their names, and the start tags that end them.
pub(super) static ENDED_BY: &[(&str, &str)] = &[
    ("a", "a fieldset table td th"),
    ("address", "dd dl dt form li ul"),
    ("b", "center p td th"),
    ("big", "p"),
    ("caption", "col colgroup tbody tfoot thead tr"),
    ("col", "col colgroup tbody tfoot thead tr"),
    ("colgroup", "colgroup tbody tfoot thead tr"),
    ("dd", "dt"),
    ("dir", "dd dl dt form ul"),
    ("dl", "form li"),
    ("dt", "dd dl"),
    ("font", "center td th"),
    ("form", "form"),
    ("h1", "fieldset form li p table"),
    ("h2", "fieldset form li p table"),
    ("h3", "fieldset form li p table"),
    ("h4", "fieldset form li p table"),
    ("h5", "fieldset form li p table"),
    ("h6", "fieldset form li p table"),
    (
        "head",
        "a abbr acronym address b bdo big blockquote body br center cite code dd dfn dir div dl \
            dt em fieldset font form frameset h1 h2 h3 h4 h5 h6 hr i iframe img kbd li listing \
            map menu ol p pre q s samp small span strike strong sub sup table tt u ul var xmp",
    ),
    ("hr", "form"),
    ("i", "center p td th"),
    ("legend", "fieldset"),
    ("li", "li"),
    ("link", "body frameset"),
    ("listing", "dd dl dt fieldset form li table ul"),
    ("menu", "dd dl dt form ul"),
    ("ol", "form ul"),
    ("option", "optgroup option"),
    (
        "p",
        "address blockquote body caption center col colgroup dd dir div dl dt fieldset form \
            frameset h1 h2 h3 h4 h5 h6 head hr li listing menu ol p pre table tbody td tfoot th \
            title tr ul xmp",
    ),
    ("pre", "dd dl dt fieldset form li table ul"),
    ("s", "p"),
    ("script", "noscript"),
    ("small", "p"),
    ("span", "td th"),
    ("strike", "p"),
    ("style", "body frameset"),
    ("tbody", "tbody tfoot"),
    ("td", "tbody td tfoot th tr"),
    ("tfoot", "tbody"),
    ("th", "tbody td tfoot th tr"),
    ("thead", "tbody tfoot"),
    ("title", "body frameset"),
    ("tr", "tbody tfoot tr"),
    ("tt", "p"),
    ("u", "p td th"),
    ("ul", "address form menu ol pre"),
    ("xmp", "dd dl dt fieldset form li table ul"),
];
