//! The core's per-directory configuration.

use std::sync::Arc;

use conf::expr::Expr;

use crate::config::context::Override;
use crate::config::core::{FileEtag, OptionFlags, Options};
use crate::config::section::Section;
use crate::log::LogLevels;
use crate::merge::{Append, Overlay, Setting};
use crate::request::PathInfoUse;

/// `AllowOverride`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct AllowOverride {
    /// The classes that `.htaccess` may use.
    pub classes: Override,
    /// The option words that `.htaccess` may set with `Options`; `None` for all. Configured and
    /// merged apart from the classes, as [`CoreDir::allow_override_options`].
    pub options: Option<OptionFlags>,
    /// `Nonfatal=`: classes whose misuse is logged and skipped.
    pub nonfatal: Override,
    /// `Nonfatal=Unknown` or `All`: unknown directives are logged and skipped.
    pub nonfatal_unknown: bool,
}

impl AllowOverride {
    /// Whether `.htaccess` files need not be read: nothing is allowed, and violations cause no
    /// warning.
    pub fn is_none(self) -> bool {
        let warns = self.nonfatal != Override::NONE || self.nonfatal_unknown;
        self.classes == Override::NONE && !warns
    }

    /// In Apache `None` and `All` replace the whole, including a preceding `Nonfatal`.
    pub fn replace_classes(&mut self, classes: Override) {
        *self = AllowOverride { classes, ..AllowOverride::default() };
    }
}

/// The value of `ErrorDocument` for a status.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorDocument {
    /// `default`: the built-in page.
    Default,
    /// A text, possibly with `%{…}`.
    Text(Arc<Expr>),
    /// A local path (which begins with a slash) or a URL (which has a scheme), possibly with
    /// `%{…}`.
    Location(Arc<Expr>),
}

/// The value of `SetHandler`.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerName {
    /// `none`: cancels an outer `SetHandler`.
    None,
    /// A handler.
    Name(Arc<[u8]>),
    /// A word with `%{`, whose value is the handler's name.
    Expr(Arc<Expr>),
}

impl HandlerName {
    /// The handler of this name, which is lowercased except for values that mod_proxy parses.
    pub fn of(name: &[u8]) -> HandlerName {
        if name.eq_ignore_ascii_case(b"none") {
            HandlerName::None
        } else if name.starts_with(b"proxy:unix") {
            HandlerName::Name(name.into())
        } else {
            HandlerName::Name(name.to_ascii_lowercase().into())
        }
    }
}

/// `HostnameLookups`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HostnameLookups {
    /// No look-up, except for access control.
    #[default]
    Off,
    /// The client's name is looked up.
    On,
    /// The name must also resolve to the address.
    Double,
}

/// `UseCanonicalName`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CanonicalName {
    /// The name that the client sent.
    #[default]
    Off,
    /// `ServerName`
    On,
    /// The name that the local address resolves to.
    Dns,
}

/// `ServerSignature`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Signature {
    /// No last line on error pages.
    #[default]
    Off,
    /// Server version and virtual host.
    On,
    /// The same, with a link to the administrator.
    Email,
}

/// `MaxRanges`, `MaxRangeOverlaps`, `MaxRangeReversals`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeLimit {
    /// No limit.
    Unlimited,
    /// A limit; 0 (`none`) makes the server ignore `Range`.
    Most(u32),
}

/// The values of an `RLimit*` directive: soft, and optionally hard; `None` is `max`.
pub type ResourceLimit = (Option<u64>, Option<Option<u64>>);

