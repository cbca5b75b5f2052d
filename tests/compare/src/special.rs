//! Files with a meaning of their own: messages, image maps, meta files, folders of users and hosts.

use crate::random::Random;
use crate::site::{Content, File};
use crate::tree::made;

/// Whole messages, for the handler `send-as-is`.
const MESSAGES: [&str; 12] = [
    "Status: 299 Odd\nContent-Type: text/x-asis\nX-A: asis\n\nbody\n",
    "Content-type: text/plain\n\nx\n",
    "Location: http://other.test/x\n\n",
    "Location: /a.txt\n\nx\n",
    "Status: 404\n\nnot here\n",
    "Status: 404 Gone Away\nContent-Type: text/html\n\n<p>not here\n",
    "no field\n\nbody\n",
    "Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT\nETag: \"tag\"\nContent-Length: 4\n\nabc\n",
    "Set-Cookie: a=1\nSet-Cookie: b=2\nVary: X\nContent-Language: de\n\nx\n",
    "Status: 304 x\nETag: \"tag\"\n\n",
    "Content-Type: text/html; charset=utf-8\n\n",
    "",
];

const MAPS: [&str; 7] = [
    "rect a.txt 0,0 50,50\ncircle /b.html 100,100 100,120\npoly d/ 200,200 220,200 220,220\n\
     default index.html\n",
    "# comment\n\nbase /d/\npoint b.html 10,10 \"near\"\npoint http://other.test/ 90,90\n\
    <b>text</b>\n",
    "default nocontent\nrect error 0,0 9,9\nrect map 10,0 19,9\nrect referer 20,0 29,9\n",
    "base http://other.test/a/b\nrect x.html 0,0 50,50 \"X\"\nrect /y 60,0 99,9\n",
    "base referer\nrect x.html 0,0 50,50\ndefault /d/\nrect \"a b\" 0,60 9,99\n",
    "rect\nrect a.txt 1,1\nRECT a.txt 0,0 100,100\n",
    "",
];

/// Fields for the response of another file.
const FIELDS: [&str; 12] = [
    "X-Meta: 1\n",
    "Content-Type: text/x-meta\nX-A: m\n",
    "Status: 299 Meta\n",
    "Status: 404\n",
    "Location: /a.txt\n",
    "Location: http://other.test/x\nX-Meta: 2\n",
    "no field\n",
    "X-Meta: a\nX-Meta: b\nX-A:  spaces \n",
    "Expires: Sat, 01 Jan 2050 00:00:00 GMT\nCache-Control: private\n",
    "Last-Modified: Sat, 01 Jan 2022 00:00:00 GMT\nETag: \"tag\"\nContent-Length: 3\n",
    "Content-Type: text/html; charset=utf-8\nContent-Language: de\n\nbody\n",
    "",
];

/// Adds some of them to the folders of `htdocs` and beside it.
pub fn add(files: &mut Vec<File>, random: &mut Random, folders: &[String]) {
    if random.percent(30) {
        several(files, random, folders, &["x.asis", "index.asis", "Y.ASIS"], &MESSAGES);
    }
    if random.percent(30) {
        several(files, random, folders, &["m.map", "index.map", "n.map"], &MAPS);
    }
    if random.percent(30) {
        metas(files, random);
    }
    if random.percent(30) {
        for path in ["anna/", "anna/public_html/", "bob/", "anna/d/"] {
            files.push(made(format!("users/{path}"), Content::Folder));
            let name: &str = random.pick(&["a.txt", "index.html"]);
            add_text(files, format!("users/{path}{name}"), format!("x {path}\n"));
        }
    }
    if random.percent(30) {
        // Names and addresses of hosts, and parts of both.
        for host in ["@HOST@", "test", "s", "127.0.0.1", "127", "1", "t/es"] {
            let name: &str = random.pick(&["a.txt", "index.html", "d/a.txt"]);
            add_text(files, format!("hosts/{host}/{name}"), format!("x {host}\n"));
        }
    }
}

/// The only page of an SDBM file. Long keys, which no request has, make all offsets ASCII.
pub fn sdbm(pairs: &[(&str, &str)]) -> String {
    const PAGE_BYTES: usize = 1024;
    let (mut words, mut at): (Vec<String>, usize) = (Vec::new(), PAGE_BYTES);
    for (key, value) in pairs {
        let lowest = at - key.len() - value.len();
        if lowest / 128 % 2 == 1 || lowest / 256 < at / 256 || at == PAGE_BYTES {
            // The highest offset below whose low byte is a letter of ASCII, and has room for both.
            let next = (at - 1) / 256 * 256 + 0x7f;
            let next = if next < at { next } else { next - 256 };
            words.extend(["-".repeat(at - next), String::new()]);
            at = next;
        }
        at -= key.len() + value.len();
        words.extend([(*key).to_owned(), (*value).to_owned()]);
    }
    let number = |number: usize| [(number & 0xff) as u8 as char, (number >> 8) as u8 as char];
    let mut page: String = number(words.len()).iter().collect();
    let mut at = PAGE_BYTES;
    for word in &words {
        at -= word.len();
        page.extend(number(at));
    }
    page.push_str(&"\0".repeat(at.saturating_sub(page.len())));
    page.extend(words.iter().rev().map(String::as_str));
    page
}

fn several(
    files: &mut Vec<File>,
    random: &mut Random,
    folders: &[String],
    names: &[&str],
    texts: &[&str],
) {
    for _ in 0..1 + random.below(4) {
        let folder = random.pick(folders);
        let name: &str = random.pick(names);
        let text: &str = random.pick(texts);
        add_text(files, format!("htdocs/{folder}{name}"), text.to_owned());
    }
}

/// Fields of some files, in the places that MetaDir and MetaSuffix name.
fn metas(files: &mut Vec<File>, random: &mut Random) {
    let is_served =
        |file: &&File| file.path.starts_with("htdocs/") && matches!(file.content, Content::Text(_));
    let paths: Vec<String> = files.iter().filter(is_served).map(|file| file.path.clone()).collect();
    for path in paths {
        let Some((folder, name)) = path.rsplit_once('/') else {
            continue;
        };
        let place: &str = random.pick(&["/.web", "/.web", ""]);
        let suffix: &str = random.pick(&[".meta", ".meta", ".m"]);
        let text: &str = random.pick(&FIELDS);
        if random.percent(70) {
            add_text(files, format!("{folder}{place}/{name}{suffix}"), text.to_owned());
        }
    }
}

fn add_text(files: &mut Vec<File>, path: String, text: String) {
    if files.iter().all(|file| file.path.trim_end_matches('/') != path) {
        files.push(made(path, Content::Text(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::sdbm;

    #[test]
    fn a_page_has_its_size_and_letters_of_a_byte() {
        let page = sdbm(&[("key", "value"), ("k", "v")]);
        assert_eq!((page.len(), page.is_ascii()), (1024, true));
        assert!(page.starts_with("\u{6}\0\u{7f}\u{3}\u{7f}\u{3}") && page.contains("vkvaluekey"));
        let long = "v".repeat(40);
        let page = sdbm(&[("a", &long), ("b", &long), ("c", &long), ("d", &long), ("e", &long)]);
        assert_eq!((page.len(), page.is_ascii()), (1024, true));
    }
}
