//! The configuration of mod_proxy_html.

use std::collections::BTreeMap;
use std::sync::Arc;

use server::merge::Merge;

use super::rules::Rule;

server::config! {
    /// Per-directory configuration.
    pub struct DirConfig {
        /// All directives, which merge by rules of their own.
        pub html: Html,
    }
}

/// The directives of a section. Source: `proxy_html_merge`.
#[derive(Clone, Default)]
pub struct Html {
    /// `ProxyHTMLURLMap`
    pub rules: Arc<Vec<Rule>>,
    /// `ProxyHTMLLinks`: attributes by element.
    pub links: Option<Arc<BTreeMap<Vec<u8>, Vec<Vec<u8>>>>>,
    /// `ProxyHTMLEvents`
    pub events: Option<Arc<Vec<Vec<u8>>>>,
    /// `ProxyHTMLDoctype`
    pub doctype: Doctype,
    /// Whether empty elements end as in XML (`ProxyHTMLDoctype`).
    pub is_xml: bool,
    /// `ProxyHTMLCharsetOut`
    pub charset_out: Option<Vec<u8>>,
    /// `ProxyHTMLFixups lowercase`
    pub lowers: bool,
    /// `ProxyHTMLFixups dospath`
    pub slashes: bool,
    /// `ProxyHTMLFixups reset`
    pub resets: bool,
    /// `ProxyHTMLMeta`
    pub follows_meta: bool,
    /// `ProxyHTMLExtended`
    pub is_extended: bool,
    /// `ProxyHTMLInterp`
    pub interpolates: bool,
    /// `ProxyHTMLStripComments`
    pub strips_comments: bool,
    /// `ProxyHTMLEnable`
    pub is_enabled: bool,
}

/// The document type that is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Doctype {
    /// None.
    #[default]
    None,
    /// HTML 4.01, and whether deprecated elements are left out.
    Html {
        /// Whether elements that the strict type lacks are left out.
        is_strict: bool,
    },
    /// XHTML 1.0.
    Xhtml {
        /// As in HTML.
        is_strict: bool,
    },
    /// A text.
    Text(Vec<u8>),
}

impl Doctype {
    /// What is written before the document.
    pub fn text(&self) -> &[u8] {
        match self {
            Doctype::None => b"",
            Doctype::Html { is_strict: true } => {
                b"<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01//EN\">\n"
            }
            Doctype::Html { is_strict: false } => {
                b"<!DOCTYPE html PUBLIC \"-//W3C//DTD HTML 4.01 Transitional//EN\">\n"
            }
            Doctype::Xhtml { is_strict: true } => {
                b"<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \
                  \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">\n"
            }
            Doctype::Xhtml { is_strict: false } => {
                b"<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\" \
                  \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n"
            }
            Doctype::Text(text) => text,
        }
    }

    /// Whether only elements of the type are written; the value says whether it is the strict one.
    pub fn enforced(&self) -> Option<bool> {
        match self {
            Doctype::Html { is_strict } | Doctype::Xhtml { is_strict } => Some(*is_strict),
            Doctype::None | Doctype::Text(_) => None,
        }
    }
}

impl Merge for Html {
    fn merge(outer: &Html, inner: &Html) -> Html {
        let is_reset = inner.resets;
        let either = |outer: bool, inner: bool| inner || (outer && !is_reset);
        Html {
            rules: merged_rules(outer, inner),
            links: inner.links.clone().or_else(|| outer.links.clone()),
            events: inner.events.clone().or_else(|| outer.events.clone()),
            doctype: match &inner.doctype {
                Doctype::None => outer.doctype.clone(),
                own => own.clone(),
            },
            is_xml: inner.is_xml || outer.is_xml,
            charset_out: inner.charset_out.clone().or_else(|| outer.charset_out.clone()),
            lowers: either(outer.lowers, inner.lowers),
            slashes: either(outer.slashes, inner.slashes),
            // A reset that is merged is none; one that was only inherited stays.
            resets: outer.resets && !is_reset,
            follows_meta: either(outer.follows_meta, inner.follows_meta),
            is_extended: either(outer.is_extended, inner.is_extended),
            interpolates: either(outer.interpolates, inner.interpolates),
            strips_comments: either(outer.strips_comments, inner.strips_comments),
            is_enabled: either(outer.is_enabled, inner.is_enabled),
        }
    }
}

/// Where both have rules, Apache's order is that of the inner ones backwards, then the outer ones
/// backwards.
fn merged_rules(outer: &Html, inner: &Html) -> Arc<Vec<Rule>> {
    if inner.rules.is_empty() {
        return outer.rules.clone();
    }
    if outer.rules.is_empty() {
        return inner.rules.clone();
    }
    Arc::new(inner.rules.iter().rev().chain(outer.rules.iter().rev()).cloned().collect())
}
