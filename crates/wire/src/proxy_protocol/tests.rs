use super::*;

fn client(text: &str) -> Option<SocketAddr> {
    Some(text.parse().unwrap())
}

fn refusal(input: &[u8]) -> (u32, String) {
    match decode(input) {
        Progress::Refused(why) => (why.log_number, why.message),
        other => panic!("{other:?}"),
    }
}

fn v2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([command, family]);
    header.extend(u16::try_from(addresses.len()).unwrap().to_be_bytes());
    header.extend(addresses);
    header
}

#[test]
fn a_line_names_the_client() {
    let line = b"PROXY TCP4 192.0.2.1 192.0.2.9 4711 80\r\nGET / HTTP/1.0\r\n\r\n";
    let done = Progress::Done { consumed: 40, client: client("192.0.2.1:4711") };
    assert_eq!(decode(line), done);
    for end in 0..40 {
        assert_eq!(decode(&line[..end]), Progress::NeedMore, "{end}");
    }
    let v6 = decode(b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n");
    assert_eq!(v6, Progress::Done { consumed: 32, client: client("[2001:db8::1]:1") });
    let unknown = decode(b"PROXY UNKNOWN x\r\nGET");
    assert_eq!(unknown, Progress::Done { consumed: 17, client: None });
}

#[test]
fn a_line_is_read_as_apache_reads_it() {
    let port = |text: &str| match decode(format!("PROXY TCP4 8.8 1 {text}\r\n").as_bytes()) {
        Progress::Done { client: Some(client), .. } => (client.ip().to_string(), client.port()),
        other => panic!("{other:?}"),
    };
    assert_eq!(port("5x"), ("8.0.0.8".to_owned(), 5));
    assert_eq!(port("65536").1, 0);
    assert_eq!(port("-1").1, 65535);
    assert_eq!(port("99999999999999999999999").1, 65535);
    let of = |text: &[u8]| refusal(&[b"PROXY ", text, b"\r\n"].concat()).0;
    assert_eq!(of(b"TCP4 8.8.8.8.8 1 5"), 3502);
    assert_eq!(of(b"TCP4 08.8.8.8 1 5"), 3502);
    assert_eq!(of(b"TCP4 256.1.1.1 1 5"), 3502);
    assert_eq!(of(b"TCP4 4294967296 1 5"), 3502);
    assert_eq!(of(b"TCP4 8.8.8.x 1 5"), 3500);
    assert_eq!(of(b"TCP6 8.8.8.8 1 5"), 3502);
    assert_eq!(of(b"TCP4 8.8.8.8 1 x"), 3501);
    assert_eq!(of(b"tcp4 8.8.8.8 1 5"), 3499);
    let (number, message) = refusal(b"PROXY TCP4 8.8\0.8.8 1 5\r\n");
    let why = "RemoteIPProxyProtocol: no destination-address found in header 'PROXY TCP4 8.8'";
    assert_eq!((number, message.as_str()), (3497, why));
}

#[test]
fn a_line_that_ends_otherwise_takes_the_next() {
    let next = b"PROXY TCP4 8.8.8.8 1.1.1.1 5 6\nGET / HTTP/1.0\r\nHost: a\r\n\r\n";
    assert_eq!(decode(next), Progress::Done { consumed: 47, client: client("8.8.8.8:5") });
    // As Apache, which has read the end of this one before it looks for a line.
    assert_eq!(decode(b"PROXY UNKNOWN\r\n"), Progress::NeedMore);
    assert_eq!(refusal(b"PROXY UNKNOWN\r\nGET / HTTP/1.0\r\n").0, 3513);
    let mut long = b"PROXY TCP4 8.8.8.8 1.1.1.1 5 6 ".to_vec();
    long.resize(106, b'x');
    assert_eq!(decode(&long), Progress::NeedMore);
    let fits = [&long[..], b"\r\n"].concat();
    assert!(matches!(decode(&fits), Progress::Done { consumed: 108, .. }));
    let (number, message) = refusal(&[&long[..], b"x\r\n"].concat());
    let why = "RemoteIPProxyProtocol header too long, got 94 expected 93";
    assert_eq!((number, message.as_str()), (10185, why));
    assert_eq!(decode(b"PROXY TCP4 1 1 5\rx\r\n"), Progress::NeedMore);
}

#[test]
fn a_binary_header_names_the_client() {
    let header = v2(0x21, 0x11, &[192, 0, 2, 1, 1, 1, 1, 1, 0x12, 0x67, 0, 80, 4, 0, 0]);
    let done = Progress::Done { consumed: 31, client: client("192.0.2.1:4711") };
    assert_eq!(decode(&[&header[..], b"GET"].concat()), done);
    for end in 0..header.len() {
        assert_eq!(decode(&header[..end]), Progress::NeedMore, "{end}");
    }
    let mut v6 = [0; 36];
    v6[..2].copy_from_slice(&[0x20, 1]);
    v6[33] = 7;
    let done = Progress::Done { consumed: 52, client: client("[2001::]:7") };
    assert_eq!(decode(&v2(0x21, 0x21, &v6)), done);
    let local = Progress::Done { consumed: 18, client: None };
    assert_eq!(decode(&v2(0x20, 0x99, b"xx")), local);
}

#[test]
fn a_binary_header_of_another_kind_is_refused() {
    assert_eq!(refusal(&v2(0x22, 0x11, &[0; 12])).0, 3507);
    assert_eq!(refusal(&v2(0x21, 0x12, &[0; 12])).0, 10183);
    assert_eq!(refusal(&v2(0x21, 0x11, &[0; 11])).0, 10597);
    assert_eq!(refusal(&v2(0x21, 0x21, &[0; 35])).0, 10598);
    assert_eq!(refusal(&v2(0x21, 0x11, &[0; 217])).0, 10186);
    // Another version is no header at all.
    assert_eq!(refusal(&v2(0x11, 0x11, &[0; 12])).0, 0);
    assert_eq!(refusal(b"GET / HTTP/1.1\r\n").0, 0);
}
