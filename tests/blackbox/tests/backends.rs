//! Backends that the runner plays, asked without a server between.
#![allow(clippy::expect_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use blackbox::backend::player::Player;
use blackbox::backend::show::{self, Connections};
use blackbox::parse::parse;
use blackbox::place::Place;
use blackbox::render::Renderer;
use blackbox::testfile::{Item, TestFile};

const DECLARATIONS: &str = "# Why.\nbackend one pooled\nbackend php fcgi unix\n\
    backend gone refuses\n\nconnection C\n";

/// A file with one request and these lines about backends.
struct Stage {
    file: TestFile,
    place: Place,
}

impl Stage {
    fn new(script: &str) -> Stage {
        let text = format!("{DECLARATIONS}> GET / HTTP/1.1\n>\n{script}");
        let file = parse(&text).expect("a test file");
        assert_eq!(file.to_text().trim_end(), text.trim_end());
        let place = Place::build(&file, Path::new("none")).expect("a folder");
        Stage { file, place }
    }

    fn expect(&self, player: &Player) -> usize {
        let Some(Item::Connection(connection)) = self.file.items.first() else {
            unreachable!("a connection");
        };
        player.expect(&connection.requests[0].exchanges, &self.place)
    }

    fn heard(&self, player: &Player, request: usize) -> Vec<String> {
        let renderer = Renderer::new(&self.place, &[]).expect("no masks");
        let (heard, unasked) = player.heard(request);
        show::lines(&self.place, &renderer, &heard, &unasked, &mut Connections::default())
    }

    fn connect(&self, name: &str) -> std::io::Result<TcpStream> {
        TcpStream::connect(self.place.fill_text(&format!("@{name}@")))
    }
}

fn all(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an orderly end");
    String::from_utf8(bytes).unwrap_or_default()
}

#[test]
fn scripts_are_followed_and_requests_recorded() {
    let stage = Stage::new(
        "one<- first\none: next\none: after head\none<- second @one@\none: close\none: next\n",
    );
    let player = Player::start(&stage.place).expect("threads");
    let request = stage.expect(&player);
    let mut stream = stage.connect("one").expect("it listens");
    stream.write_all(b"POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo").expect("open");
    stream.write_all(b"dyGET /b HTTP/1.1\r\nContent-Length: 9\r\n\r\n").expect("open");
    let address = stage.place.fill_text("@one@");
    assert_eq!(all(&mut stream), format!("firstsecond {address}"));
    drop(stream);
    let expected = "one= connection 1\none> POST /a HTTP/1.1\none> Content-Length: 4\none>\n\
        one|- body\none= connection 1 again\none> GET /b HTTP/1.1\none> Content-Length: 9\none>\n\
        one= incomplete\none= not asked";
    assert_eq!(stage.heard(&player, request).join("\n"), expected);
}

#[test]
fn a_request_without_a_script_is_shown_to_the_client() {
    let stage = Stage::new("php: echo\n");
    let player = Player::start(&stage.place).expect("threads");
    let mut stream = stage.connect("one").expect("it listens");
    stream.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n").expect("open");
    stream.shutdown(Shutdown::Write).expect("open");
    assert!(all(&mut stream).ends_with("\r\n\r\nGET /x HTTP/1.1\nA: b\nHost: a\n"));

    let request = stage.expect(&player);
    let mut php = UnixStream::connect(stage.place.fill_text("@php@")).expect("it listens");
    php.write_all(b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0").expect("open");
    php.write_all(b"\x01\x04\0\x01\0\x05\0\0\x01\x02Axy\x01\x04\0\x01\0\0\0\0").expect("open");
    php.write_all(b"\x01\x05\0\x01\0\0\0\0").expect("open");
    assert!(all(&mut php).contains("Backend: php\r\n\r\nA=xy\n"));
    let expected = ["php= connection 1", "php> BEGIN_REQUEST role=1 flags=0", "php> A=xy", "php>"];
    assert_eq!(stage.heard(&player, request), expected);
}

#[test]
fn a_backend_refuses_stops_and_starts() {
    let stage = Stage::new("one<- hi\none: after close\n");
    let player = Player::start(&stage.place).expect("threads");
    assert!(stage.connect("gone").is_err());
    let mut kept = stage.connect("one").expect("it listens");
    kept.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("open");
    let mut first = [0; 12];
    kept.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    player.stop("one").expect("it listens");
    assert!(stage.connect("one").is_err());
    all(&mut kept);
    player.restart("one").expect("the port is kept");
    let request = stage.expect(&player);
    let mut stream = stage.connect("one").expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("open");
    stream.read_exact(&mut first[..2]).expect("an answer");
    drop(stream);
    let expected = ["one= connection 2", "one> GET / HTTP/1.1", "one>", "one= closed"];
    assert_eq!(stage.heard(&player, request), expected);
}
