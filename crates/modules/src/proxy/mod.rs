//! Proxying and balancing (`modules/proxy`).

pub mod balancers;
pub mod mod_proxy;
pub mod mod_proxy_ajp;
pub mod mod_proxy_balancer;
pub mod mod_proxy_connect;
pub mod mod_proxy_express;
pub mod mod_proxy_fcgi;
pub mod mod_proxy_fdpass;
pub mod mod_proxy_ftp;
pub mod mod_proxy_hcheck;
pub mod mod_proxy_http;
pub mod mod_proxy_http2;
pub mod mod_proxy_scgi;
pub mod mod_proxy_uwsgi;
pub mod mod_proxy_wstunnel;

use server::module::{ErasedModule, module};

/// The modules of this family, in the order in which a static httpd would list them.
pub(super) fn modules() -> Vec<&'static dyn ErasedModule> {
    vec![
        module::<mod_proxy::Proxy>(),
        module::<mod_proxy_ajp::ProxyAjp>(),
        module::<mod_proxy_balancer::ProxyBalancer>(),
        module::<mod_proxy_connect::ProxyConnect>(),
        module::<mod_proxy_express::ProxyExpress>(),
        module::<mod_proxy_fcgi::ProxyFcgi>(),
        module::<mod_proxy_fdpass::ProxyFdpass>(),
        module::<mod_proxy_ftp::ProxyFtp>(),
        module::<mod_proxy_hcheck::ProxyHcheck>(),
        module::<mod_proxy_http::ProxyHttp>(),
        module::<mod_proxy_http2::ProxyHttp2>(),
        module::<mod_proxy_scgi::ProxyScgi>(),
        module::<mod_proxy_uwsgi::ProxyUwsgi>(),
        module::<mod_proxy_wstunnel::ProxyWstunnel>(),
        module::<balancers::mod_lbmethod_bybusyness::Bybusyness>(),
        module::<balancers::mod_lbmethod_byrequests::Byrequests>(),
        module::<balancers::mod_lbmethod_bytraffic::Bytraffic>(),
        module::<balancers::mod_lbmethod_heartbeat::Heartbeat>(),
    ]
}
