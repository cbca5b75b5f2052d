//! mod_wsgi: requests that the extension serves without code of the worker see what others see.

use crate::client::Client;
use crate::site::Site;
use crate::wsgi::configuration;

const SCRIPT: &str = "
import threading
import gc
import mod_wsgi
import weakref

gc.disable()
KEPT = []
WATCHED = weakref.WeakKeyDictionary()

def keep(environ, start_response):
    KEPT.append((environ, start_response))
    return 'kept'

def watch(environ, start_response):
    WATCHED[environ['wsgi.errors']] = WATCHED[start_response] = True
    return 'watched'

def drop(environ, start_response):
    'Writes a line without an end once the environ is gone.'
    environ['dropped'] = Dropped()
    return 'dropped'

class Dropped:
    lost = 0
    def __del__(self):
        print('a line of a destructor', end='')
        Dropped.lost += 1

def cycles(environ, start_response):
    return '%d' % Dropped.lost

def raises(environ, start_response):
    dropped = Dropped()
    raise ValueError('with a local object')

def unbind(environ, start_response):
    global application
    application = None
    return 'unbound'

def mark(environ, start_response):
    environ['wsgi.errors'].mark = 'left'
    mod_wsgi.request_data()['mark'] = 'left'
    try:
        environ['wsgi.input'].mark = 'left'
    except AttributeError:
        return 'marked'
    return 'an input with attributes'

def look(environ, start_response):
    'Whether an earlier request has left anything, and what its objects do now.'
    found = [name for name in ('wsgi.errors', 'wsgi.input')
             if any(environ[name] is kept[name] for kept, _ in KEPT)]
    if hasattr(environ['wsgi.errors'], 'mark') or mod_wsgi.request_data():
        found.append('mark')
    if environ['wsgi.errors'] in WATCHED or start_response in WATCHED:
        found.append('weak reference')
    for kept, start in KEPT:
        if start is start_response:
            found.append('start_response')
        found += [kept['wsgi.input'].read().decode()] if kept['wsgi.input'].read() else []
        kept['wsgi.errors'].write('a late line\\n')
        start('500 Late', [('X-Late', '1')])
    return 'found: %s' % ' '.join(found)

def shown(environ, start_response):
    fields = {name: value for name, value in environ.items() if name.startswith('HTTP_X_')}
    return repr(sorted(fields.items()) + [environ['QUERY_STRING'], environ['PATH_INFO']])

def fail(environ, start_response):
    print('a line without an end', end='', file=environ['wsgi.errors'])
    raise ValueError('on purpose')

def leave(environ, start_response):
    raise SystemExit

def count(environ, start_response):
    return '%d %d' % (environ['mod_wsgi.thread_requests'], environ['mod_wsgi.total_requests'])

def numbers(environ, start_response):
    metrics = mod_wsgi.process_metrics()
    return '%d %d' % (metrics['request_count'], metrics['active_requests'])

def log(environ, start_response):
    print('a line of', environ['REQUEST_METHOD'], environ['QUERY_STRING'])
    environ['wsgi.input'].read()
    return 'logged'

def pieces(environ, start_response):
    start_response('200 OK', [('X-Kind', 'pieces')])
    return iter([b'one ', b'', b'two'])

def written(environ, start_response):
    start_response('200 OK', [])(b'written ')
    return [b'by write']

PATHS = {'/keep': keep, '/mark': mark, '/look': look, '/fail': fail, '/leave': leave,
         '/watch': watch, '/drop': drop, '/cycles': cycles, '/raises': raises, '/unbind': unbind,
         '/count': count, '/log': log, '/numbers': numbers, '/pieces': pieces, '/written': written}

def application(environ, start_response):
    out = PATHS.get(environ['PATH_INFO'], shown)(environ, start_response)
    if not isinstance(out, str):
        return out
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [out.encode()]
";

const POST: &str = "POST /d/log?post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody";

/// One thread, so that a request follows another one on the same.
fn site(name: &str, options: &str) -> Site {
    let mut site = Site::new(name);
    site.write("app.wsgi", SCRIPT);
    site.configure(&configuration("event", options, ""));
    site.start();
    site
}

fn text(client: &mut Client, path: &str) -> String {
    client.get(path).unwrap().text()
}

#[test]
fn what_an_application_keeps_belongs_to_its_request() {
    let site = site("wsgi-kept", "threads=1");
    let mut client = site.client();
    for round in 0..3 {
        assert_eq!(text(&mut client, "/d/mark"), "marked");
        assert_eq!(text(&mut client, "/d/look"), "found: ", "{round}");
        assert_eq!(text(&mut client, "/d/watch"), "watched");
        assert_eq!(text(&mut client, "/d/look"), "found: ", "{round}");
        client.send(POST.as_bytes()).unwrap();
        assert_eq!(client.answer().unwrap().text(), "logged");
        assert_eq!(text(&mut client, "/d/keep"), "kept");
        for _ in 0..2 {
            assert_eq!(text(&mut client, "/d/look"), "found: ", "{round}");
        }
    }
    site.wait_for_line("a late line");
    assert_eq!(site.count_lines("SystemError"), 0, "{}", site.error_log());
}

