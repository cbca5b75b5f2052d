//! Apache's `modules/filters`.

mod away;
mod compressed;
pub mod mod_brotli;
pub mod mod_buffer;
pub mod mod_charset_lite;
pub mod mod_data;
pub mod mod_deflate;
pub mod mod_ext_filter;
pub mod mod_filter;
pub mod mod_include;
pub mod mod_precompressed;
pub mod mod_proxy_html;
pub mod mod_ratelimit;
pub mod mod_reqtimeout;
pub mod mod_request;
pub mod mod_sed;
pub mod mod_substitute;
pub mod mod_xml2enc;
pub mod mod_zstd;
pub(crate) mod rewritten;
mod settings;

use server::module::{ErasedModule, module};

/// The modules of this family, in the order of [`crate::all`].
pub(super) fn modules() -> Vec<&'static dyn ErasedModule> {
    vec![
        module::<mod_brotli::Brotli>(),
        module::<mod_buffer::Buffer>(),
        module::<mod_charset_lite::CharsetLite>(),
        module::<mod_data::Data>(),
        module::<mod_filter::Filter>(),
        module::<mod_deflate::Deflate>(),
        module::<mod_ext_filter::ExtFilter>(),
        module::<mod_include::Include>(),
        module::<mod_precompressed::Precompressed>(),
        module::<mod_ratelimit::Ratelimit>(),
        module::<mod_reqtimeout::Reqtimeout>(),
        module::<mod_request::KeptBody>(),
        module::<mod_sed::Sed>(),
        module::<mod_substitute::Substitute>(),
        module::<mod_zstd::Zstd>(),
        module::<mod_xml2enc::Xml2enc>(),
        module::<mod_proxy_html::ProxyHtml>(),
    ]
}
