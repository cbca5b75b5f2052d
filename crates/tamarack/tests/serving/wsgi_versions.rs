//! mod_wsgi with other versions of Python than that of the system, each in a virtual environment
//! below the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::site::Site;

const SCRIPT: &str = "
import os, sys
import helper
def application(environ, start_response):
    body = environ['wsgi.input'].read()
    out = '%d.%d %s %s %s' % (*sys.version_info[:2], sys.prefix, helper.NAME, body.decode())
    print('from', out, file=environ['wsgi.errors'])
    out = out.encode()
    start_response('200 OK', [('Content-Length', str(len(out)))])
    return [out]
";

/// The version of an interpreter, with a "t" if it can run without its lock, and its own
/// executable; `None` if it does not run.
fn asked(program: &Path) -> Option<(String, PathBuf)> {
    let script = "import sys; print('%d.%d' % sys.version_info[:2] + sys.abiflags, sys.executable)";
    let output = Command::new(program).args(["-c", script]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (version, path) = text.trim().split_once(' ')?;
    Some((version.to_owned(), PathBuf::from(path)))
}

/// The interpreters from 3.10 on: by their names, in the versions of pyenv, and those that
/// `OTHER_PYTHONS` names, separated by colons. One for each version.
pub fn others() -> Vec<(String, PathBuf)> {
    let named = (10..30).flat_map(|minor| ["", "t"].map(|end| format!("python3.{minor}{end}")));
    let named = named.map(PathBuf::from);
    let home = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".pyenv")));
    let installed = home.and_then(|home| std::fs::read_dir(home.join("versions")).ok());
    let installed = installed.into_iter().flatten().flatten();
    let installed = installed.map(|entry| entry.path().join("bin/python3"));
    let given = std::env::var("OTHER_PYTHONS").unwrap_or_default();
    let given = given.split(':').filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut found: Vec<(String, PathBuf)> =
        named.chain(installed).chain(given).filter_map(|program| asked(&program)).collect();
    let is_new = |version: &str| {
        let (minor, least) = match version.strip_suffix('t') {
            Some(version) => (version, 14),
            None => (version, 10),
        };
        let minor = minor.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
        minor.is_some_and(|minor| minor >= least)
    };
    found.retain(|(version, _)| is_new(version));
    found.sort();
    found.dedup_by(|one, other| one.0 == other.0);
    let usual = asked(Path::new("/usr/bin/python3")).map(|(version, _)| version);
    found.retain(|(version, _)| Some(version) != usual.as_ref());
    found
}

#[test]
fn other_versions_run_in_virtual_environments() {
    let mut versions = others();
    // Those are tried elsewhere.
    versions.retain(|(version, _)| !version.ends_with('t'));
    if versions.is_empty() {
        eprintln!("skipped: no Python but that of the system; OTHER_PYTHONS could name one");
    }
    for (version, program) in versions {
        let mut site = Site::new(&format!("wsgi-python-{version}"));
        let place = site.root.join("venv");
        let made =
            Command::new(&program).args(["-m", "venv", "--without-pip"]).arg(&place).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{version}: {}", String::from_utf8_lossy(&made.stderr));
        let packages = place.join(format!("lib/python{version}/site-packages"));
        std::fs::write(packages.join("helper.py"), format!("NAME = 'of {version}'\n")).unwrap();
        site.write("app.wsgi", SCRIPT);
        let shown = place.display();
        // A group, and embedded mode.
        site.configure(&format!(
            "LoadModule mpm_event_module modules/mod_mpm_event.so\n\
             LoadModule authz_core_module modules/mod_authz_core.so\n\
             LoadModule wsgi_module modules/mod_wsgi.so\nLogLevel info\n\
             WSGIPythonHome {shown}\nWSGIDaemonProcess site python-home={shown} threads=3\n\
             WSGIScriptAlias /d app.wsgi process-group=site application-group=%{{GLOBAL}}\n\
             WSGIScriptAlias /e app.wsgi\n"
        ));
        site.start();
        let expected = format!("{version} {shown} of {version} body");
        for path in ["/d/", "/e/"] {
            let mut client = site.client();
            let head =
                format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
            client.send(head.as_bytes()).unwrap();
            let answer = client.answer().unwrap();
            assert_eq!((answer.status, answer.text()), (200, expected.clone()), "{path}");
        }
        site.wait_for_line(&format!("from {expected}"));
        // The extension, and with it the shared memory, is for all versions.
        assert_eq!(site.count_lines("can't use the extension"), 0, "{}", site.error_log());
    }
}
