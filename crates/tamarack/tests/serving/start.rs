//! Starting and stopping: detached, as an ordinary user, on a port in use; signals.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Group, Uid, User};

use crate::client::Client;
use crate::site::{PROGRAM, Site, copy_program, is_root};

/// Attempts, since a busy machine may be slow at times.
const TRIES: usize = 3;

/// An unprivileged user and group.
const NOBODY: u32 = 65534;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_detaches_and_obeys_orders() {
    let site = Site::new("orders");
    let none = site.run(&["-k", "stop"]);
    assert!(none.status.success(), "{none:?}");
    assert_eq!(out(&none), "httpd (no pid file) not running\n");

    // Standard output and error close with the parent: a daemon that held them would block here.
    let started = site.run(&["-k", "start"]);
    assert!(started.status.success(), "{started:?}");
    assert_eq!((out(&started), err(&started)), (String::new(), String::new()));
    assert!(site.path("run.pid").exists());
    assert_eq!(site.get("/").status, 200);

    let again = site.run(&["-k", "start"]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(out(&again), format!("httpd (pid {}) already running\n", site.supervisor()));

    assert!(site.run(&["-k", "graceful"]).status.success());
    let is_restarted = || site.count_lines("resuming normal operations") == 2;
    site.wait_until("a restart", is_restarted);
    assert!(site.run(&["-k", "stop"]).status.success());
    site.wait_until("its end", || !site.path("run.pid").exists());
    site.wait_until("the port is closed", || Client::connect(site.port).is_err());
    site.wait_for_line("caught SIGTERM, shutting down");
}

#[test]
fn a_pid_file_of_another_process_is_not_believed() {
    let site = Site::new("stale-pid");
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    site.write("run.pid", &format!("{}\n", other.id()));
    let told = site.run(&["-k", "stop"]);
    assert!(told.status.success(), "{told:?}");
    assert_eq!(out(&told), format!("httpd (pid {}?) not running\n", other.id()));
    for order in ["graceful-stop", "upgrade"] {
        let told = site.run(&["-k", order]);
        assert!(told.status.success(), "{told:?}");
        assert_eq!(out(&told), format!("httpd (pid {}?) not running\n", other.id()));
    }
    assert!(other.try_wait().unwrap().is_none(), "a stranger was signalled");
    other.kill().unwrap();
    other.wait().unwrap();
    fs::remove_file(site.path("run.pid")).unwrap();
}

#[test]
fn a_port_in_use_is_an_error() {
    let site = Site::new("port");
    let _held = TcpListener::bind(("127.0.0.1", site.port)).unwrap();
    let output = site.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let text = err(&output);
    let first = format!(
        "(98)Address already in use: AH00072: make_sock: could not bind to address 127.0.0.1:{}\n",
        site.port
    );
    let last = "no listening sockets available, shutting down\nAH00015: Unable to open logs\n";
    assert!(text.starts_with(&first) && text.ends_with(last), "{text}");
    assert!(text.contains(&format!("(pid {})", std::process::id())), "who has it: {text}");
    assert!(!site.path("run.pid").exists());
}

#[test]
fn all_errors_are_told_and_nothing_is_changed() {
    let site = Site::new("errors");
    site.configure("Frobnicate On\nKeepAlive Perhaps\n<Directory>\n</Directory>\n");
    for arguments in [&["-t"][..], &[]] {
        let output = site.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = err(&output);
        for part in ["Invalid command 'Frobnicate'", "KeepAlive", "<Directory", "3 errors"] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    }
    assert!(!site.path("run.pid").exists());
    assert_eq!(site.error_log(), "");
}

#[test]
fn it_runs_as_an_ordinary_user() {
    let mut site = Site::new("ordinary");
    let mut command = site.command();
    if is_root() {
        let copy = site.path("tamarack");
        copy_program(&copy);
        command = site.as_program(&copy);
        command.uid(NOBODY).gid(NOBODY);
        for path in ["", "logs", "htdocs"] {
            std::os::unix::fs::chown(site.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // The names of a user and a group do not matter to a process that can't change to them.
        site.configure("User www-data\nGroup www-data\n");
    }
    site.start_by(command);
    site.assert_serves();
    site.wait_for_line("resuming normal operations");
}

#[test]
fn what_needs_no_configuration_needs_none() {
    for (flag, word) in [
        ("-v", "Apache/2.4.71"),
        ("-V", " -D SERVER_CONFIG_FILE=\"apache2.conf\""),
        ("-l", "  mod_so.c\n"),
        ("-L", "Listen (event.c)\n"),
    ] {
        let is_fast = (0..TRIES).any(|_| {
            let began = Instant::now();
            let output = Command::new(PROGRAM).args(["-d", "/nowhere", flag]).output().unwrap();
            let took = began.elapsed();
            assert!(output.status.success() && err(&output).is_empty(), "{output:?}");
            assert!(out(&output).contains(word), "{flag}: {}", out(&output));
            // Usually milliseconds; the limit allows for a busy machine.
            took < Duration::from_secs(5)
        });
        assert!(is_fast, "{flag} takes seconds");
    }
}

#[test]
fn an_error_log_that_cannot_be_opened_is_told() {
    let site = Site::new("no-log");
    site.configure("ErrorLog nowhere/error.log");
    let output = site.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let root = site.root.display();
    assert_eq!(
        err(&output),
        format!(
            "(2)No such file or directory: AH02291: Cannot access directory '{root}/nowhere/' for \
             main error log\nAH00014: Configuration check failed\n"
        )
    );
    site.configure("CustomLog nowhere/access.log common");
    let output = site.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "AH02297: Cannot access directory '{root}/nowhere/' for log file 'nowhere/access.log' \
         defined at {root}/httpd.conf:"
    );
    assert!(err(&output).contains(&expected), "{}", err(&output));
    // Its folder is there, and is all that is checked; the file can't be opened.
    site.configure("CustomLog htdocs common");
    let output = site.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("AH00649: could not open transfer log file {root}/htdocs.");
    assert!(err(&output).contains(&expected), "{}", err(&output));
    site.configure(
        "LoadModule log_forensic_module x.so\nForensicLog nowhere/forensic.log\n\
         CustomLog logs/access.log common",
    );
    let output = site.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let expected =
        format!("AH00651: could not open forensic log file {root}/nowhere/forensic.log.");
    assert!(err(&output).contains(&expected), "{}", err(&output));
    assert!(!site.path("run.pid").exists());
}

#[test]
fn messages_of_the_start_may_go_to_a_file() {
    let site = Site::new("startup-log");
    let file = site.path("logs/start");
    let file = file.to_str().unwrap();
    let output = site.run(&["-t", "-E", file, "-c", "Frobnicate"]);
    assert_eq!((output.status.code(), err(&output)), (Some(1), String::new()));
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("AH00526: Syntax error on line 1 of -c/-C directives:"), "{text}");
}

#[test]
fn a_folder_is_served_without_configuration() {
    let site = Site::new("folder");
    let address = format!("127.0.0.1:{}", site.port);
    let serve = || {
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg(site.path("htdocs")).arg(&address);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut child = serve().spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    site.wait_until("it serves", || Client::connect(site.port).is_ok());
    let second = serve().output().unwrap();
    assert_eq!(site.get("/index.html").text(), "hello\n");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGINT)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(!err(&output).contains(":warn]"), "{}", err(&output));
    assert!(said.contains(&format!("http://{address}/")), "{said}");
    assert_eq!(second.status.code(), Some(1));
    assert!(err(&second).contains(&format!("{address} is in use")), "{}", err(&second));

    let wrong = Command::new(PROGRAM).args(["serve", "/nowhere"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(err(&wrong), "tamarack serve: /nowhere: No such file or directory\n");
}

/// The effect of `User` and `Group` on a root process: never a silent root child.
#[test]
fn children_of_root_are_root_only_with_an_alert() {
    if !is_root() {
        return;
    }
    let mut site = Site::new("stays-root");
    site.configure("StartServers 1\nUser daemon\n");
    let output = site.run(&["-DFOREGROUND"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("AH02156: setgid: unable to set group id"), "{}", err(&output));
    site.configure("StartServers 1\nGroup daemon\n");
    site.start();
    site.wait_for_line("AH02155: getpwuid: couldn't determine user name from uid 4294967295");
    assert_eq!(site.get("/").status, 200);
}

/// Apache's children would log AH02155 and stay root.
#[test]
fn children_run_as_a_user_by_number_that_has_no_name() {
    let has_no_name = |number: &u32| {
        let (user, group) = (Uid::from_raw(*number), Gid::from_raw(*number));
        User::from_uid(user).unwrap().is_none() && Group::from_gid(group).unwrap().is_none()
    };
    if !is_root() {
        return;
    }
    let number = (4711..).find(has_no_name).unwrap();
    let mut site = Site::new("nameless");
    site.configure(&format!("StartServers 1\nUser #{number}\nGroup #{number}\n"));
    site.start();
    assert_eq!(site.get("/").status, 200);
    let ids = format!("\t{number}\t{number}\t{number}\t{number}");
    for child in site.children() {
        let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap();
        assert!(status.contains(&format!("Uid:{ids}\nGid:{ids}\n")), "{status}");
    }
    assert_eq!(site.count_lines("AH02155"), 0, "{}", site.error_log());
}
