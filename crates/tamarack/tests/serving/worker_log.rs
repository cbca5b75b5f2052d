//! What the log says of workers and health checks: lines that Apache writes elsewhere, or that name
//! its memory.

use crate::backend::Backend;
use crate::shapes::start;

const MODULES: [&str; 6] =
    ["proxy", "proxy_http", "proxy_balancer", "slotmem_shm", "lbmethod_byrequests", "proxy_hcheck"];

#[test]
fn workers_are_told_of_at_start_and_in_each_process() {
    let backend = Backend::start();
    let port = backend.port;
    let modules =
        MODULES.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n")).concat();
    let more = format!(
        "{modules}StartServers 1\nServerLimit 1\n\
         LogLevel warn proxy:debug proxy_balancer:debug proxy_hcheck:debug\n\
         ProxyHCExpr small {{hc('body') =~ /^request/}}\n\
         <Proxy balancer://b>\n\
         BalancerMember http://127.0.0.1:{port} hcmethod=GET hcinterval=100ms hcexpr=small\n\
         BalancerMember https://127.0.0.1:{port} hcmethod=GET hcinterval=100ms route=x\n\
         BalancerMember https://127.0.0.1:{port}/x\n\
         ProxySet growth=2\n</Proxy>\n\
         ProxyPass /b/ balancer://b/\n\
         ProxyPass /one http://127.0.0.1:{port}/one max=7\n\
         ProxyPass /one/b http://127.0.0.1:{port}/one/b\n"
    );
    let site = start("told", "event", &more);
    let url = format!("http://127.0.0.1:{port}");
    let tls = format!("https://127.0.0.1:{port}");
    for line in [
        format!("AH01147: Defining worker '{url}' for balancer 'balancer://b'"),
        format!("AH01148: Defined worker '{tls}' for balancer 'balancer://b'"),
        format!("AH01149: Sharing worker '{tls}' instead of creating new worker '{tls}/x'"),
        format!("AH01145: Sharing worker '{url}/one' instead of creating new worker '{url}/one/b'"),
        "AH01178: Doing balancers create: ".to_owned(),
        "AH02337: copying shm[0] for balancer://b".to_owned(),
        "AH01184: Doing workers create: balancer://b ".to_owned(),
        format!("AH02338: copying shm[1] for worker: {tls}"),
        format!("AH01158: Looking at balancer://b -> {url} initialized?"),
        format!("for (127.0.0.1:{port}) min=0 max=7 smax=7"),
        format!("AH03248: Creating hc worker for http://127.0.0.1:{port}"),
        "AH03258: _proxy_hcheck_ watchdog started.".to_owned(),
        "AH03254: HTTP/1.1 200 OK".to_owned(),
        // With it, but without `SSLProxyEngine`, it is AH00961.
        "AH03252: mod_ssl not configured?".to_owned(),
        format!("AH03251: Health check GET Status (1) for {tls}."),
        format!("AH03303: Threaded Health check DISABLING {tls}"),
        format!("AH03251: Health check GET Status (0) for {url}."),
    ] {
        site.wait_for_line(&line);
    }
    assert_eq!(site.get("/b/some").status, 200);
}
