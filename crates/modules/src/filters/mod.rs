//! Apache's `modules/filters`.

pub mod mod_deflate;
pub mod mod_ext_filter;
pub mod mod_filter;
pub mod mod_include;
pub mod mod_proxy_html;
pub mod mod_reqtimeout;
pub mod mod_request;
pub mod mod_substitute;
pub mod mod_xml2enc;
mod rewritten;
