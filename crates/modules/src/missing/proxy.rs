//! Proxying and balancing.

use server::missing::{Missing, missing, withholding};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[
    missing!("heartbeat", "HeartbeatAddress"),
    missing!("heartmonitor", "HeartbeatListen HeartbeatMaxServers HeartbeatStorage")
        .handlers("heartbeat"),
    missing!("lbmethod_bybusyness", ""),
    missing!("lbmethod_byrequests", ""),
    missing!("lbmethod_bytraffic", ""),
    missing!("lbmethod_heartbeat", "HeartbeatStorage"),
    missing!("proxy_ajp", ""),
    missing!("proxy_balancer", "").handlers("balancer-manager"),
    missing!("proxy_connect", "AllowCONNECT"),
    missing!("proxy_express", "ProxyExpressDBMFile ProxyExpressDBMType ProxyExpressEnable"),
    missing!("proxy_fdpass", ""),
    missing!("proxy_ftp", "ProxyFtpDirCharset ProxyFtpEscapeWildcards ProxyFtpListOnWildcard")
        .inert("ProxyFtpDirCharset"),
    missing!("proxy_hcheck", "ProxyHCExpr ProxyHCTemplate ProxyHCTPsize"),
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
    missing!("proxy_scgi", "ProxySCGIInternalRedirect ProxySCGISendfile"),
    missing!("proxy_uwsgi", ""),
    missing!("proxy_wstunnel", "ProxyWebsocketFallbackToProxyHttp"),
    missing!("slotmem_plain", ""),
    missing!("slotmem_shm", ""),
];
