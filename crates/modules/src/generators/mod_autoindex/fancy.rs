//! The listings without a table: plain, and fancy as lines.
//!
//! Source: `output_directories`.

use super::describe;
use super::entry::Entry;
use super::item::{self, BLANK_ICON, Facts};
use super::options::Flags;
use super::query::Column;
use super::text::{Page, anchor, shown_name, size};
use super::turns::Turns;

/// The width of a missing time: one more than that of a time.
const BLANK_TIME_BYTES: usize = 19;

/// Writes a plain list.
pub async fn write_plain(page: &mut Page<'_>, entries: &[Entry]) {
    page.put("<ul>");
    let mut turns = Turns::begin();
    for (index, entry) in entries.iter().enumerate() {
        turns.give().await;
        page.put("<li><a href=\"");
        page.put(anchor(entry));
        page.put("\"> ");
        page.put_escaped(shown_name(entry, index == 0));
        page.put("</a></li>\n");
    }
    page.put("</ul>\n");
}

/// Writes lines with columns.
pub async fn write_lines(page: &mut Page<'_>, entries: &[Entry]) {
    head(page);
    let mut turns = Turns::begin();
    for (index, entry) in entries.iter().enumerate() {
        turns.give().await;
        line(page, entry, index == 0);
    }
    if !page.has(Flags::NO_RULES) {
        page.put("<hr");
        page.end_tag();
    }
    page.put("</pre>\n");
}

fn head(page: &mut Page<'_>) {
    page.put("<pre>");
    if !page.has(Flags::NO_ICON) {
        match item::find(&page.config.icons, &Facts::path(BLANK_ICON)) {
            Some(url) => {
                page.image(url, b"Icon ");
                page.put(" ");
            }
            None => page.put("      "),
        }
    }
    page.heading("Name", Column::Name);
    page.put(" ".repeat(page.name_width.saturating_sub(4) + 1));
    if !page.has(Flags::NO_MODIFIED) {
        page.heading("Last modified", Column::Modified);
        page.put("      ");
    }
    if !page.has(Flags::NO_SIZE) {
        page.heading("Size", Column::Size);
        page.put("  ");
    }
    if !page.has(Flags::NO_DESCRIPTION) {
        page.heading("Description", Column::Description);
    }
    if page.has(Flags::NO_RULES) {
        page.put("\n");
    } else {
        page.put("<hr");
        page.end_tag();
    }
}

fn line(page: &mut Page<'_>, entry: &Entry, is_first: bool) {
    let anchor = anchor(entry);
    if !page.has(Flags::NO_ICON) {
        let links = page.has(Flags::ICONS_ARE_LINKS);
        if links {
            page.put("<a href=\"");
            page.put(&anchor);
            page.put("\">");
        }
        if !page.icon(entry) {
            page.put("     ");
        }
        page.put(if links { "</a> " } else { " " });
    }
    let (name, padding) = page.name(entry, is_first);
    page.put("<a href=\"");
    page.put(&anchor);
    page.put("\">");
    page.put_escaped(&name);
    page.put("</a>");
    page.put(" ".repeat(padding + 1));
    if !page.has(Flags::NO_MODIFIED) && !page.time(entry) {
        page.put(" ".repeat(BLANK_TIME_BYTES));
    }
    if !page.has(Flags::NO_SIZE) {
        page.put(size(entry.size));
        page.put("  ");
    }
    if !page.has(Flags::NO_DESCRIPTION)
        && let Some(description) = &entry.description
    {
        page.put(describe::cut(description, description_width(page)));
    }
    page.put("\n");
}

/// The width for descriptions: by default that of the omitted columns is added.
pub fn description_width(page: &Page<'_>) -> usize {
    if page.config.options.description_width.is_set() {
        return page.description_width;
    }
    let freed = [(Flags::NO_ICON, 6), (Flags::NO_MODIFIED, 19), (Flags::NO_SIZE, 7)];
    let freed = freed.iter().filter(|(flag, _)| page.has(*flag)).map(|(_, width)| width);
    page.description_width + freed.sum::<usize>()
}
