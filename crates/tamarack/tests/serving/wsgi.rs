//! mod_wsgi: processes of applications that are replaced, die, hang, or break the protocol.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::client::Client;
use crate::load::SetWhenDropped;
use crate::site::Site;

/// Answers with its process and its version; some paths cause faults.
pub const SCRIPT: &str = "
import os, time
VERSION = 'one'
def application(environ, start_response):
    path = environ['PATH_INFO'].strip('/')
    status = '200 OK'
    out = '%d %s %s' % (os.getpid(), VERSION, path)
    if path.startswith('sleep'):
        print('begins to sleep', file=environ['wsgi.errors'])
        time.sleep(float(path.split('/')[1]))
    elif path == 'die':
        os.kill(os.getpid(), 9)
    elif path == 'garbage':
        environ['wsgi.input']._wire.send([b'?garbage' * 100])
        time.sleep(1)
    elif path == 'split':
        head = b'200 OK\\0A\\0b\\r\\nC: d'
        environ['wsgi.input']._wire.send([b'H' + len(head).to_bytes(4, 'little') + head])
        time.sleep(1)
    elif path == 'torn':
        # Data before the head, and too long.
        environ['wsgi.input']._wire.send([b'D\\xff\\xff\\xff\\xff'])
        time.sleep(1)
    elif path == 'eat':
        out = 'x' * (1 << 30)
    elif path == 'work':
        sum(range(100000))
    elif path == 'lock':
        # C code that never gives the lock up.
        9 ** (9 ** 9)
    elif path == 'spin':
        while True:
            pass
    elif path == 'echo':
        out = environ['wsgi.input'].read().decode('latin-1')
    elif path == 'flood':
        out = 'x' * 20000000
    elif path == 'chatter':
        for i in range(5000):
            print('line', i, file=environ['wsgi.errors'])
    elif path == 'who':
        out = '%d %d %s %o' % (os.getuid(), os.getgid(), os.getcwd(), os.umask(0o22))
    body = out.encode('latin-1')
    start_response(status, [('Content-Type', 'text/plain'), ('Content-Length', str(len(body)))])
    return [body]
";

/// Shows what is in force.
const OPTIONS: &str = "
import os, signal, sys
def restricted(use):
    try:
        use()
    except OSError as error:
        return str(error)
def application(environ, start_response):
    import helper, mod_wsgi
    own = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out = ['%d' % os.getpid(), '%s %s %d %s %s %.3f' % (helper.NAME, os.environ.get('LANG'),
        sys.flags.optimize, sys.dont_write_bytecode, os.environ.get('PYTHONHASHSEED'),
        sys.getswitchinterval()),
        restricted(lambda: sys.stdin.read()), restricted(lambda: print('x')),
        '%s %r %d %s' % (mod_wsgi.process_group, mod_wsgi.application_group,
            mod_wsgi.threads_per_process, signal.getsignal(signal.SIGTERM) is own),
        str(environ['wsgi.multiprocess']), '']
    body = '\\n'.join(out).encode()
    start_response('200 OK', [('Content-Length', str(len(body)))])
    return [body]
";

pub fn configuration(mpm: &str, options: &str, more: &str) -> String {
    format!(
        "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule wsgi_module modules/mod_wsgi.so\nLogLevel info\n\
         WSGIDaemonProcess site {options}\n\
         WSGIScriptAlias /d app.wsgi process-group=site application-group=%{{GLOBAL}}\n\
         WSGIScriptAlias /e app.wsgi\n{more}\n"
    )
}

fn site(name: &str, options: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    site.write("app.wsgi", SCRIPT);
    site.configure(&configuration("event", options, more));
    site.start();
    site
}

/// The process that answers, and the version of its script.
pub fn process(client: &mut Client, path: &str) -> (Pid, String) {
    let answer = client.get(path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.head);
    let text = answer.text();
    let mut words = text.split(' ');
    let pid = words.next().unwrap().parse().unwrap();
    (Pid::from_raw(pid), words.next().unwrap_or_default().to_owned())
}

