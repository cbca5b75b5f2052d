//! The listing as a table.
//!
//! Source: `output_directories`.

use super::describe;
use super::entry::Entry;
use super::fancy::description_width;
use super::item::{self, BLANK_ICON, Facts};
use super::options::{Flags, Width};
use super::query::Column;
use super::text::{Page, anchor, shown_name, size};
use super::turns::Turns;

/// Writes the table.
pub async fn write(page: &mut Page<'_>, entries: &[Entry]) {
    let styled = page.config.style_sheet.is_set();
    page.put(match styled {
        true => "  <table id=\"indexlist\">\n   <tr class=\"indexhead\">",
        false => "  <table>\n   <tr>",
    });
    let columns = head(page, styled);
    let rule = match page.has(Flags::NO_RULES) {
        true => String::new(),
        false => {
            let class = if styled { " class=\"indexbreakrow\"" } else { "" };
            let end = if page.has(Flags::XHTML) { " /" } else { "" };
            format!("   <tr{class}><th colspan=\"{columns}\"><hr{end}></th></tr>\n")
        }
    };
    page.put("</th></tr>\n");
    page.put(&rule);
    let mut turns = Turns::begin();
    for (index, entry) in entries.iter().enumerate() {
        turns.give().await;
        row(page, entry, index, styled);
    }
    page.put(&rule);
    page.put("</table>\n");
}

/// Writes the headings and returns their number.
fn head(page: &mut Page<'_>, styled: bool) -> usize {
    let mut columns = 1;
    if !page.has(Flags::NO_ICON) {
        page.put(cell("th", styled, "indexcolicon", " valign=\"top\""));
        match item::find(&page.config.icons, &Facts::path(BLANK_ICON)) {
            Some(url) => page.image(url, b"[ICO]"),
            None => page.put("&nbsp;"),
        }
        page.put("</th>");
        columns += 1;
    }
    page.put(cell("th", styled, "indexcolname", ""));
    page.heading("Name", Column::Name);
    let optional = [
        (Flags::NO_MODIFIED, "Last modified", Column::Modified, "indexcollastmod"),
        (Flags::NO_SIZE, "Size", Column::Size, "indexcolsize"),
        (Flags::NO_DESCRIPTION, "Description", Column::Description, "indexcoldesc"),
    ];
    for (without, text, column, class) in optional {
        if !page.has(without) {
            page.put("</th>");
            page.put(cell("th", styled, class, ""));
            page.heading(text, column);
            columns += 1;
        }
    }
    columns
}

/// A cell's tag, with its class or, without a style sheet, its attributes.
fn cell(tag: &str, styled: bool, class: &str, attributes: &str) -> String {
    match styled {
        true => format!("<{tag} class=\"{class}\">"),
        false => format!("<{tag}{attributes}>"),
    }
}

fn row(page: &mut Page<'_>, entry: &Entry, index: usize, styled: bool) {
    let anchor = anchor(entry);
    if styled {
        page.put("   <tr class=\"");
        page.put(if index % 2 == 1 { "odd" } else { "even" });
        if let Some(alt) = entry.alt.as_ref().filter(|_| page.has(Flags::ALT_CLASS)) {
            page.put("-");
            page.put(alt.to_ascii_lowercase());
        }
        page.put("\">");
    } else {
        page.put("<tr>");
    }
    if !page.has(Flags::NO_ICON) {
        icon(page, entry, &anchor, styled);
    }
    page.put(cell("td", styled, "indexcolname", ""));
    page.put("<a href=\"");
    page.put(&anchor);
    page.put("\">");
    let grows = matches!(page.config.options.name_width.get(), Some(Width::Widest(_)));
    let (name, padding) = match grows {
        true => (shown_name(entry, index == 0).to_vec(), 0),
        false => page.name(entry, index == 0),
    };
    page.put_escaped(&name);
    page.put("</a>");
    page.put(" ".repeat(padding));
    if !page.has(Flags::NO_MODIFIED) {
        page.put("</td>");
        let aligned = if entry.mtime_us.is_some() { " align=\"right\"" } else { "" };
        page.put(cell("td", styled, "indexcollastmod", aligned));
        if !page.time(entry) {
            page.put("&nbsp;");
        }
    }
    if !page.has(Flags::NO_SIZE) {
        page.put("</td>");
        page.put(cell("td", styled, "indexcolsize", " align=\"right\""));
        page.put(size(entry.size));
    }
    if !page.has(Flags::NO_DESCRIPTION) {
        page.put("</td>");
        page.put(cell("td", styled, "indexcoldesc", ""));
        describe(page, entry);
    }
    page.put("</td></tr>\n");
}

fn icon(page: &mut Page<'_>, entry: &Entry, anchor: &[u8], styled: bool) {
    page.put(cell("td", styled, "indexcolicon", " valign=\"top\""));
    let links = page.has(Flags::ICONS_ARE_LINKS);
    if links {
        page.put("<a href=\"");
        page.put(anchor);
        page.put("\">");
    }
    if !page.icon(entry) {
        page.put("&nbsp;");
    }
    page.put(if links { "</a></td>" } else { "</td>" });
}

fn describe(page: &mut Page<'_>, entry: &Entry) {
    let grows = matches!(page.config.options.description_width.get(), Some(Width::Widest(_)));
    match &entry.description {
        Some(text) if grows => page.put(text),
        Some(text) => {
            let text = describe::cut(text, description_width(page));
            page.put(text);
        }
        None => page.put("&nbsp;"),
    }
}
