//! Freshness: the request after a change on disk sees the change.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant, SystemTime};

use crate::client::{Client, PATIENCE};
use crate::is_long;
use crate::shapes::start;
use crate::site::Site;

/// Writes and requests of a run.
const ROUNDS: usize = 10_000;
/// The same without long tests.
const ROUNDS_SHORT: usize = 2_000;

fn rounds() -> usize {
    if is_long() { ROUNDS } else { ROUNDS_SHORT }
}

/// Sets a fixed time in the past: neither size nor time distinguish the contents.
fn make_old(file: &File) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_640_995_200);
    file.set_modified(time).unwrap();
}

fn text(number: usize) -> String {
    format!("number {number:08}\n")
}

#[test]
fn a_file_that_is_written_again_and_again() {
    let mut site = Site::new("fresh-write");
    site.start();
    let mut client = site.client();
    let path = site.path("htdocs/a.txt");
    for number in 0..rounds() {
        fs::write(&path, text(number)).unwrap();
        // Every other version has the time of the one before it.
        if number % 2 == 0 {
            make_old(&File::options().write(true).open(&path).unwrap());
        }
        assert_eq!(client.get("/a.txt").unwrap().text(), text(number));
        if number % 8 == 0 {
            // Now it may come from the cache.
            assert_eq!(client.get("/a.txt").unwrap().text(), text(number));
            assert_eq!(client.get("/a.txt").unwrap().text(), text(number));
        }
    }
}

#[test]
fn a_file_that_is_replaced_or_deleted() {
    let mut site = Site::new("fresh-rename");
    site.start();
    let mut client = site.client();
    let (path, new) = (site.path("htdocs/a.txt"), site.path("new.txt"));
    for number in 0..rounds() {
        fs::write(&new, text(number)).unwrap();
        make_old(&File::options().write(true).open(&new).unwrap());
        fs::rename(&new, &path).unwrap();
        for _ in 0..1 + number % 3 {
            assert_eq!(client.get("/a.txt").unwrap().text(), text(number));
        }
        if number % 5 == 0 {
            fs::remove_file(&path).unwrap();
            assert_eq!(client.get("/a.txt").unwrap().status, 404);
        }
    }
}