/// Sends requests on some connections until `change` returns; each must be answered with 200.
pub fn under_load(site: &Site, count: usize, path: &str, change: impl FnOnce()) -> usize {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let mut client = site.client();
                        for _ in 0..5 {
                            let answer = client.get(path).unwrap();
                            assert_eq!(answer.status, 200, "{}", site.error_log());
                            count += 1;
                            if answer.closes() {
                                break;
                            }
                        }
                    }
                    count
                })
            })
            .collect();
        let over = SetWhenDropped(&is_over);
        change();
        drop(over);
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    })
}

#[test]
fn the_request_after_a_touch_sees_the_new_script() {
    let site = site("wsgi-touch", "processes=2 threads=3", "");
    for path in ["/d/", "/e/"] {
        let count = under_load(&site, 8, path, || {
            for round in 0..10 {
                let version = format!("v{path}{round}");
                site.write("new.wsgi", &SCRIPT.replace("'one'", &format!("'{version}'")));
                fs::rename(site.path("new.wsgi"), site.path("app.wsgi")).unwrap();
                let mut client = site.client();
                for _ in 0..3 {
                    assert_eq!(process(&mut client, path).1, version);
                }
            }
        });
        assert!(count > 20, "{path}: {count}");
    }
}

#[test]
fn a_graceful_restart_loads_the_new_script_and_fails_no_request() {
    let site = site("wsgi-graceful", "processes=2 threads=3", "");
    under_load(&site, 8, "/d/", || {
        for _ in 0..4 {
            let (old, _) = process(&mut site.client(), "/d/");
            site.restart_gracefully();
            site.wait_until("a new process", || process(&mut site.client(), "/d/").0 != old);
        }
    });
}

#[test]
fn processes_are_replaced_after_their_requests() {
    let site = site("wsgi-maximum", "threads=2 maximum-requests=20", "");
    let mut client = site.client();
    let (first, _) = process(&mut client, "/d/");
    let mut seen = vec![first];
    under_load(&site, 8, "/d/", || {
        site.wait_until("three processes", || {
            let (pid, _) = process(&mut site.client(), "/d/");
            if !seen.contains(&pid) {
                seen.push(pid);
            }
            seen.len() > 3
        });
    });
    site.wait_until("the end of the first", || kill(first, None).is_err());
    assert!(site.count_lines("Maximum requests reached") >= 3);
}

#[test]
fn a_process_that_dies_costs_its_own_requests_only() {
    let site = site("wsgi-killed", "processes=2 threads=3", "");
    for round in 0..5 {
        let mut sleeping = site.client();
        sleeping.ask("/d/sleep/0.3").unwrap();
        let begun = Instant::now();
        assert_eq!(site.get("/d/die").status, 502, "{round}");
        for _ in 0..5 {
            process(&mut site.client(), "/d/");
            process(&mut site.client(), "/e/");
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        // It was with the process that died, or with the other one.
        let status = sleeping.answer().unwrap().status;
        assert!(matches!(status, 200 | 502), "{status}");
    }
    assert!(site.count_lines("Truncated or oversized response headers") >= 5);
    assert!(site.count_lines("was ended by SIGKILL") >= 5, "{}", site.error_log());
}

#[test]
fn what_is_no_response_reaches_no_client() {
    let site = site("wsgi-garbage", "threads=3", "");
    for path in ["/d/garbage", "/d/split", "/e/garbage", "/e/split"] {
        let answer = site.get(path);
        assert_eq!(answer.status, 502, "{path}");
        assert!(!answer.head.contains("C: d"), "{}", answer.head);
        process(&mut site.client(), "/d/");
    }
}

#[test]
fn requests_wait_no_longer_than_they_may() {
    // Long enough for a busy machine to send all requests before the first one is withdrawn.
    let site = site("wsgi-queue", "threads=1 listen-backlog=3 queue-timeout=4", "");
    process(&mut site.client(), "/d/");
    let mut running = site.client();
    running.ask("/d/sleep/15").unwrap();
    site.wait_for_line("begins to sleep");
    let begun = Instant::now();
    let mut clients: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = site.client();
            client.ask("/d/waits").unwrap();
            client
        })
        .collect();
    let mut statuses: Vec<u16> =
        clients.iter_mut().map(|client| client.answer().unwrap().status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [503, 503, 503, 503, 503, 504, 504, 504]);
    let waited = begun.elapsed();
    // The one that runs takes longer.
    assert!((Duration::from_millis(3900)..Duration::from_secs(14)).contains(&waited), "{waited:?}");
    assert_eq!(running.answer().unwrap().status, 200);
    // What was withdrawn does not run.
    process(&mut site.client(), "/d/");
    site.wait_for_line("took the request");
    site.wait_for_line("listener backlog limit was exceeded");
}

