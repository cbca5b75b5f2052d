//! Names that lead to FIFOs, sockets and devices, wherever a folder's owner can create one.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::memory::Memory;
use crate::others::assert_serves_others;
use crate::site::Site;

/// More than all of a process's threads for blocking work.
const REQUESTS: usize = 100;
/// Most additional memory of the process: an endless device is not read.
const MEMORY_MAX_KB: u64 = 64 << 10;

const MODULES: &str = "LoadModule dir_module x\nLoadModule mime_module x\n\
    LoadModule authz_core_module x\nLoadModule authn_core_module x\n\
    LoadModule auth_basic_module x\nLoadModule authn_file_module x\n\
    LoadModule authz_user_module x\nLoadModule authz_groupfile_module x\n\
    LoadModule autoindex_module x\nLoadModule negotiation_module x\n";

fn start(mpm: &str) -> Site {
    let site = Site::new(&format!("irregular-{mpm}"));
    site.configure(&format!(
        "LoadModule mpm_{mpm}_module x\nStartServers 1\nServerLimit 1\n{MODULES}\
         <Directory {}/htdocs>\nOptions +Indexes +MultiViews\n</Directory>\n",
        site.root.display()
    ));
    site
}

fn login(site: &Site, path: &str) -> u16 {
    let credentials = "Authorization: Basic YWxpY2U6dGVzdA==";
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{credentials}\r\n\r\n");
    let mut client = site.client();
    client.send(request.as_bytes()).unwrap();
    client.answer().unwrap().status
}

/// A folder whose `.htaccess` requires a password from `file`.
fn protect(site: &Site, folder: &str, file: &str) {
    fs::create_dir(site.path(&format!("htdocs/{folder}"))).unwrap();
    let root = site.root.display();
    site.write(
        &format!("htdocs/{folder}/.htaccess"),
        &format!("AuthType Basic\nAuthName x\nAuthUserFile {root}/{file}\nRequire valid-user\n"),
    );
    site.write(&format!("htdocs/{folder}/index.html"), "secret\n");
}

fn logins_go_on_beside_a_fifo(mpm: &str) {
    let mut site = start(mpm);
    mkfifo(&site.path("fifo"), Mode::from_bits_truncate(0o644)).unwrap();
    site.write("users", "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n");
    protect(&site, "good", "users");
    protect(&site, "bad", "fifo");
    site.start();
    let memory = Memory::of(&site);
    for _ in 0..REQUESTS {
        assert_eq!(login(&site, "/bad/"), 500);
    }
    assert_eq!(login(&site, "/good/"), 200);
    assert_serves_others(&site, || assert_eq!(login(&site, "/bad/"), 500));
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    site.assert_serves();
}

#[test]
fn a_fifo_as_password_file_holds_up_no_login_in_event() {
    logins_go_on_beside_a_fifo("event");
}

#[test]
fn a_fifo_as_password_file_holds_up_no_login_in_worker() {
    logins_go_on_beside_a_fifo("worker");
}

/// Every file that a request opens by name, replaced by a FIFO, a socket and an endless device.
#[test]
fn every_name_may_lead_to_no_regular_file() {
    let mut site = start("event");
    fs::create_dir(site.path("htdocs/fifo")).unwrap();
    fs::create_dir(site.path("htdocs/socket")).unwrap();
    fs::create_dir(site.path("htdocs/device")).unwrap();
    let names = [
        "plain.txt",
        "map.var",
        "view.html.en",
        "HEADER.html",
        "README.html",
        "page.html",
        "error",
        "groups",
    ];
    site.write("users", "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n");
    let mut sockets = Vec::new();
    for name in names {
        let path = |kind: &str| site.path(&format!("htdocs/{kind}/{name}"));
        mkfifo(&path("fifo"), Mode::from_bits_truncate(0o644)).unwrap();
        sockets.push(UnixListener::bind(path("socket")).unwrap());
        symlink("/dev/zero", path("device")).unwrap();
    }
    site.start();
    let memory = Memory::of(&site);
    for kind in ["fifo", "socket", "device"] {
        let root = site.root.display();
        site.write(
            &format!("htdocs/{kind}/.htaccess"),
            &format!(
                "AddHandler type-map .var\nAddLanguage en .en\nHeaderName HEADER.html\n\
                 ReadmeName README.html\nIndexOptions FancyIndexing ScanHTMLTitles\n\
                 ErrorDocument 404 /{kind}/error\n<Files grouped>\nAuthType Basic\nAuthName x\n\
                 AuthUserFile {root}/users\nAuthGroupFile {root}/htdocs/{kind}/groups\n\
                 Require group crew\n</Files>\n"
            ),
        );
        site.write(&format!("htdocs/{kind}/grouped"), "crew only\n");
        let get = |name: &str| site.get(&format!("/{kind}/{name}")).status;
        assert_eq!(get(""), 200, "{kind}");
        for name in ["plain.txt", "map.var", "page.html", "error"] {
            assert_eq!(get(name), 403, "{kind} {name}");
        }
        assert_eq!(login(&site, &format!("/{kind}/grouped")), 401, "{kind}");
        for name in ["view.html", "view", "nothing"] {
            assert_eq!(get(name), 404, "{kind} {name}");
        }
    }
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    site.assert_serves();
}

/// As in Apache, an `.htaccess` that is not a regular file closes its folder.
#[test]
fn an_irregular_htaccess_closes_its_folder() {
    let mut site = start("event");
    site.start();
    let memory = Memory::of(&site);
    fs::create_dir(site.path("htdocs/closed")).unwrap();
    site.write("htdocs/closed/index.html", "closed\n");
    mkfifo(&site.path("htdocs/closed/.htaccess"), Mode::from_bits_truncate(0o644)).unwrap();
    assert_eq!(site.get("/closed/").status, 403);
    memory.assert_peak_below(&site, MEMORY_MAX_KB);
    site.assert_serves();
}