/// In all shapes, since they cache in different places.
#[test]
fn a_page_and_what_it_includes() {
    for mpm in ["event", "loop", "worker", "prefork"] {
        let more = "LoadModule include_module modules/mod_include.so\n<Files *.shtml>\n  ForceType \
                    text/html\n  SetOutputFilter INCLUDES\n  Options +Includes\n</Files>\n";
        let site = start(&format!("fresh-page-{mpm}"), mpm, more);
        let page = |number: usize| {
            format!("{number:02}<!--#include virtual=\"a.txt\" --><!--#fsize virtual=\"b.txt\" -->")
        };
        let mut clients = [site.client(), site.client()];
        let (path, new) = (site.path("htdocs/a.txt"), site.path("new.txt"));
        for number in 0..rounds() / 8 {
            fs::write(site.path("htdocs/page.shtml"), page(number % 7)).unwrap();
            fs::write(&new, text(number)).unwrap();
            make_old(&File::options().write(true).open(&new).unwrap());
            if number % 2 == 0 {
                fs::rename(&new, &path).unwrap();
            } else {
                fs::write(&path, text(number)).unwrap();
            }
            let size = number % 10;
            fs::write(site.path("htdocs/b.txt"), "x".repeat(size)).unwrap();
            let size = if size == 0 { "  0 ".to_owned() } else { format!("{size:3} ") };
            let wanted = format!("{:02}{}{size}", number % 7, text(number));
            for _ in 0..1 + number % 3 {
                for client in &mut clients {
                    assert_eq!(client.get("/page.shtml").unwrap().text(), wanted, "{mpm}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_written_by_another_name() {
    let mut site = Site::new("fresh-names");
    fs::create_dir(site.path("elsewhere")).unwrap();
    site.write("htdocs/a.txt", &text(0));
    fs::hard_link(site.path("htdocs/a.txt"), site.path("elsewhere/b.txt")).unwrap();
    site.start();
    // Files younger than a second are not cached anyway.
    std::thread::sleep(Duration::from_millis(1100));
    let mut client = site.client();
    for _ in 0..4 {
        assert_eq!(client.get("/a.txt").unwrap().text(), text(0));
    }
    site.write("elsewhere/b.txt", &text(1));
    assert_eq!(client.get("/a.txt").unwrap().text(), text(1));
}

#[test]
fn a_time_in_the_future_goes_on_with_the_clock() {
    let mut site = Site::new("fresh-future");
    site.configure("FileETag None\n");
    let file = File::options().write(true).open(site.path("htdocs/index.html")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(1_000_000)).unwrap();
    site.start();
    let mut client = site.client();
    let mut modified = || {
        let response = client.get("/index.html").unwrap();
        response.field("Last-Modified").unwrap_or_default().to_owned()
    };
    let (first, begin) = (modified(), Instant::now());
    while modified() == first {
        assert!(begin.elapsed() < PATIENCE, "Last-Modified does not change from {first}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn requests_that_came_after_a_change_see_it_though_they_are_pipelined() {
    let mut site = Site::new("fresh-pipeline");
    site.start();
    let mut client = site.client();
    let path = site.path("htdocs/a.txt");
    for number in 0..rounds() / 4 {
        fs::write(&path, text(number)).unwrap();
        make_old(&File::options().write(true).open(&path).unwrap());
        let one = "GET /a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
        client.send(one.repeat(4).as_bytes()).unwrap();
        for _ in 0..4 {
            assert_eq!(client.answer().unwrap().text(), text(number));
        }
    }
}

/// The response's type, which `.htaccess` sets.
fn type_of(client: &mut Client, path: &str) -> String {
    let answer = client.get(path).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.field("Content-Type").unwrap_or_default().to_owned()
}

#[test]
fn a_htaccess_file_on_any_level() {
    let mut site = Site::new("fresh-htaccess");
    let levels = ["htdocs", "htdocs/one", "htdocs/one/two", "htdocs/one/two/three"];
    for level in &levels[1..] {
        fs::create_dir(site.path(level)).unwrap();
    }
    site.write("htdocs/one/two/three/a.txt", "text\n");
    site.start();
    let mut client = site.client();
    let plain = type_of(&mut client, "/one/two/three/a.txt");
    for number in 0..rounds() / 8 {
        let level = site.path(levels[number % levels.len()]);
        let file = level.join(".htaccess");
        let wanted = format!("text/x-{number:06}");
        match number % 3 {
            0 => fs::write(&file, format!("ForceType {wanted}\n")).unwrap(),
            _ => {
                let new = site.path("new");
                fs::write(&new, format!("ForceType {wanted}\n")).unwrap();
                fs::rename(new, &file).unwrap();
            }
        }
        for _ in 0..1 + number % 4 {
            assert_eq!(type_of(&mut client, "/one/two/three/a.txt"), wanted);
        }
        fs::remove_file(&file).unwrap();
        for _ in 0..1 + number % 4 {
            assert_eq!(type_of(&mut client, "/one/two/three/a.txt"), plain, "{number}");
        }
    }
}

#[test]
fn a_wrong_htaccess_is_an_error_until_it_is_mended() {
    let mut site = Site::new("fresh-wrong");
    site.start();
    let file = site.path("htdocs/.htaccess");
    for _ in 0..20 {
        // A 500 ends its connection.
        let mut client = site.client();
        assert_eq!(client.get("/index.html").unwrap().status, 200);
        fs::write(&file, "Frobnicate On\n").unwrap();
        let answer = client.get("/index.html").unwrap();
        assert_eq!((answer.status, answer.closes()), (500, true));
        fs::write(&file, "# mended now \n").unwrap();
    }
    assert!(site.count_lines("Invalid command 'Frobnicate'") >= 20);
}

#[test]
fn folders_on_the_path_that_are_renamed() {
    let mut site = Site::new("fresh-folder");
    fs::create_dir_all(site.path("htdocs/one/two")).unwrap();
    fs::create_dir_all(site.path("htdocs/other/two")).unwrap();
    site.write("htdocs/one/two/a.txt", "one\n");
    site.write("htdocs/other/two/a.txt", "two\n");
    for file in ["htdocs/one/two/a.txt", "htdocs/other/two/a.txt"] {
        make_old(&File::options().write(true).open(site.path(file)).unwrap());
    }
    site.start();
    let mut client = site.client();
    let (one, other, aside) =
        (site.path("htdocs/one"), site.path("htdocs/other"), site.path("htdocs/aside"));
    let mut is_swapped = false;
    for number in 0..rounds() / 8 {
        fs::rename(&one, &aside).unwrap();
        assert_eq!(client.get("/one/two/a.txt").unwrap().status, 404);
        fs::rename(&other, &one).unwrap();
        fs::rename(&aside, &other).unwrap();
        is_swapped = !is_swapped;
        let expected = if is_swapped { "two\n" } else { "one\n" };
        for _ in 0..1 + number % 3 {
            assert_eq!(client.get("/one/two/a.txt").unwrap().text(), expected);
        }
    }
}

#[test]
fn a_symbolic_link_that_points_elsewhere() {
    let mut site = Site::new("fresh-link");
    for name in ["one", "two"] {
        fs::create_dir(site.path(name)).unwrap();
        site.write(&format!("{name}/a.txt"), &format!("{name}\n"));
        make_old(&File::options().write(true).open(site.path(name).join("a.txt")).unwrap());
    }
    let root = site.root.display().to_string();
    site.configure(&format!("<Directory {root}>\n  Options FollowSymLinks\n</Directory>\n"));
    site.start();
    let mut client = site.client();
    let (link, new) = (site.path("htdocs/link"), site.path("new-link"));
    for number in 0..rounds() / 8 {
        let name = ["one", "two"][number % 2];
        symlink(site.path(name), &new).unwrap();
        fs::rename(&new, &link).unwrap();
        for _ in 0..1 + number % 3 {
            assert_eq!(client.get("/link/a.txt").unwrap().text(), format!("{name}\n"));
        }
    }
    // Behind the link as well.
    for number in 0..20 {
        fs::write(site.path("two/a.txt"), text(number)).unwrap();
        fs::write(site.path("one/a.txt"), text(number)).unwrap();
        assert_eq!(client.get("/link/a.txt").unwrap().text(), text(number));
    }
}

/// Requests go through the phases, since each is for another name; what the walk found on the way
/// to their folder is cached.
#[test]
fn names_that_were_never_requested_follow_their_folder() {
    let mut site = Site::new("fresh-unknown");
    let root = site.root.display().to_string();
    for folder in ["htdocs/one/two", "aside/two", "elsewhere"] {
        fs::create_dir_all(site.path(folder)).unwrap();
    }
    symlink(site.path("htdocs/one"), site.path("htdocs/link")).unwrap();
    site.configure(&format!("<Directory {root}>\n  Options FollowSymLinks\n</Directory>\n"));
    site.start();
    let mut client = site.client();
    let mut number = 0;
    let mut expect = |status: u16, why: &str| {
        for folder in ["one/two", "link/two", "one/two/none/deeper"] {
            for times in 0..4 {
                number += 1;
                let path = format!("/{folder}/name-{number}");
                let found = client.get(&path).unwrap().status;
                assert_eq!(found, status, "{why}: {path}, {times} before");
            }
        }
    };
    let denied = "Require all denied\n";
    for round in 0..rounds() / 200 {
        expect(404, "at first");
        for level in ["htdocs", "htdocs/one", "htdocs/one/two"] {
            site.write(&format!("{level}/.htaccess"), denied);
            expect(403, level);
            site.write(&format!("{level}/.htaccess"), "# nothing is denied\n");
            expect(404, level);
            fs::remove_file(site.path(level).join(".htaccess")).unwrap();
            expect(404, level);
        }
        // The folder itself, and one above it, is another one.
        site.write("aside/two/.htaccess", denied);
        let (one, aside, spare) = (site.path("htdocs/one"), site.path("aside"), site.path("spare"));
        for (status, why) in [(403, "renamed"), (404, "renamed back")] {
            fs::rename(&one, &spare).unwrap();
            fs::rename(&aside, &one).unwrap();
            fs::rename(&spare, &aside).unwrap();
            expect(status, why);
        }
        // The folder vanishes, and is a link to elsewhere in between.
        let two = site.path("htdocs/one/two");
        fs::remove_dir(&two).unwrap();
        site.write("elsewhere/.htaccess", denied);
        symlink(site.path("elsewhere"), &two).unwrap();
        expect(403, "a link");
        fs::remove_file(&two).unwrap();
        expect(404, "no folder");
        fs::create_dir(&two).unwrap();
        expect(404, &format!("again, round {round}"));
    }
}