#[test]
fn a_request_that_takes_too_long_is_interrupted() {
    let site = site("wsgi-request", "threads=1 request-timeout=1 interrupt-timeout=5", "");
    let (before, _) = process(&mut site.client(), "/d/");
    assert_eq!(site.get("/d/spin").status, 504);
    assert_eq!(process(&mut site.client(), "/d/").0, before);
    site.wait_for_line("Request time limit exceeded");
}

#[test]
fn a_process_whose_request_takes_too_long_is_replaced() {
    let site = site("wsgi-limit", "threads=1 request-timeout=1 shutdown-timeout=1", "");
    let (before, _) = process(&mut site.client(), "/d/");
    assert_eq!(site.get("/d/spin").status, 502);
    assert_ne!(process(&mut site.client(), "/d/").0, before);
    site.wait_for_line("Daemon process request time limit exceeded");
}

#[test]
fn a_process_that_holds_the_lock_is_replaced() {
    let site = site("wsgi-deadlock", "threads=3 deadlock-timeout=1", "");
    let (before, _) = process(&mut site.client(), "/d/");
    assert_eq!(site.get("/d/lock").status, 502);
    assert_ne!(process(&mut site.client(), "/d/").0, before);
    site.wait_for_line("Daemon process deadlock timer expired");
}

#[test]
fn an_idle_process_is_replaced() {
    let site = site("wsgi-idle", "threads=2 inactivity-timeout=1", "");
    let (before, _) = process(&mut site.client(), "/d/");
    site.wait_until("its end", || kill(before, None).is_err());
    assert_ne!(process(&mut site.client(), "/d/").0, before);
    site.wait_for_line("idle inactivity timer expired");
}

#[test]
fn bodies_of_any_size_pass_in_all_shapes() {
    let body = "0123456789abcdef".repeat(1 << 16);
    for mpm in ["event", "worker", "prefork", "loop"] {
        let mut site = Site::new("wsgi-bodies");
        site.write("app.wsgi", SCRIPT);
        site.configure(&configuration(mpm, "threads=2", ""));
        site.start();
        for path in ["/d/echo", "/e/echo", "/d/ignore", "/e/ignore"] {
            let mut client = site.client();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            client.send(head.as_bytes()).unwrap();
            client.send(body.as_bytes()).unwrap();
            let answer = client.answer().unwrap();
            assert_eq!(answer.status, 200, "{mpm} {path}");
            if path.ends_with("echo") {
                assert!(answer.body == body.as_bytes(), "{mpm} {path}");
            }
            if !answer.closes() {
                process(&mut client, "/d/");
            }
        }
    }
}