crate::config! {
    /// The core's per-directory configuration.
    pub struct CoreDir {
        /// `Options`
        pub options: Options,
        /// `AllowOverride`
        pub allow_override: Setting<AllowOverride>,
        /// `AllowOverride Options` and `Options=`, whatever an `AllowOverride` without them says.
        pub allow_override_options: Setting<OptionFlags>,
        /// `AllowOverrideList`, lower case.
        pub allow_override_list: Setting<Arc<Vec<String>>>,
        /// `<Files>` and `<FilesMatch>`, in order of appearance.
        pub files: Append<Arc<Section>>,
        /// `<If>`, `<ElseIf>`, `<Else>`, in order of appearance.
        pub ifs: Append<Arc<Section>>,
        /// `LogLevel`
        pub log: LogLevels,
        /// `AcceptPathInfo`
        pub accept_path_info: Setting<PathInfoUse>,
        /// `AddDefaultCharset`: `None` is Off.
        pub add_default_charset: Setting<Option<Vec<u8>>>,
        /// `ContentDigest`
        pub content_digest: Setting<bool>,
        /// `EnableMMAP`
        pub enable_mmap: Setting<bool>,
        /// `EnableSendfile`
        pub enable_sendfile: Setting<bool>,
        /// `ErrorDocument`, by status.
        pub error_documents: Overlay<u16, ErrorDocument>,
        /// `FileETag`
        pub file_etag: FileEtag,
        /// `ForceType`; `None` if an inner section cancels it.
        pub force_type: Setting<Option<Vec<u8>>>,
        /// `SetHandler`
        pub handler: Setting<HandlerName>,
        /// `SetInputFilter`
        pub input_filters: Setting<Arc<Vec<Vec<u8>>>>,
        /// `SetOutputFilter`
        pub output_filters: Setting<Arc<Vec<Vec<u8>>>>,
        /// `HostnameLookups`
        pub hostname_lookups: Setting<HostnameLookups>,
        /// `LimitRequestBody`, bytes; 0 for no limit.
        pub limit_request_body: Setting<u64>,
        /// `LimitXMLRequestBody`, bytes; 0 for no limit.
        pub limit_xml_request_body: Setting<u64>,
        /// `MaxRanges`
        pub max_ranges: Setting<RangeLimit>,
        /// `MaxRangeOverlaps`
        pub max_range_overlaps: Setting<RangeLimit>,
        /// `MaxRangeReversals`
        pub max_range_reversals: Setting<RangeLimit>,
        /// `QualifyRedirectURL`
        pub qualify_redirect_url: Setting<bool>,
        /// `ReadBufferSize`, bytes.
        pub read_buffer_size: Setting<usize>,
        /// `ServerSignature`
        pub server_signature: Setting<Signature>,
        /// `UseCanonicalName`
        pub use_canonical_name: Setting<CanonicalName>,
        /// `UseCanonicalPhysicalPort`
        pub use_canonical_physical_port: Setting<bool>,
        /// `CGIPassAuth`
        pub cgi_pass_auth: Setting<bool>,
        /// `CGIVar REQUEST_URI`: whether the current URI is passed instead of the original one.
        pub cgi_current_uri: Setting<bool>,
        /// `RLimitCPU`, seconds.
        pub limit_cpu: Setting<ResourceLimit>,
        /// `RLimitMEM`, bytes.
        pub limit_memory: Setting<ResourceLimit>,
        /// `RLimitNPROC`, processes.
        pub limit_processes: Setting<ResourceLimit>,
    }
}

/// The default of `LimitRequestBody`: 1 GiB, in bytes.
const DEFAULT_REQUEST_BODY_BYTES: u64 = 1 << 30;

impl CoreDir {
    /// `LimitRequestBody`, by default 1 GiB, in bytes; `None` for no limit.
    #[inline]
    pub fn limit_request_body(&self) -> Option<u64> {
        let bytes = self.limit_request_body.or(DEFAULT_REQUEST_BODY_BYTES);
        (bytes != 0).then_some(bytes)
    }

    /// The value of `Accept-Ranges` (`ap_set_accept_ranges`).
    pub fn accept_ranges(&self) -> &'static [u8] {
        match self.max_ranges.get() {
            Some(RangeLimit::Most(0)) => b"none",
            _ => b"bytes",
        }
    }
}
