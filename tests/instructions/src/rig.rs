//! A server in this process, on the caller's thread, and its client on another thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use http::connection;
use http::service::Service;
use mpm::Scoreboard;
use mpm::logfile::LogOpener;
use mpm::pipes::PipedLogs;
use rt::{Acceptor, Loop, Watcher};
use server::build::Build;
use server::engine::Engine;
use server::host::Server;
use server::registry::Registry;

use crate::{behind, streams};

/// The requests of a client. No two heads are alike, except those of [`Heads::Same`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// A file, by wrk's head each time.
    Same,
    /// A file.
    Unlike,
    /// A file, with a query.
    Query,
    /// 100 bytes of a file: 206.
    Range,
    /// A file that the client has: 304.
    NotModified,
    /// A name that does not exist: 404.
    Missing,
    /// A folder without its slash: 301.
    Folder,
    /// A name that does not exist, another each time: 404.
    Unknown,
    /// A file beside an `.htaccess` with the rules of WordPress and 100 redirects.
    RulesFile,
    /// One of those redirects: 301.
    RulesRedirect,
    /// A name that does not exist, for which the rules have a page.
    RulesPage,
    /// The same, another name each time.
    RulesUnknown,
    /// As `Unknown`, of a host with 1,000 redirects.
    HostUnknown,
    /// A file, by the head of a browser.
    Browser,
    /// A file, by a head with the fields of a combined log, which is buffered.
    Logged,
    /// The same without a log.
    Unlogged,
    /// A file of another server, over HTTP, by the head of a browser.
    Proxied,
    /// The same from a FastCGI responder.
    Responder,
    /// A file over HTTP/2, by the head of a browser, on several streams at a time.
    Streams,
}

impl Heads {
    fn head(self, number: u32) -> String {
        let target = match self {
            Heads::Query => format!("/small.txt?ver={number:08}"),
            Heads::Missing => "/missing.txt".to_owned(),
            Heads::Folder => "/folder".to_owned(),
            Heads::Unknown | Heads::HostUnknown => format!("/unknown-{number:08}"),
            Heads::RulesFile => "/rules/small.txt".to_owned(),
            Heads::RulesRedirect => "/rules/old/page-50".to_owned(),
            Heads::RulesPage => "/rules/post".to_owned(),
            Heads::RulesUnknown => format!("/rules/post-{number:08}"),
            Heads::Proxied => "/proxied/small.txt".to_owned(),
            Heads::Responder => "/responder/small.txt".to_owned(),
            _ => "/small.txt".to_owned(),
        };
        let field = match self {
            Heads::Range => "Range: bytes=0-99\r\n",
            Heads::NotModified => "If-None-Match: *\r\n",
            Heads::Logged | Heads::Unlogged => LOGGED_FIELDS,
            Heads::Browser | Heads::Proxied | Heads::Responder => BROWSER_FIELDS,
            _ => "",
        };
        let other = if self == Heads::Same { String::new() } else { format!("X: {number:08}\r\n") };
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{field}{other}\r\n")
    }

    /// Whether an `.htaccess` file applies.
    fn has_rules(self) -> bool {
        matches!(
            self,
            Heads::RulesFile | Heads::RulesRedirect | Heads::RulesPage | Heads::RulesUnknown
        )
    }

    /// Whether another server responds.
    fn is_forwarded(self) -> bool {
        matches!(self, Heads::Proxied | Heads::Responder)
    }

    fn status(self) -> &'static str {
        match self {
            Heads::Range => "206",
            Heads::NotModified => "304",
            Heads::Missing | Heads::Unknown | Heads::HostUnknown => "404",
            Heads::Folder | Heads::RulesRedirect => "301",
            _ => "200",
        }
    }

    /// The lines of the host's own configuration, with a server behind it on this port.
    fn configuration(self, behind: u16) -> String {
        match self {
            Heads::Proxied => format!("ProxyPass /proxied/ http://127.0.0.1:{behind}/\n"),
            Heads::Responder => {
                format!("ProxyPass /responder/ fcgi://127.0.0.1:{behind}/ enablereuse=on\n")
            }
            Heads::HostUnknown => format!("RewriteEngine On\n{}", redirects("^/old", 1000)),
            Heads::Logged => COMBINED_LOG.to_owned(),
            Heads::Streams => "Protocols h2c http/1.1\n".to_owned(),
            _ => String::new(),
        }
    }
}