#[test]
fn embedded_mode_grows_while_requests_wait() {
    let mut site = Site::new("wsgi-grows");
    site.write("app.wsgi", SCRIPT);
    site.configure(&configuration("prefork", "threads=2", "StartServers 8\nMinSpareServers 8\n"));
    site.start();
    process(&mut site.client(), "/e/");
    let begun = Instant::now();
    let mut clients: Vec<Client> = (0..6)
        .map(|_| {
            let mut client = site.client();
            client.ask("/e/sleep/2").unwrap();
            client
        })
        .collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.answer().unwrap().status, 200));
    // One after the other they would take twelve seconds.
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[test]
fn much_output_and_many_lines_delay_no_other_request() {
    let site = site("wsgi-flood", "threads=4", "");
    let mut clients: Vec<Client> = ["/d/flood", "/e/flood", "/d/chatter", "/e/chatter"]
        .map(|path| {
            let mut client = site.client();
            client.ask(path).unwrap();
            client
        })
        .into();
    for _ in 0..20 {
        let begun = Instant::now();
        process(&mut site.client(), "/d/");
        // They would wait forever for a client that has not read yet.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    let lengths: Vec<usize> =
        clients.iter_mut().map(|client| client.answer().unwrap().body.len()).collect();
    assert_eq!(lengths[..2], [20_000_000, 20_000_000]);
    site.wait_until("all lines", || site.count_lines("line 4999") == 2);
}

#[test]
fn a_group_has_its_own_user_folder_and_mask() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let site = site("wsgi-user", "user=www-data umask=027 home=/tmp", "");
    let user = nix::unistd::User::from_name("www-data").unwrap().unwrap();
    let expected = format!("{} {} /tmp 27", user.uid, user.gid);
    assert_eq!(site.get("/d/who").text(), expected, "{}", site.error_log());
}

#[test]
fn options_of_python_and_of_groups_are_in_force() {
    let mut site = Site::new("wsgi-options");
    fs::create_dir(site.path("lib")).unwrap();
    site.write("lib/helper.py", "NAME = 'helper'\n");
    site.write("app.wsgi", OPTIONS);
    let folder = site.root.display();
    site.write("service.py", &format!("open('{folder}/started', 'w').close()\n"));
    let options = format!(
        "display-name=%{{GROUP}} lang=C.UTF-8 python-path={folder}/lib switch-interval=0.02"
    );
    let more = "WSGIPythonOptimize 1\nWSGIDontWriteBytecode On\nWSGIPythonHashSeed 7\n\
                WSGIRestrictStdin On\nWSGIRestrictStdout On\nWSGISlowRequests 0.0001\n\
                WSGIDaemonProcess service threads=0\n\
                WSGIImportScript service.py process-group=service application-group=%{GLOBAL}\n\
                <WSGIInterpreterOptions application-group=other>\nWSGIRestrictStdout Off\n\
                </WSGIInterpreterOptions>";
    site.configure(&configuration("event", &options, more));
    site.start();
    let text = site.get("/d/").text();
    let (pid, text) = text.split_once('\n').unwrap();
    assert_eq!(
        text,
        "helper C.UTF-8 1 True 7 0.020\nsys.stdin access restricted by mod_wsgi\n\
         sys.stdout access restricted by mod_wsgi\nsite '' 15 True\nFalse\n",
        "{}",
        site.error_log()
    );
    let shown = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(shown.starts_with(b"(wsgi:site)\0"), "{}", String::from_utf8_lossy(&shown));
    site.wait_until("the service", || site.path("started").exists());
    site.wait_for_line("Callback registration for signal 15 ignored");
    site.wait_for_line("Slow request: /d/ took");
}

#[test]
fn no_process_outlives_the_server() {
    let mut site = site("wsgi-end", "processes=2", "");
    let (daemon, _) = process(&mut site.client(), "/d/");
    let (embedded, _) = process(&mut site.client(), "/e/");
    site.signal(Signal::SIGTERM);
    assert!(site.ended_within(Duration::from_secs(10)));
    for pid in [daemon, embedded] {
        site.wait_until("its end", || kill(pid, None).is_err());
    }
}

#[test]
fn a_companion_that_is_killed_is_started_again() {
    let site = site("wsgi-companion", "processes=1", "");
    let (before, _) = process(&mut site.client(), "/d/");
    let stat = fs::read_to_string(format!("/proc/{before}/stat")).unwrap();
    let companion = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    kill(Pid::from_raw(companion), Signal::SIGKILL).unwrap();
    site.wait_until("its process's end", || kill(before, None).is_err());
    site.wait_until("another process", || site.get("/d/").status == 200);
    assert_ne!(process(&mut site.client(), "/d/").0, before);
}
