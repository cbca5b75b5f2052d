//! HTML (mod_proxy_html): the events of a page do not depend on how it is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By their source: the crate around them has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/filters/mod_xml2enc/charset.rs"]
#[allow(dead_code)]
mod charset;
#[allow(dead_code, unused_imports)]
#[path = "../../crates/modules/src/filters/mod_proxy_html/html/mod.rs"]
mod html;

/// The path by which the parser names the character sets.
mod filters {
    pub mod mod_xml2enc {
        pub(crate) use crate::charset;
    }
}

use html::{Attribute, Name, Parser, Sink};

/// The events, as bytes.
#[derive(Default)]
struct Events(Vec<u8>);

impl Sink for Events {
    fn start(&mut self, name: &Name, attributes: &[Attribute]) {
        self.0.extend(format!("<{name:?} {attributes:?}>").bytes());
    }

    fn end(&mut self, name: &Name) {
        self.0.extend(format!("</{name:?}>").bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
    }

    fn cdata(&mut self, text: &[u8]) {
        self.0.extend_from_slice(text);
    }

    fn comment(&mut self, text: &[u8]) {
        self.0.extend([b"[", text, b"]"].concat());
    }
}

fn events<'p>(
    charset: Option<charset::Charset>,
    pieces: impl Iterator<Item = &'p [u8]>,
) -> Result<Vec<u8>, html::TooLarge> {
    let mut parser = Parser::new(charset);
    let mut events = Events::default();
    for piece in pieces {
        parser.push(piece, &mut events)?;
    }
    parser.end(&mut events)?;
    Ok(events.0)
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, page)) = input.split_first() else { return };
    let charset = match kind % 4 {
        0 => None,
        1 => Some(charset::Charset::Utf8),
        2 => Some(charset::Charset::Latin1),
        _ => charset::Charset::of(b"shift_jis"),
    };
    let at_once = events(charset, std::iter::once(page));
    let size = usize::from(kind / 4) + 1;
    assert_eq!(events(charset, page.chunks(size)), at_once);
    assert_eq!(events(charset, page.chunks(1)), at_once);
});
