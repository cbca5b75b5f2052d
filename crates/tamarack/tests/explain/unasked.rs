//! `tamarack explain` of proxied requests connects to no backend, and says which one it would be.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use blackbox::place::Place;

use crate::snapshot;

const CONFIG: &str = "    DefaultRuntimeDir @ROOT@/logs
    LogLevel proxy:debug
    ProxyBlock blocked.invalid
    BalancerPersist On
    <Proxy balancer://members>
        BalancerMember http://BACKEND retry=0
        BalancerMember http://BACKEND/second
        ProxySet stickysession=ID
    </Proxy>
    ProxyPass /http/ http://BACKEND/one/
    ProxyPass /ws/ ws://BACKEND/
    ProxyPass /fcgi/ fcgi://BACKEND/ enablereuse=on
    ProxyPass /ajp/ ajp://BACKEND/ ping=1
    ProxyPass /scgi/ scgi://BACKEND/
    ProxyPass /uwsgi/ uwsgi://BACKEND/
    ProxyPass /ftp/ ftp://BACKEND/
    ProxyPass /passed fd://logs/socket
    ProxyPass /ftp-name/ ftp://backend.invalid/
    ProxyPass /name/ http://backend.invalid/
    ProxyPass /balancer/ balancer://members/
    ProxyPass /unix/ unix:@ROOT@/logs/socket|http://localhost/
    ProxyPassMatch ^/match/(.*)$ http://BACKEND/$1
    RewriteEngine On
    RewriteRule ^/rewritten/(.*)$ http://BACKEND/$1 [P]
    RewriteRule ^/far/(.*)$ http://far.invalid/$1 [P]
    <Location /handler.html>
        SetHandler \"proxy:fcgi://BACKEND\"
    </Location>
    ProxyRequests On
    AllowCONNECT PORT
    ProxyRemote http://far.invalid http://BACKEND
    AuthnzFcgiDefineProvider authn gate fcgi://BACKEND/
    <Location /gate>
        AuthType Basic
        AuthName gate
        AuthBasicProvider gate
        Require valid-user
    </Location>
";

/// The URL with its options, and where a server would connect to.
const ASKED: [(&[&str], &str); 19] = [
    (&["/http/x"], "would connect to http://BACKEND/one/x"),
    (&["/ws/x"], "would connect to ws://BACKEND/x"),
    (&["/fcgi/x.php"], "would connect to fcgi://BACKEND/x.php"),
    (&["/ajp/x"], "would connect to ajp://BACKEND/x"),
    (&["/scgi/x"], "would connect to scgi://BACKEND/x"),
    (&["/uwsgi/x"], "would connect to uwsgi://BACKEND/x"),
    (&["/ftp/x"], "would connect to ftp://BACKEND/x"),
    (&["/ftp-name/x"], "would connect to ftp://backend.invalid/x"),
    (&["/ftp-name/x"], "the name server, about backend.invalid"),
    (&["/name/x"], "would connect to http://backend.invalid/x"),
    (&["/balancer/x"], "would connect to http://BACKEND/x"),
    (&["/unix/x"], "would connect to unix:@ROOT@/logs/socket|http://localhost/x"),
    (&["/passed"], "would connect to fd://@ROOT@/logs/socket"),
    (&["/match/x"], "would connect to http://BACKEND/x"),
    (&["/rewritten/x"], "would connect to http://BACKEND/x"),
    (&["/handler.html"], "would connect to fcgi://BACKEND@ROOT@/htdocs/handler.html"),
    (&["-X", "CONNECT", "BACKEND"], "would connect to BACKEND for CONNECT BACKEND"),
    (&["/far/x"], "would connect to http://BACKEND for http://far.invalid/x"),
    (&["-H", "Authorization: Basic YTpi", "/gate"], "would connect to fcgi://BACKEND/"),
];

#[test]
fn no_backend_is_connected_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let config = CONFIG.replace("BACKEND", &address.to_string());
    let config = config.replace("PORT", &address.port().to_string());
    let text = format!(
        "# Proxied.\nmodules dir mime authz_core authn_core authz_user auth_basic authnz_fcgi \
         rewrite proxy proxy_http proxy_fcgi proxy_ajp proxy_scgi proxy_uwsgi proxy_wstunnel \
         proxy_ftp proxy_fdpass proxy_connect proxy_balancer lbmethod_byrequests slotmem_shm\n\n\
         config\n{config}\ntree\n    htdocs/handler.html\n    | a\n    htdocs/gate\n    | b\n\n\
         command explain\n"
    );
    let file = blackbox::parse::parse(&text).unwrap();
    let place = Place::build(&file, Path::new("")).unwrap();
    let socket = UnixListener::bind(place.root.join("logs/socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    for (words, expected) in ASKED {
        let before = snapshot(&place.root);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamarack"));
        command.arg("explain").arg("--json").arg("-d").arg(&place.root);
        command.args(["-f", "conf/httpd.conf"]).current_dir(&place.root);
        let fill = |text: &str| place.fill_text(&text.replace("BACKEND", &address.to_string()));
        let output = command.args(words.iter().map(|word| fill(word))).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&fill(expected)), "{words:?}: no '{}' in {said}", fill(expected));
        assert!(said.contains("\"not asked\""), "{words:?}: {said}");
        assert_eq!(before, snapshot(&place.root), "{words:?}: files were written");
        for error in [listener.accept().err(), socket.accept().err()] {
            let kind = error.map(|error| error.kind());
            assert_eq!(kind, Some(io::ErrorKind::WouldBlock), "{words:?}: it has connected");
        }
    }
}
