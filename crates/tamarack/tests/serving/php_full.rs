//! Many more clients than PHP-FPM has processes: requests wait, and none fails.

use std::os::unix::net::UnixStream;

use crate::client::Client;
use crate::php::Php;
use crate::shapes::start;

/// `pm.max_children`
const CHILDREN: usize = 5;
/// Clients that ask at the same time.
const CLIENTS: usize = 500;
/// Rounds of requests.
const ROUNDS: usize = 2;
/// `listen.backlog`: most connections wait outside of the socket's queue.
const BACKLOG: usize = 16;

#[test]
fn no_request_fails_if_php_is_busy() {
    let backlog = format!("listen.backlog = {BACKLOG}\n");
    let Some(php) = Php::start_with("php-full", CHILDREN, &backlog) else {
        println!("no PHP-FPM (1 skipped)");
        return;
    };
    let socket = php.root.join("php.sock");
    let (socket, htdocs) = (socket.display(), php.root.join("htdocs"));
    let htdocs = htdocs.display();
    let modules = ["proxy", "proxy_fcgi"]
        .map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n"))
        .concat();
    let limits = "MaxRequestWorkers 800\nServerLimit 100\n";
    let handler = format!(
        "<Location /php/>\n  SetHandler \"proxy:unix:{socket}|fcgi://localhost\"\n</Location>\n\
         Alias /php/ {htdocs}/\nLoadModule alias_module modules/mod_alias.so\n\
         <Directory {htdocs}>\n  Require all granted\n</Directory>\n"
    );
    let worker = |parameters: &str| {
        format!("ProxyPass /php/ unix:{socket}|fcgi://localhost{htdocs}/ {parameters}\n")
    };
    let ways = [
        ("event", "a handler", handler),
        ("event", "a worker", worker("")),
        ("event", "a worker with max", worker("max=2 acquire=60000")),
        ("worker", "a worker with max", worker("max=2 acquire=60000")),
    ];
    for (mpm, name, way) in &ways {
        let site = start("php-full", mpm, &format!("{modules}{limits}{way}"));
        site.wait_until("PHP-FPM", || UnixStream::connect(php.root.join("php.sock")).is_ok());
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| site.client()).collect();
        for _ in 0..ROUNDS {
            clients.iter_mut().for_each(|client| client.ask("/php/hello.php").unwrap());
            for client in &mut clients {
                let answer = client.answer().unwrap();
                let seen = (answer.status, answer.text());
                assert_eq!(seen, (200, "hello\n".to_owned()), "{mpm}, {name}");
            }
        }
    }
}
