//! Access control by URI: the verdict on a request does not extend to its subrequests and internal
//! redirects, even with the same merged configuration.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use conf::{Arg, BStr, Diagnostic};
use http::service::Service;
use mpm::Scoreboard;
use rt::{Acceptor, Loop, Watcher};
use server::build::Build;
use server::engine::Engine;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, always};
use server::host::Server;
use server::module::{ErasedModule, Module, module};
use server::registry::Registry;
use server::request::Request;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Refuses every URI that contains `secret`, and declares that it decides by URI.
struct ByUri;

/// The same without the declaration.
struct ByUriUnsaid;

impl Module for ByUri {
    const NAME: &'static str = "by_uri_module";
    const FILE: &'static str = "mod_by_uri.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::AccessChecker, Rank::MIDDLE, always, check);
        hooks.decides_access_by_uri();
    }
}

impl Module for ByUriUnsaid {
    const NAME: &'static str = "by_uri_module";
    const FILE: &'static str = "mod_by_uri.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.on(Phase::AccessChecker, Rank::MIDDLE, always, check);
    }
}

fn check<'r, M: Module>(_: Bound<'r, M>, request: &'r mut Request) -> Step<'r> {
    let is_secret = request.resource.uri.windows(6).any(|part| part == b"secret");
    if is_secret { Step::status(403) } else { Step::OK }
}

/// A host with every known module active.
struct Everything(Arc<Registry>);

impl conf::Host for Everything {
    fn module_active(&self, name: &BStr) -> bool {
        self.0.is_active(&name.to_string())
    }
    fn directive_known(&self, name: &BStr) -> bool {
        self.0.row(&name.to_string()).is_some()
    }
    fn load_module(&mut self, _: &Arg, _: &Path) -> Result<(), Box<Diagnostic>> {
        Ok(())
    }
}

fn folder() -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let (made, process) = (MADE.fetch_add(1, Ordering::Relaxed), std::process::id());
    let root = std::env::temp_dir().join(format!("tamarack-by-uri-{process}-{made}"));
    let _ = fs::remove_dir_all(&root);
    for (file, text) in [
        ("htdocs/folder/secret.html", "secret\n"),
        ("htdocs/folder/other.html", "other\n"),
        ("htdocs/secret.html", "secret\n"),
        ("htdocs/a.html", "a\n"),
        ("htdocs/list/secret.html", "secret\n"),
        ("htdocs/list/shown.html", "shown\n"),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }
    root
}

fn server(root: &Path, own: &'static dyn ErasedModule) -> Arc<Server> {
    let mut modules = modules::unnamed();
    modules.push(own);
    let registry = Arc::new(Registry::new(modules));
    let text = format!(
        "ServerRoot {root}\nServerName localhost\nListen 127.0.0.1:1\nDocumentRoot {root}/htdocs\n\
         ErrorLog {root}/error.log\nDirectoryIndex secret.html other.html\n\
         ErrorDocument 404 /secret.html\n\
         <Directory />\nAllowOverride None\nOptions Indexes\n</Directory>\n\
         <Directory {root}/htdocs/list>\nDirectoryIndex disabled\n</Directory>\n",
        root = root.display()
    );
    let file = root.join("httpd.conf");
    fs::write(&file, text).unwrap();
    let options = conf::Options::default();
    let (tree, found) = conf::read_config(&file, &options, &mut Everything(registry.clone()));
    let (server, more, _) = Build::new(registry, &tree, true).finish(&tree.nodes);
    Arc::new(server.unwrap_or_else(|| panic!("{found:?} {more:?}")))
}

/// The responses for these paths, each as status and body.
fn responses(own: &'static dyn ErasedModule, paths: &'static [&'static str]) -> Vec<String> {
    let root = folder();
    let server = server(&root, own);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || {
        let ask = |path: &&str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let head =
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        paths.iter().map(ask).collect()
    });
    let (board, slot) = Scoreboard::of_one_loop().unwrap();
    let watcher = Arc::new(Watcher::new().unwrap());
    let serving = Loop::new("test").watcher(watcher).start(async move |handle| {
        let service = Service::new(Engine::new(server, handle, slot, board));
        let acceptor = Acceptor::from_fd(OwnedFd::from(listener)).unwrap();
        for _ in paths {
            let accepted = acceptor.accept().await.unwrap();
            http::connection::serve(service.clone(), accepted).await;
        }
    });
    serving.unwrap();
    let responses = client.join().unwrap();
    fs::remove_dir_all(root).unwrap();
    responses
}

const PATHS: &[&str] = &["/a.html", "/secret.html", "/folder/", "/nothing", "/list/"];

#[test]
fn subrequests_and_redirects_are_asked_again_where_access_hangs_on_the_uri() {
    let got = responses(module::<ByUri>(), PATHS);
    assert!(got[0].ends_with("a\n"), "{}", got[0]);
    assert!(got[1].starts_with("HTTP/1.1 403 "), "{}", got[1]);
    // The refused index file is skipped, and the error document is not shown.
    assert!(!got[2].contains("secret\n"), "{}", got[2]);
    assert!(got[3].starts_with("HTTP/1.1 404 ") && !got[3].contains("secret\n"), "{}", got[3]);
    assert!(got[4].contains("shown.html") && !got[4].contains("secret.html"), "{}", got[4]);
}

/// The counterpart of the test above: without the declaration, one configuration is checked once.
#[test]
fn they_are_not_where_it_hangs_on_the_configuration_alone() {
    let got = responses(module::<ByUriUnsaid>(), PATHS);
    assert!(got[1].starts_with("HTTP/1.1 403 "), "{}", got[1]);
    assert!(got[2].starts_with("HTTP/1.1 200 ") && got[2].ends_with("secret\n"), "{}", got[2]);
    assert!(got[3].starts_with("HTTP/1.1 404 ") && got[3].ends_with("secret\n"), "{}", got[3]);
    assert!(got[4].contains("secret.html"), "{}", got[4]);
}