#[test]
fn failures_and_odd_responses_are_those_of_the_worker() {
    let site = site("wsgi-odd", "threads=1");
    for _ in 0..3 {
        assert_eq!(site.get("/d/fail").status, 500);
        assert_eq!(site.get("/d/leave").status, 500);
        let mut client = site.client();
        assert_eq!(text(&mut client, "/d/pieces"), "one two");
        assert_eq!(text(&mut client, "/d/written"), "written by write");
    }
    site.wait_for_line("SystemExit exception raised by WSGI script");
    let log = site.error_log();
    assert_eq!(site.count_lines("ValueError: on purpose"), 3, "{log}");
    assert_eq!(site.count_lines("a line without an end"), 3, "{log}");
    let failure = log.split("Traceback").nth(1).unwrap_or_default();
    assert!(failure.contains("in application") && !failure.contains("<mod_wsgi>"), "{log}");
}

#[test]
fn what_a_failed_request_had_is_gone_at_once() {
    let site = site("wsgi-cycles", "threads=1");
    for _ in 0..5 {
        assert_eq!(site.get("/d/raises").status, 500);
    }
    assert_eq!(text(&mut site.client(), "/d/cycles"), "5");
    assert_eq!(text(&mut site.client(), "/d/drop"), "dropped");
    site.wait_for_line("a line of a destructor");
    // An application that is None is none.
    assert_eq!(text(&mut site.client(), "/d/unbind"), "unbound");
    assert_eq!(site.get("/d/count").status, 500);
    site.wait_for_line("does not contain WSGI application 'application'");
}

#[test]
fn requests_are_counted_once() {
    let site = site("wsgi-counted", "threads=1 maximum-requests=5");
    let mut client = site.client();
    let counts = (1..=5).map(|_| text(&mut client, "/d/count")).collect::<Vec<_>>();
    assert_eq!(counts, ["1 1", "2 2", "3 3", "4 4", "5 5"]);
    site.wait_for_line("Maximum requests reached");
    // Its successor counts from the beginning, once it is up.
    let is_new = (0..1000).any(|_| text(&mut client, "/d/numbers") == "1 1");
    assert!(is_new, "{}", site.error_log());
}

/// Whatever came before on the thread: a body, a script without the application, an odd response.
#[test]
fn lines_belong_to_the_request_that_writes_them() {
    let mut site = Site::new("wsgi-lines-of");
    site.write("app.wsgi", SCRIPT);
    let other = "WSGIScriptAlias /f app.wsgi process-group=site application-group=%{GLOBAL} \
                 callable-object=missing\n";
    site.configure(&configuration("event", "threads=1", other));
    site.start();
    let mut expected = Vec::new();
    for (round, before) in
        ["", "/d/log?first", "POST", "/f", "/d/pieces", "/d/fail"].iter().enumerate()
    {
        match *before {
            "" => {}
            "POST" => {
                let mut client = site.client();
                client.send(POST.as_bytes()).unwrap();
                assert_eq!(client.answer().unwrap().text(), "logged");
            }
            path => drop(site.get(path)),
        }
        assert_eq!(site.get(&format!("/d/log?after-{round}")).text(), "logged");
        expected.push(format!("a line of GET after-{round}"));
    }
    expected.extend(["a line of GET first".to_owned(), "a line of POST post".to_owned()]);
    for line in expected {
        site.wait_for_line(&line);
        let log = site.error_log();
        let whole = log.lines().find(|whole| whole.ends_with(&line)).unwrap_or_default();
        assert!(whole.contains("[client 127.0.0.1:"), "{line}: {log}");
    }
}

/// Values change their lengths, begin like others, and end early; fields come and go.
#[test]
fn an_environ_is_the_request_whatever_came_before() {
    let site = site("wsgi-environ", "threads=1");
    let mut client = site.client();
    let values = ["", "a", "ab", "abc", "b", "bc", "a b c", "abcabcabcabcabcabcabcabcabcabcabcabc"];
    let mut state = 12345u32;
    let mut next = |most: usize| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
        state as usize / 65536 % most
    };
    for round in 0..1500 {
        let value = |place: usize| values[place % values.len()];
        let (first, second, query) = (value(next(64)), value(next(64)), value(next(64)));
        let query = query.replace(' ', "+");
        let mut fields = vec![("X-A", first), ("X-B", second), ("X-Z", value(round / 200))];
        if next(8) == 0 {
            fields.remove(next(3));
        }
        let path = ["/p", "/path", "/pa", "/q"][next(4)];
        let lines = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let lines = lines.collect::<String>();
        let head = format!("GET /d{path}?{query} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
        client.send(head.as_bytes()).unwrap();
        let shown = fields
            .iter()
            .map(|(name, value)| format!("('HTTP_{}', '{value}')", name.replace('-', "_")));
        let shown = shown.chain([format!("'{query}'"), format!("'{path}'")]);
        let expected = format!("[{}]", shown.collect::<Vec<_>>().join(", "));
        assert_eq!(client.answer().unwrap().text(), expected, "{round}");
    }
}
