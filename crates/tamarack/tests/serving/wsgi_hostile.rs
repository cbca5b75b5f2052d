//! mod_wsgi: applications that do odd things to their process, to the memory that it shares with
//! the server, or to the interface.

use std::time::{Duration, Instant};

use crate::client::Client;
use crate::site::Site;
use crate::wsgi::{configuration, process, under_load};

/// Some odd things.
const ODD: &str = "
import fcntl, gc, os, threading, time

class Slow:
    'Needs a collection of garbage, and gives the lock up in it.'
    def __init__(self):
        self.me = self
    def __del__(self):
        time.sleep(0.0003)

KEEP = []

def jam():
    'Fills the bells of all loops, and has writes to them wait.'
    for name in os.listdir('/proc/self/fd'):
        try:
            if 'eventfd' not in os.readlink('/proc/self/fd/' + name):
                continue
        except OSError:
            continue
        number = int(name)
        fcntl.fcntl(number, fcntl.F_SETFL,
                    fcntl.fcntl(number, fcntl.F_GETFL) & ~os.O_NONBLOCK)
        with open('/proc/self/fdinfo/' + name) as file:
            count = int(file.read().split('eventfd-count:')[1].split()[0], 16)
        os.write(number, (2 ** 64 - 2 - count).to_bytes(8, 'little'))
    os._exit(1)

def read_by_threads(file):
    'Reads with several threads at once, each in a way of its own; returns how much came.'
    counts = []
    def read(how):
        count = 0
        while True:
            data = how()
            if not data:
                return counts.append(count)
            count += len(data)
    hows = [lambda: file.read(1000), lambda: file.readline(500), lambda: file.read(100000),
            file.readline]
    threads = [threading.Thread(target=read, args=(how,)) for how in hows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)

