//! mod_wsgi with a Python that can run without its lock: where one is installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::site::{PROGRAM, Site};
use crate::wsgi_versions::others;

/// Counts what threads share, logs from a thread of its own, and answers in several ways.
const SCRIPT: &str = r"
import mod_wsgi, os, sys, threading
lock, kept = threading.Lock(), {}

def later(environ, number):
    for turn in range(5):
        print('line %s-%d' % (number, turn), file=environ['wsgi.errors'])

def application(environ, start_response):
    if environ['PATH_INFO'] == '/lock':
        out = '%s %d' % (sys._is_gil_enabled(), environ['mod_wsgi.total_requests'])
        start_response('200 OK', [])
        return [out.encode()]
    number = environ['QUERY_STRING']
    helper = threading.Thread(target=later, args=(environ, number))
    helper.start()
    body = environ['wsgi.input'].read()
    assert body == number.encode() * 20000
    with lock:
        kept.setdefault(number, []).append(len(body))
    out = ('%s %d' % (number, len(kept[number]))).encode()
    headers = [('X-Number', number)]
    other = ('X-Other', number)
    others = [threading.Thread(target=headers.append, args=(other,)) for _ in range(2)]
    for other in others:
        other.start()
    write = start_response('200 OK', headers)
    if int(number) % 3 == 0:
        write(out)
        out = b''
    for thread in [helper, *others]:
        thread.join()
    return iter([out]) if int(number) % 3 == 1 else [out]
";

/// An interpreter that can run without its lock, for which the extension has been built; `None` if
/// there is none.
fn free() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let (_, program) = others().into_iter().find(|(version, _)| version.ends_with('t'))?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let target = Path::new(PROGRAM).ancestors().nth(2).unwrap();
        let built = Command::new(root.join("make/extension"))
            .arg(&program)
            .arg("debug")
            .env("CARGO_TARGET_DIR", target)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(program)
    });
    if found.is_none() {
        eprintln!("skipped: no free-threaded Python from 3.14 on; OTHER_PYTHONS could name one");
    }
    found.as_deref()
}

/// A site with the script in two application groups, one of them in embedded mode.
fn site(python: &Path, more: &str) -> Site {
    let site = Site::new("wsgi-free");
    let place = site.root.join("venv");
    let made = Command::new(python).args(["-m", "venv", "--without-pip"]).arg(&place).output();
    assert!(made.unwrap().status.success());
    site.write("app.wsgi", SCRIPT);
    let shown = place.display();
    site.configure(&format!(
        "LoadModule mpm_event_module modules/mod_mpm_event.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule wsgi_module modules/mod_wsgi.so\nLogLevel info\n\
         WSGIPythonHome {shown}\nWSGIDaemonProcess site python-home={shown} threads=8\n\
         WSGIScriptAlias /d app.wsgi process-group=site application-group=%{{GLOBAL}}\n\
         WSGIScriptAlias /e app.wsgi\n{more}\n"
    ));
    site
}

/// Sends 8 × 60 requests at the same time.
fn crowd(site: &Site) {
    std::thread::scope(|scope| {
        for client_number in 0..8 {
            scope.spawn(move || {
                let mut client = site.client();
                for turn in 1..=60 {
                    let number = format!("{}", 100 + client_number);
                    let body = number.repeat(20000);
                    let length = body.len();
                    let head = format!(
                        "POST /d/?{number} HTTP/1.1\r\nHost: localhost\r\n\
                         Content-Length: {length}\r\n\r\n"
                    );
                    client.send(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
                    let answer = client.answer().unwrap();
                    let expected = format!("{number} {turn}");
                    assert_eq!((answer.status, answer.text()), (200, expected));
                    assert_eq!(answer.field("X-Number"), Some(&*number));
                }
            });
        }
    });
}

#[test]
fn threads_run_without_the_lock_if_that_is_configured() {
    let Some(python) = free() else { return };
    let mut site = site(python, "WSGIFreeThreading On");
    site.start();
    crowd(&site);
    assert_eq!(site.get("/d/lock").text(), "False 481");
    assert_eq!(site.get("/e/lock").text(), "False 1");
    // The log has every line of the threads, and no complaint.
    site.wait_until("all lines", || site.count_lines("line 1") == 8 * 60 * 5);
    for text in ["can't use the extension", "WSGI0200", "Traceback", " was ended by "] {
        assert_eq!(site.count_lines(text), 0, "{text}");
    }
}

#[test]
fn threads_run_under_the_lock_otherwise() {
    let Some(python) = free() else { return };
    let more = "<WSGIInterpreterOptions process-group=other>\nWSGIFreeThreading On\n\
                </WSGIInterpreterOptions>";
    let mut site = site(python, more);
    site.start();
    crowd(&site);
    assert_eq!(site.get("/d/lock").text(), "True 481");
    assert_eq!(site.count_lines("can't use the extension"), 0);
}

#[test]
fn a_lock_that_is_on_all_the_same_is_told() {
    let Some(python) = free() else { return };
    let mut site = site(python, "WSGIFreeThreading On");
    let mut command = site.command();
    command.env("PYTHON_GIL", "1");
    site.start_by(command);
    assert_eq!(site.get("/d/lock").text(), "True 1");
    site.wait_for_line("WSGI0200: WSGIFreeThreading has no effect any more");
}

#[test]
fn a_python_with_a_lock_keeps_it() {
    let mut site = Site::new("wsgi-not-free");
    site.write("app.wsgi", "def application(e, s):\n    s('200 OK', [])\n    return [b'served']\n");
    site.configure(
        "LoadModule mpm_event_module modules/mod_mpm_event.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule wsgi_module modules/mod_wsgi.so\n\
         WSGIFreeThreading On\nWSGIScriptAlias / app.wsgi",
    );
    site.start();
    assert_eq!(site.get("/").text(), "served");
    site.wait_for_line("WSGI0200: WSGIFreeThreading has no effect: /usr/bin/python3");
}
