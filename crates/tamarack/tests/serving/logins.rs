//! Logins: a right password is not hashed repeatedly, and yet the password file and the group
//! file count from the next request on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::client::Client;
use crate::site::Site;

/// Made by `htpasswd -nbB -C 5`. All are of one length.
const HASH_OF_ONE: &str = "$2y$05$nYcUOAyptNLsQjJecuL6luwN4Rrh046IMahn/fYMg9ZrdfM3lx2/q";
const HASH_OF_TWO: &str = "$2y$05$79c0H7vyBbmtasJUNuWna.GXPK4cLv2GjorCGvDPLfk5f9gEi8uw2";
/// Cost 10.
const HASH_OF_SLOW: &str = "$2y$10$Ckjia41rlIWoakPVpnSCEukRPsgYmRFa4176e/zRDU68Nlplm2bCa";

/// `alice` with her password, in base 64.
const ONE: &str = "YWxpY2U6b25l";
const TWO: &str = "YWxpY2U6dHdv";
const SLOW: &str = "YWxpY2U6c2xvdw==";

/// A site whose password and group files lie in a folder of their own.
struct Guarded {
    site: Site,
    folder: PathBuf,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Guarded {
    /// `base` holds the files.
    fn start(mpm: &str, base: &Path) -> Guarded {
        let site = Site::new(&format!("logins-{mpm}"));
        let name = site.root.file_name().unwrap().to_string_lossy().into_owned();
        let folder = base.join(format!("{name}-files"));
        fs::create_dir_all(&folder).unwrap();
        let names = ["dir", "authz_core", "authn_core", "authn_file", "authz_user"];
        let names = names.iter().chain(&["authz_groupfile", "auth_basic"]);
        let modules: String =
            names.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n")).collect();
        let limits = match mpm {
            "prefork" => "StartServers 2\nServerLimit 2\nMaxRequestWorkers 2\n",
            "worker" => "StartServers 1\nServerLimit 1\nThreadsPerChild 2\nMaxRequestWorkers 2\n",
            "event" => "StartServers 1\nServerLimit 1\n",
            _ => "",
        };
        let folder_name = folder.display();
        site.configure(&format!(
            "LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n{modules}{limits}\
             <Location /user>\nAuthType Basic\nAuthName x\nAuthUserFile {folder_name}/passwords\n\
             Require valid-user\n</Location>\n\
             <Location /group>\nAuthType Basic\nAuthName x\nAuthUserFile {folder_name}/passwords\n\
             AuthGroupFile {folder_name}/groups\nRequire group crew\n</Location>\n"
        ));
        for page in ["user", "group"] {
            fs::create_dir(site.path(&format!("htdocs/{page}"))).unwrap();
            site.write(&format!("htdocs/{page}/index.html"), "secret\n");
        }
        let guarded = Guarded { site, folder };
        guarded.replace("passwords", &format!("bob:x\nalice:{HASH_OF_ONE}\n"));
        guarded.replace("groups", "crew: alice bob\n");
        guarded
    }

    fn run(mut self) -> Guarded {
        self.site.start();
        self
    }

    /// Puts a file into another's place. Its time tells nothing.
    fn replace(&self, name: &str, text: &str) {
        let new = self.folder.join("new");
        fs::write(&new, text).unwrap();
        make_old(&new);
        fs::rename(&new, self.folder.join(name)).unwrap();
    }

    /// Writes over a file. Its time tells nothing, nor does its size where `text` is as long.
    fn overwrite(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        make_old(&path);
    }

    /// The CPU time that the serving processes have taken so far, in the system's ticks.
    fn cpu_ticks(&self) -> u64 {
        let of_child = |pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let (_, rest) = text.rsplit_once(") ").unwrap();
            rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
        };
        self.site.children().into_iter().map(of_child).sum()
    }
}

