//! A page of 200 assets over HTTP/2, opened in chromium and in Firefox.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use crate::browser::{Browser, Page};
use crate::firefox::{self, Firefox};
use crate::metrics;
use crate::site::Site;
use crate::tls::Tls;

const ASSETS: usize = 200;

/// The public key of the server's certificate, which chromium is to trust: where it ignores an
/// error of a certificate, it keeps no responses in its cache.
///
/// `openssl x509 -in tests/tls/server.pem -noout -pubkey | openssl pkey -pubin -outform der |
/// openssl dgst -sha256 -binary | base64`
const KEY: &str = "gy30gYkeanI5kudnKuq/+4isybKrYIXCidCy8sAoMb8=";

/// Counts what has arrived as it should: each kind of asset shows its number.
const CHECK: &str = r"
Promise.all(data).then(data => {
  const style = getComputedStyle(document.documentElement);
  const right = [
    numbers.filter(number => style.getPropertyValue('--a' + number).trim() === String(number)),
    [...scripts],
    [...document.images].filter(image => image.naturalWidth === Number(image.alt)),
    data.filter(([number, body]) => body.number === number),
  ];
  return right.map(found => found.length);
})";

/// What the browser has noted of its requests.
const NETWORK: &str = "performance.getEntriesByType('resource').map(entry => \
     [entry.nextHopProtocol, entry.responseStatus, entry.decodedBodySize, \
     decodeURI(entry.name).replace(location.origin, '')])";

const CHAT: &str = "new Promise((done, failed) => {
  const chat = new WebSocket('wss://' + location.host + '/chat');
  chat.onopen = () => chat.send('hello');
  chat.onmessage = message => { chat.close(); done(message.data); };
  chat.onerror = () => failed('no WebSocket');
})";

/// The page, and its assets with their sizes: a style, a script, an image and data in turn.
fn write_page(site: &Site) -> BTreeMap<String, usize> {
    let mut sizes = BTreeMap::new();
    let (mut head, mut body, mut numbers) = (String::new(), String::new(), Vec::new());
    for number in 1..=ASSETS {
        // From 40 bytes to 40 KiB.
        let padding = " ".repeat(number * number);
        let (kind, text) = match number % 4 {
            1 => ("css", format!(":root {{ --a{number}: {number} }}{padding}")),
            2 => ("js", format!("scripts.add({number});{padding}")),
            3 => (
                "svg",
                format!(
                    "<svg xmlns='http://www.w3.org/2000/svg' width='{number}' height='1'>\
                     {padding}</svg>"
                ),
            ),
            _ => ("json", format!("{{\"number\": {number}}}{padding}")),
        };
        let path = format!("/{number}.{kind}");
        site.write(&format!("htdocs{path}"), &text);
        let line = match kind {
            "css" => {
                numbers.push(number);
                writeln!(head, "<link rel=stylesheet href='{path}'>")
            }
            "js" => writeln!(head, "<script src='{path}'></script>"),
            "svg" => writeln!(body, "<img src='{path}' alt='{number}'>"),
            _ => writeln!(
                body,
                "<script>data.push(fetch('{path}').then(answer => answer.json())\
                 .then(body => [{number}, body]));</script>"
            ),
        };
        line.unwrap();
        sizes.insert(path, text.len());
    }
    site.write(
        "htdocs/index.html",
        &format!(
            "<!DOCTYPE html><html><head><title>Assets</title><link rel=icon href='data:,'>\
             <script>const scripts = new Set, data = [], numbers = {numbers:?};\
             performance.setResourceTimingBufferSize(1000);</script>\n\
             {head}</head><body>\n{body}</body></html>\n"
        ),
    );
    sizes
}

/// A server of WebSockets that sends each short message back.
fn echoing() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            // A client that leaves ends its conversation alone.
            let _ = echo(socket.unwrap());
        }
    });
    port
}

fn echo(mut socket: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    socket.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: x\r\n\r\n",
    )?;
    loop {
        // RFC 6455, section 5.2: the kind, the length, and the mask of a client's frame.
        let mut start = [0; 6];
        socket.read_exact(&mut start)?;
        let [kind, length, mask @ ..] = start;
        let mut payload = vec![0; usize::from(length & 0x7f)];
        socket.read_exact(&mut payload)?;
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        socket.write_all(&[&[kind, length & 0x7f][..], &payload].concat())?;
    }
}

