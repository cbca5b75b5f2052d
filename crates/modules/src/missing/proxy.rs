//! Proxying and balancing.

use server::missing::{Missing, missing, withholding};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[
    missing!("heartbeat", "HeartbeatAddress"),
    missing!("heartmonitor", "HeartbeatListen HeartbeatMaxServers").handlers("heartbeat"),
    missing!("proxy_fdpass", ""),
    missing!("proxy_ftp", "ProxyFtpDirCharset ProxyFtpEscapeWildcards ProxyFtpListOnWildcard")
        .inert("ProxyFtpDirCharset"),
    missing!(
        "proxy_html",
        "ProxyHTMLBufSize ProxyHTMLCharsetOut ProxyHTMLDoctype ProxyHTMLEnable \
         ProxyHTMLEvents ProxyHTMLExtended ProxyHTMLFixups ProxyHTMLInterp ProxyHTMLLinks \
         ProxyHTMLMeta ProxyHTMLStripComments ProxyHTMLURLMap"
    )
    .inert("ProxyHTMLEvents ProxyHTMLLinks")
    .satisfied(&[("ProxyHTMLEnable", "off")])
    .filters(&[withholding("proxy-html")]),
    missing!("proxy_http2", ""),
];