fn make_old(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn status(client: &mut Client, path: &str, login: &str) -> u16 {
    let head = format!(
        "GET {path}/index.html HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\n\r\n"
    );
    client.send(head.as_bytes()).unwrap();
    client.answer().unwrap().status
}

/// Where a file watch can be trusted on any machine, if there is such a place, and where the
/// site's own folder is.
fn bases() -> Vec<PathBuf> {
    let memory = PathBuf::from("/dev/shm");
    let all = [memory, std::env::temp_dir()];
    all.into_iter().filter(|base| base.is_dir()).collect()
}

fn the_files_count_from_the_next_request(mpm: &str) {
    for base in bases() {
        let guarded = Guarded::start(mpm, &base).run();
        let mut client = guarded.site.client();
        for round in 0..8 {
            for _ in 0..1 + round % 3 {
                assert_eq!(status(&mut client, "/user", ONE), 200);
                assert_eq!(status(&mut client, "/group", ONE), 200);
                assert_eq!(status(&mut client, "/user", TWO), 401);
            }
            // Another password, of a hash that is as long.
            guarded.overwrite("passwords", &format!("bob:x\nalice:{HASH_OF_TWO}\n"));
            assert_eq!(status(&mut client, "/user", ONE), 401);
            assert_eq!(status(&mut client, "/user", TWO), 200);
            assert_eq!(status(&mut client, "/user", TWO), 200);
            // Another group.
            guarded.replace("groups", "crew: carol bob\n");
            assert_eq!(status(&mut client, "/group", TWO), 401);
            guarded.overwrite("groups", "crew: alice bob\n");
            assert_eq!(status(&mut client, "/group", TWO), 200);
            // No user of that name.
            guarded.replace("passwords", "bob:x\n");
            assert_eq!(status(&mut client, "/user", TWO), 401);
            fs::remove_file(guarded.folder.join("passwords")).unwrap();
            // Apache ends the connection with it.
            assert_eq!(status(&mut client, "/user", TWO), 500);
            client = guarded.site.client();
            guarded.replace("passwords", &format!("bob:x\nalice:{HASH_OF_ONE}\n"));
        }
    }
}

#[test]
fn the_files_count_from_the_next_request_in_event() {
    the_files_count_from_the_next_request("event");
}

#[test]
fn the_files_count_from_the_next_request_in_loop() {
    the_files_count_from_the_next_request("loop");
}

#[test]
fn the_files_count_from_the_next_request_in_worker() {
    the_files_count_from_the_next_request("worker");
}

#[test]
fn the_files_count_from_the_next_request_in_prefork() {
    the_files_count_from_the_next_request("prefork");
}

/// Logins after the first one. Each would take as long, were it hashed.
const LOGINS: u64 = 200;

fn a_right_password_is_hashed_once(mpm: &str) {
    for base in bases() {
        let guarded = Guarded::start(mpm, &base);
        guarded.replace("passwords", &format!("alice:{HASH_OF_SLOW}\n"));
        let guarded = guarded.run();
        let mut client = guarded.site.client();
        let start = guarded.cpu_ticks();
        assert_eq!(status(&mut client, "/user", SLOW), 200);
        assert_eq!(status(&mut client, "/user", ONE), 401);
        let once = (guarded.cpu_ticks() - start).max(1);
        for _ in 0..LOGINS {
            assert_eq!(status(&mut client, "/user", SLOW), 200);
        }
        let again = guarded.cpu_ticks() - start - once;
        assert!(again < once * LOGINS / 8, "{mpm}: {again} ticks for {LOGINS}, {once} for two");
        // A wrong one never gets cheaper: what was right is all that is remembered.
        assert_eq!(status(&mut client, "/user", ONE), 401);
    }
}

#[test]
fn a_right_password_is_hashed_once_in_event() {
    a_right_password_is_hashed_once("event");
}

#[test]
fn a_right_password_is_hashed_once_in_loop() {
    a_right_password_is_hashed_once("loop");
}

#[test]
fn a_right_password_is_hashed_once_in_worker() {
    a_right_password_is_hashed_once("worker");
}

#[test]
fn a_right_password_is_hashed_once_in_prefork() {
    a_right_password_is_hashed_once("prefork");
}

#[test]
fn wrong_passwords_never_become_right() {
    let guarded = Guarded::start("event", &bases()[0]).run();
    let mut client = guarded.site.client();
    for guess in 0..100 {
        // `alice:` and three bytes.
        let login = format!("YWxpY2U6{:04}", 1000 + guess);
        assert_eq!(status(&mut client, "/user", &login), 401);
        assert_eq!(status(&mut client, "/user", ONE), 200);
        assert_eq!(status(&mut client, "/user", &login), 401);
    }
}

/// Apache ends because of such a form.
#[test]
fn a_form_that_is_longer_than_what_is_kept_is_refused() {
    let mut site = Site::new("logins-kept");
    let names = ["authz_core", "authn_core", "authn_anon", "authz_user", "auth_form", "session"];
    let names = names.iter().chain(&["session_cookie", "request"]);
    let modules: String =
        names.map(|name| format!("LoadModule {name}_module modules/mod_{name}.so\n")).collect();
    site.configure(&format!(
        "{modules}Session On\nSessionCookieName s\n<Location />\nAuthType form\nAuthName x\n\
         AuthFormProvider anon\nAnonymous alice\nAnonymous_MustGiveEmail Off\n\
         Require valid-user\nKeptBodySize 40\n</Location>\n"
    ));
    site.start();
    let ask = |form: &str| {
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: ".to_owned()
            + "application/x-www-form-urlencoded\r\n";
        let length = form.len();
        let mut client = site.client();
        client.send(format!("{head}Content-Length: {length}\r\n\r\n{form}").as_bytes()).unwrap();
        client.answer().unwrap().status
    };
    assert_eq!(ask("httpd_username=alice&httpd_password=test-and-more"), 413);
    assert_eq!(ask("httpd_username=bob&httpd_password=x"), 401);
    site.wait_for_line("AH01412: Requested content-length of 49 is larger than the configured");
}