/// What a browser asks for, and with what.
const BROWSER_FIELDS: &str = "Connection: keep-alive\r\nCache-Control: max-age=0\r\n\
    sec-ch-ua: \"Chromium\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\nsec-ch-ua-mobile: ?0\r\n\
    sec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/130.0.0.0 Safari/537.36\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\n\
    Referer: http://127.0.0.1:8080/folder/page.html\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-GB,en;q=0.9,de;q=0.8\r\n";

/// What a browser says of itself and of the page that it comes from.
const LOGGED_FIELDS: &str = "Referer: http://127.0.0.1:8080/folder/page.html\r\n\
    User-Agent: Mozilla/5.0 \
    (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36\r\n";

/// The log that distributions configure, buffered.
const COMBINED_LOG: &str = "BufferedLogs On\nLogFormat \"%h %l %u %t \\\"%r\\\" %>s %O \
    \\\"%{Referer}i\\\" \\\"%{User-Agent}i\\\"\" combined\nCustomLog /dev/null combined\n";

/// Rules of WordPress, which show `index.php` for names that do not exist.
const WORDPRESS: &str = "RewriteRule .* - [E=HTTP_AUTHORIZATION:%{HTTP:Authorization}]\n\
    RewriteBase /rules/\nRewriteRule ^index\\.php$ - [L]\n\
    RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\n\
    RewriteRule . /rules/index.php [L]\n";

/// Rules that redirect pages below `start`.
fn redirects(start: &str, count: usize) -> String {
    let line = |number| format!("RewriteRule {start}/page-{number}$ /new/{number} [R=301,L]\n");
    (0..count).map(line).collect()
}

/// Length of the requested file.
pub(crate) const FILE_BYTES: usize = 1024;

/// The pause between requests: long enough for the server to sleep, so that each request is one
/// turn of its loop. Without it the client is sometimes faster, sometimes slower than the next
/// receive.
pub(crate) const PAUSE: Duration = Duration::from_micros(700);

/// The file's age; a file that was just written is not cached.
const FILE_AGE: Duration = Duration::from_secs(3600);

/// An `.htaccess` file that changed more recently is read for each request.
const RULES_AGE: Duration = Duration::from_millis(1100);

/// A server that is ready to start, and a client that waits for it.
pub struct Rig {
    folder: PathBuf,
    server: Arc<Server>,
    listener: TcpListener,
    client: JoinHandle<io::Result<u64>>,
}

impl Rig {
    /// Returns a server with all modules active, and a client that will send `requests` requests on
    /// one connection.
    ///
    /// # Errors
    /// Files and sockets can't be created, or the configuration is invalid.
    pub fn new(requests: u32, heads: Heads) -> io::Result<Rig> {
        let folder = folder(heads)?;
        if heads.has_rules() {
            std::thread::sleep(RULES_AGE);
        }
        let server = Arc::new(read(&folder)?);
        let opened = server.sinks.open(&mut LogOpener::alone(&mut PipedLogs::default()));
        opened.map_err(|(_, error)| error)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let client = std::thread::spawn(move || ask(address, requests, heads));
        Ok(Rig { folder, server, listener, client })
    }

    /// Serves the client's connection to its end.
    ///
    /// # Errors
    /// Those of the loop and the accept.
    pub fn serve(self) -> io::Result<Served> {
        let Rig { folder, server, listener, client } = self;
        let (scoreboard, slot) = Scoreboard::of_one_loop()?;
        let watcher = Arc::new(Watcher::new()?);
        let configuration = server.clone();
        let outcome = Loop::new("counted").watcher(watcher).start(async move |handle| {
            let service = Service::new(Engine::new(server, handle, slot, scoreboard));
            let acceptor = Acceptor::from_fd(OwnedFd::from(listener))?;
            let accepted = acceptor.accept().await.map_err(io::Error::other)?;
            connection::serve(service, accepted).await;
            Ok(())
        })?;
        outcome.map(|()| Served { folder, client, configuration })
    }
}

/// The result, after the server has ended.
pub struct Served {
    folder: PathBuf,
    client: JoinHandle<io::Result<u64>>,
    /// Freed after the measurement: it has thousands of parts, more with every module.
    configuration: Arc<Server>,
}

impl Served {
    /// The number of bytes that the client received. Removes the folder.
    ///
    /// # Errors
    /// Those of the client.
    pub fn finish(self) -> io::Result<u64> {
        let Served { folder, client, configuration } = self;
        drop(configuration);
        let received = client.join().map_err(|_| io::ErrorKind::Other)?;
        std::fs::remove_dir_all(&folder)?;
        received
    }
}