fn assets(name: &str) -> (Site, BTreeMap<String, usize>) {
    let mut site = Site::new(name);
    let sizes = write_page(&site);
    site.configure(&format!(
        "{}Protocols h2 http/1.1\nH2WebSockets on\nTypesConfig /dev/null\n\
         AddType text/html .html\nAddType text/css .css\nAddType text/javascript .js\n\
         AddType image/svg+xml .svg\nAddType application/json .json\n\
         Header set Cache-Control no-cache\nProxyPass /chat ws://127.0.0.1:{}/chat\n\
         CustomLog logs/access.log \"%H %>s;%{{remote}}p;%U\"\n",
        Tls::configuration("server.key"),
        echoing()
    ));
    site.start();
    (site, sizes)
}

/// Waits until all is logged. Returns the protocols and statuses of each path, and the clients'
/// ports.
fn logged(site: &Site) -> (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) {
    let read = || std::fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    let lines = 2 * (ASSETS + 1) + 1;
    site.wait_until("all requests are logged", || {
        read().lines().count() >= lines && read().contains(";/chat\n")
    });
    let (mut paths, mut ports) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeSet::new());
    for line in read().lines() {
        let [kind, port, path] = line.split(';').collect::<Vec<_>>()[..] else { panic!("{line}") };
        paths.entry(path.to_owned()).or_default().insert(kind.to_owned());
        ports.insert(port.to_owned());
    }
    (paths, ports)
}

/// Opens the page twice and talks over a WebSocket.
fn visit(site: &Site, sizes: &BTreeMap<String, usize>, page: &mut impl Page) {
    let quarter = ASSETS / 4;
    for visit in 1..=2 {
        page.go(&format!("https://localhost:{}/", site.port));
        assert_eq!(page.value(CHECK), json!([quarter, quarter, quarter, quarter]));
        let network = page.value(NETWORK);
        let network = network.as_array().unwrap();
        // Firefox notes a style again when the page uses it.
        let paths: BTreeSet<&str> =
            network.iter().map(|entry| entry[3].as_str().unwrap()).collect();
        assert_eq!(paths.len(), ASSETS, "{paths:?}");
        for entry in network {
            let path = entry[3].as_str().unwrap();
            // A response in the browser's cache keeps its own status when a 304 confirms it.
            assert_eq!((&entry[0], &entry[1]), (&json!("h2"), &json!(200)), "{visit}: {entry}");
            assert!(visit > 1 || entry[2] == sizes[path], "{entry}");
        }
    }
    assert_eq!(page.value(CHAT), "hello");
    let (mut paths, ports) = logged(site);
    assert!(paths.remove("/chat").is_some());
    let answers = BTreeSet::from(["HTTP/2.0 200".to_owned(), "HTTP/2.0 304".to_owned()]);
    assert!(paths.values().all(|found| *found == answers), "{paths:#?}");
    assert_eq!((paths.len(), ports.len()), (ASSETS + 1, 1), "{ports:?}");
    assert_eq!(site.error_log().matches("error]").count(), 0, "{}", site.error_log());
}

#[test]
fn chromium_opens_a_page_of_200_assets() {
    let Some(program) = metrics::browser() else {
        eprintln!("skipped: HTTP/2 is not tried in chromium, because it is not installed");
        return;
    };
    let (site, sizes) = assets("h2-chromium");
    let trust = format!("--ignore-certificate-errors-spki-list={KEY}");
    let mut browser = Browser::start_with(&program, &site.path("browser"), &[&trust]);
    visit(&site, &sizes, &mut browser);
    let troubles = browser.troubles();
    assert!(troubles.is_empty(), "{troubles:#?}");
}

#[test]
fn firefox_opens_a_page_of_200_assets() {
    let Some(program) = firefox::program() else {
        eprintln!("skipped: HTTP/2 is not tried in Firefox, because it is not installed");
        return;
    };
    let (site, sizes) = assets("h2-firefox");
    let mut browser = Firefox::start(&program, &site.path("browser"));
    visit(&site, &sizes, &mut browser);
}