def application(environ, start_response):
    path = environ['PATH_INFO'].strip('/')
    fields = [('Content-Type', 'text/plain')]
    out = 'done'
    if path == 'jam':
        jam()
    elif path == 'garbage':
        gc.set_threshold(1)
        KEEP.extend({} for _ in range(30))
        if len(KEEP) > 100000:
            KEEP.clear()
        time.sleep(0.0005)
        Slow()
    elif path == 'line':
        began = time.monotonic()
        out = '%d' % len(environ['wsgi.input'].readline())
        assert time.monotonic() - began < 20
    elif path == 'lines':
        file = environ['wsgi.input']
        out = repr([file.readline(3), file.read(2), file.readline(), file.read(0),
                    file.readline(0), file.readlines(1), file.read(1), file.read()])
    elif path == 'sizes':
        file, pieces, short = environ['wsgi.input'], [], 0
        while not pieces or pieces[-1]:
            for how in (lambda: file.read(1), lambda: file.read(65536), lambda: file.readline(70),
                        lambda: file.read(100000), lambda: file.read(4096)):
                pieces.append(how())
                short += len(pieces[-1]) not in (1, 65536, 70, 100000, 4096)
        data = b''.join(pieces)
        out = '%d %d %s' % (len(data), short, data == b'0123456789' * (len(data) // 10))
    elif path == 'threads':
        out = '%d' % read_by_threads(environ['wsgi.input'])
    elif path == 'fields':
        fields += [('X-%d' % i, 'x' * 1000) for i in range(40)]
    elif path == 'field':
        fields.append(('X-Long', 'x' * 33000))
    elif path == 'read':
        environ['wsgi.input'].read()
    elif path == 'log':
        print('a' * 20000 + 'z', file=environ['wsgi.errors'])
    elif path == 'short':
        fields.append(('Content-Length', '10'))
    start_response('200 OK', fields)
    return late() if path == 'late' else [out.encode()]

def late():
    yield b'one'
    raise ValueError('late')
";

fn site(name: &str, options: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    site.write("app.wsgi", ODD);
    site.write("other.wsgi", crate::wsgi::SCRIPT);
    site.configure(&configuration("event", options, more));
    site.start();
    site
}

fn post(path: &str, length: usize, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n{more}\r\n")
}

/// Sends a body of which the server may not take all.
fn sent(client: &mut Client, head: &str, body: &[u8]) -> crate::client::Answer {
    client.send(head.as_bytes()).unwrap();
    client.send(body).unwrap();
    client.answer().unwrap()
}

const OTHER: &str = "WSGIDaemonProcess other threads=2\n\
    WSGIScriptAlias /other other.wsgi process-group=other application-group=%{GLOBAL}\n";

#[test]
fn an_application_that_jams_its_bells_stops_no_other_group() {
    let site = site("wsgi-jam", "threads=2", OTHER);
    process(&mut site.client(), "/other/");
    for _ in 0..2 {
        assert_eq!(site.get("/d/jam").status, 502, "{}", site.error_log());
    }
    // The companion ends and starts processes of the others as before.
    let (before, _) = process(&mut site.client(), "/other/");
    let touched = crate::wsgi::SCRIPT.replace("'one'", "'touched'");
    site.write("new.wsgi", &touched);
    std::fs::rename(site.path("new.wsgi"), site.path("other.wsgi")).unwrap();
    let mut client = site.client();
    client.give_up_after(Duration::from_secs(10));
    let (after, version) = process(&mut client, "/other/");
    assert_eq!(version, "touched");
    assert_ne!(before, after);
}

#[test]
fn garbage_that_gives_up_the_lock_costs_no_request() {
    let site = site("wsgi-garbage-collected", "threads=8", "");
    let count = under_load(&site, 8, "/d/garbage", || std::thread::sleep(Duration::from_secs(5)));
    assert!(count > 100, "{count}");
    assert_eq!(site.count_lines("was ended by"), 0, "{}", site.error_log());
    assert_eq!(site.count_lines("panicked"), 0, "{}", site.error_log());
}

#[test]
fn a_long_line_is_read_in_linear_time() {
    let site = site("wsgi-line", "threads=2", "");
    let body = vec![b'x'; 30_000_000];
    for path in ["/d/line", "/e/line"] {
        let answer = sent(&mut site.client(), &post(path, body.len(), ""), &body);
        assert_eq!((answer.status, answer.text().as_str()), (200, "30000000"), "{path}");
    }
}

#[test]
fn lines_and_pieces_may_be_mixed() {
    let site = site("wsgi-lines", "threads=2", "");
    let body = b"one\ntwo\nthree\nfour\nfive\n\nsix";
    let expected =
        "[b'one', b'\\nt', b'wo\\n', b'', b'', [b'three\\n'], b'f', b'our\\nfive\\n\\nsix']";
    for path in ["/d/lines", "/e/lines"] {
        let answer = sent(&mut site.client(), &post(path, body.len(), ""), body);
        assert_eq!((answer.status, answer.text().as_str()), (200, expected), "{path}");
    }
}

#[test]
fn reads_give_as_much_as_they_are_asked_for() {
    let site = site("wsgi-sizes", "threads=2", "");
    let body = b"0123456789".repeat(100_000);
    // After the last of the body, the rest of a round gives nothing.
    let expected = "1000000 ";
    for path in ["/d/sizes", "/e/sizes"] {
        for piece in [1000, 65536, 300_000, body.len()] {
            let mut client = site.client();
            client.send(post(path, body.len(), "").as_bytes()).unwrap();
            body.chunks(piece).for_each(|piece| client.send(piece).unwrap());
            let answer = client.answer().unwrap();
            let text = answer.text();
            let short = text.strip_prefix(expected).and_then(|rest| rest.strip_suffix(" True"));
            let short = short.and_then(|short| short.parse::<usize>().ok());
            // The last piece, and the reads behind it.
            assert!(short.is_some_and(|short| short <= 10), "{path}, {piece}: {text}");
        }
    }
}

#[test]
fn threads_that_read_at_once_lose_nothing() {
    let site = site("wsgi-reading-threads", "threads=2", "");
    let line = [vec![b'x'; 99], vec![b'\n']].concat();
    let body = line.repeat(20_000);
    for path in ["/d/threads", "/e/threads"] {
        let mut client = site.client();
        client.give_up_after(Duration::from_secs(30));
        let answer = sent(&mut client, &post(path, body.len(), ""), &body);
        assert_eq!((answer.status, answer.text().as_str()), (200, "2000000"), "{path}");
    }
}

#[test]
fn the_limit_of_a_field_is_none_of_the_head() {
    let site = site("wsgi-fields", "threads=2", "");
    for (path, status) in [("/d/fields", 200), ("/e/fields", 200), ("/d/field", 500)] {
        assert_eq!(site.get(path).status, status, "{path}: {}", site.error_log());
    }
    assert_eq!(site.get("/e/field").status, 200, "{}", site.error_log());
}

#[test]
fn what_came_before_a_failure_arrives_and_is_not_taken_for_complete() {
    let site = site("wsgi-late", "threads=2", "");
    for path in ["/d/late", "/e/late"] {
        for _ in 0..20 {
            let mut client = site.client();
            client.ask(path).unwrap();
            let head = client.head().unwrap();
            assert_eq!(head.field("Transfer-Encoding"), Some("chunked"), "{}", head.head);
            assert_eq!(client.take(8).unwrap(), b"3\r\none\r\n");
            assert!(client.is_closed(), "{path}");
        }
    }
    for path in ["/d/short", "/e/short"] {
        for _ in 0..20 {
            let mut client = site.client();
            client.ask(path).unwrap();
            let head = client.head().unwrap();
            assert_eq!(head.field("Content-Length"), Some("10"), "{}", head.head);
            assert_eq!(client.take(4).unwrap(), b"done");
            assert!(client.is_closed(), "{path}");
        }
    }
}

#[test]
fn a_daemon_process_is_given_a_body_that_it_does_not_read() {
    let site = site("wsgi-unread", "threads=2", "");
    let body = vec![b'x'; 100_000];
    let mut client = site.client();
    let head = post("/d/none", body.len(), "Expect: 100-continue\r\n");
    client.send(head.as_bytes()).unwrap();
    assert_eq!(client.answer().unwrap().status, 100);
    let answer = sent(&mut client, "", &body);
    assert_eq!(answer.status, 200);
    assert!(!answer.closes(), "{}", answer.head);
    assert_eq!(client.get("/d/none").unwrap().status, 200);
}

#[test]
fn memory_that_a_process_may_not_map_is_no_fault() {
    let options = "threads=2 listen-backlog=4000 virtual-memory-limit=180000000";
    let site = site("wsgi-mapped", options, "");
    for _ in 0..3 {
        assert_eq!(site.get("/d/none").status, 200, "{}", site.error_log());
    }
    assert_eq!(site.count_lines("Bad file descriptor"), 0, "{}", site.error_log());
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let site = site(
        "wsgi-home",
        "threads=2",
        "WSGIDaemonProcess m home=/nonexistent\n\
        WSGIScriptAlias /m app.wsgi process-group=m application-group=%{GLOBAL}\n",
    );
    let mut client = site.client();
    client.ask("/m/none").unwrap();
    site.wait_for_line("can't change to the folder '/nonexistent': No such file or directory");
}

#[test]
fn a_client_that_leaves_or_stalls_is_an_error_of_the_application() {
    let mut site = Site::new("wsgi-stall");
    site.write("app.wsgi", ODD);
    let more = format!("{}Timeout 1\n", configuration("event", "threads=2", ""));
    site.configure(&more);
    site.start();
    process_is_up(&site);
    for (path, status) in [("/e/read", 500), ("/d/read", 408)] {
        let mut client = site.client();
        let began = Instant::now();
        client.send(post(path, 100, "").as_bytes()).unwrap();
        client.send(b"short").unwrap();
        assert_eq!(client.answer().unwrap().status, status, "{path}: {}", site.error_log());
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

fn process_is_up(site: &Site) {
    for path in ["/d/none", "/e/none"] {
        assert_eq!(site.get(path).status, 200, "{path}: {}", site.error_log());
    }
}

#[test]
fn a_long_line_of_the_log_is_one_line() {
    let site = site("wsgi-log", "threads=2", "");
    for path in ["/d/log", "/e/log"] {
        assert_eq!(site.get(path).status, 200);
    }
    site.wait_for_line("aaaaaaaa");
    assert_eq!(site.count_lines("aaaaaaaa"), 2);
}