/// Creates a folder with the file and the configuration, where file watches are reliable: in memory
/// if the system has such a folder, since the temporary one may be on an overlay.
fn folder(heads: Heads) -> io::Result<PathBuf> {
    let behind = if heads.is_forwarded() { behind::start(heads)? } else { 0 };
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    let folder = base.join(format!("tamarack-instructions-{}", std::process::id()));
    for name in ["htdocs/folder", "htdocs/rules"] {
        std::fs::create_dir_all(folder.join(name))?;
    }
    for name in ["htdocs/small.txt", "htdocs/rules/small.txt", "htdocs/rules/index.php"] {
        let file = folder.join(name);
        std::fs::write(&file, vec![b'x'; FILE_BYTES])?;
        let file = std::fs::File::options().write(true).open(file)?;
        file.set_modified(SystemTime::now() - FILE_AGE)?;
    }
    let rules = format!("RewriteEngine On\n{}{WORDPRESS}", redirects("^old", 100));
    std::fs::write(folder.join("htdocs/rules/.htaccess"), rules)?;
    // Extended status notes a request once a millisecond, so the count would depend on the clock.
    let text = format!(
        "ServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:8080\n\
         DocumentRoot {folder}/htdocs\nErrorLog {folder}/error.log\nLogLevel crit\n\
         MaxKeepAliveRequests 0\nKeepAliveTimeout 60\nExtendedStatus Off\n\
         <Directory />\nAllowOverride None\nRequire all granted\n</Directory>\n\
         <Directory {folder}/htdocs/rules>\nAllowOverride All\nOptions FollowSymLinks\n\
         </Directory>\n{}",
        heads.configuration(behind),
        folder = folder.display()
    );
    std::fs::write(folder.join("httpd.conf"), text)?;
    Ok(folder)
}

/// Reads the configuration as `tamarack` does for one without LoadModule.
fn read(folder: &Path) -> io::Result<Server> {
    let registry = Arc::new(Registry::new(modules::unnamed()));
    let options = conf::Options { server_root: folder.into(), ..conf::Options::default() };
    let file = folder.join("httpd.conf");
    let (tree, mut found) = conf::read_config(&file, &options, &mut Everything(registry.clone()));
    let (server, more, _) = Build::new(registry, &tree, true).finish(&tree.nodes);
    found.extend(more);
    server.ok_or_else(|| {
        let messages: Vec<String> = found.into_iter().map(|one| one.message).collect();
        io::Error::other(messages.join("; "))
    })
}

/// A host in which every module is active.
struct Everything(Arc<Registry>);

impl conf::Host for Everything {
    fn module_active(&self, name: &conf::BStr) -> bool {
        self.0.is_active(&name.to_string())
    }

    fn directive_known(&self, name: &conf::BStr) -> bool {
        self.0.row(&name.to_string()).is_some()
    }

    fn load_module(&mut self, _: &conf::Arg, _: &Path) -> Result<(), Box<conf::Diagnostic>> {
        Ok(())
    }
}

/// Sends `requests` requests, each after the complete response to the one before; returns the bytes
/// received.
fn ask(address: SocketAddr, requests: u32, heads: Heads) -> io::Result<u64> {
    if heads == Heads::Streams {
        return streams::ask(address, requests);
    }
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut total = 0;
    let mut buffer = [0; 4096];
    for number in 0..requests {
        stream.write_all(heads.head(number).as_bytes())?;
        total += response(&mut stream, &mut buffer, heads.status())? as u64;
        std::thread::sleep(PAUSE);
    }
    Ok(total)
}

/// Receives a response: its head and the announced length.
fn response(stream: &mut TcpStream, buffer: &mut [u8; 4096], status: &str) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let free = buffer.get_mut(length..).ok_or(io::ErrorKind::InvalidData)?;
        let count = stream.read(free)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        length += count;
        let text = buffer.get(..length).unwrap_or_default();
        let head = text.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let Some(head) = head.and_then(|end| text.get(..end + 4)) else { continue };
        let head = String::from_utf8_lossy(head);
        if length >= head.len() + announced(&head) {
            let good = head.starts_with(&format!("HTTP/1.1 {status} "));
            return if good { Ok(length) } else { Err(io::Error::other(head.into_owned())) };
        }
    }
}

/// The length of the body that a head announces.
fn announced(head: &str) -> usize {
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}
