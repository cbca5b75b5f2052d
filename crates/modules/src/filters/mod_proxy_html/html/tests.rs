use proptest::prelude::*;

use super::*;

/// The events, as text.
#[derive(Default)]
struct Events(String);

impl Sink for Events {
    fn start(&mut self, name: &Name, attributes: &[Attribute]) {
        self.0 += &format!("<{name:?}");
        for (name, value) in attributes {
            let value = value.as_ref().map(|value| String::from_utf8_lossy(value));
            self.0 += &format!(" {}={value:?}", String::from_utf8_lossy(name));
        }
        self.0 += ">";
    }

    fn end(&mut self, name: &Name) {
        self.0 += &format!("</{name:?}>");
    }

    fn text(&mut self, text: &[u8]) {
        self.0 += &String::from_utf8_lossy(text);
    }

    fn cdata(&mut self, text: &[u8]) {
        // A text may come in several pieces.
        self.0 += &String::from_utf8_lossy(text).replace('<', "{");
    }

    fn comment(&mut self, text: &[u8]) {
        self.0 += &format!("[{}]", String::from_utf8_lossy(text));
    }
}

fn events(pieces: &[&[u8]]) -> String {
    let mut parser = Parser::new(Some(Charset::Utf8));
    let mut events = Events::default();
    for piece in pieces {
        parser.push(piece, &mut events).unwrap();
    }
    parser.end(&mut events).unwrap();
    events.0
}

fn whole(text: &str) -> String {
    events(&[text.as_bytes()])
}

#[test]
fn elements_are_added_and_closed() {
    assert_eq!(whole("a<p>b<p>c"), "<html><body><p>a</p><p>b</p><p>c</p></body></html>");
    let table = "<table><tr><td>1<td>2<tr><th>3</table>";
    let expected = "<html><body><table><tr><td>1</td><td>2</td></tr><tr><th>3</th></tr></table>\
        </body></html>";
    assert_eq!(whole(table), expected);
    assert_eq!(
        whole("<title>x</title>y"),
        "<html><head><title>x</title></head><body><p>y</p></body></html>"
    );
}

#[test]
fn what_breaks_off_is_not_closed() {
    assert_eq!(whole("<p>x<"), "<html><body><p>x");
    assert_eq!(whole("<p>x<a href"), "<html><body><p>x<a href=None></p></body></html>");
    assert_eq!(
        whole("<html><body>x</body></html>\n y<b>"),
        "<html><body>x</body></html><html><p>\n y"
    );
}

#[test]
fn the_first_wrong_byte_ends_utf8() {
    let text = b"<p>\xc3\xa9\xe9 \xc3\xa9</p>";
    assert_eq!(events(&[text]), "<html><body><p>\u{e9}\u{e9} \u{c3}\u{a9}</p></body></html>");
    let value = b"<p title='\xe9'>";
    assert_eq!(events(&[value]), "<html><body><p title=Some(\"\u{c3}\")></p></body></html>");
}

#[test]
fn depth_and_tokens_have_a_limit() {
    let mut parser = Parser::new(Some(Charset::Utf8));
    let deep = "<i>".repeat(70_000);
    let end = parser.push(deep.as_bytes(), &mut Events::default());
    assert_eq!(end.and_then(|()| parser.end(&mut Events::default())), Err(TooLarge));
    let mut parser = Parser::new(Some(Charset::Utf8));
    let piece = [b'x'; 1 << 16];
    let mut outcome = parser.push(b"<!--", &mut Events::default());
    for _ in 0..400 {
        outcome = outcome.and_then(|()| parser.push(&piece, &mut Events::default()));
    }
    assert_eq!(outcome, Err(TooLarge));
}

#[test]
fn a_nul_in_a_script_is_a_blank_wherever_the_script_is_cut() {
    assert_eq!(whole("<script>x\0"), "<html><head><script>x </script></head></html>");
    let pieces = events(&[b"<script>x", b"\0"]);
    assert_eq!(pieces, whole("<script>x\0"));
}

/// Documents of pieces that matter to the parser.
fn documents() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "<p>",
            "</p>",
            "<a href=\"x&amp;y\">",
            "<b",
            " c='d' ",
            ">",
            "/>",
            "<!--",
            "-->",
            "--!>",
            "&lt;",
            "&",
            "&#",
            "x41;",
            "<script>",
            "</script>",
            "<style>",
            "</sty",
            "<html>",
            "</html>",
            "<body>",
            "</body>",
            "<head>",
            "<title>",
            "</title>",
            "<table>",
            "<td>",
            "<?x",
            "<!DOCTYPE html>",
            "<!",
            "<meta charset=windows-1251>",
            "\n",
            " ",
            "é",
            "\u{1f600}",
            "x",
            "<",
            "\"",
            "'",
            "=",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::sample::select(vec![0x00u8, 0xe9, 0xff, 0xc3, 0x80, 0x01])
            .prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn events_do_not_depend_on_cuts(document in documents()) {
        let at_once = events(&[&document]);
        let bytes: Vec<&[u8]> = document.chunks(1).collect();
        prop_assert_eq!(&events(&bytes), &at_once);
        for cut in 0..=document.len() {
            let (before, after) = document.split_at(cut);
            prop_assert_eq!(&events(&[before, after]), &at_once);
        }
    }

    #[test]
    fn any_bytes_are_parsed(document in prop::collection::vec(any::<u8>(), 0..200)) {
        let at_once = events(&[&document]);
        let bytes: Vec<&[u8]> = document.chunks(1).collect();
        prop_assert_eq!(&events(&bytes), &at_once);
    }
}
