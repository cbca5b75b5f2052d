//! Forms of logins (mod_auth_form): what is read does not depend on how a form is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By its source: the crate around it has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/aaa/mod_auth_form/fields.rs"]
mod fields;

use fields::{Fields, TooLong};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn read(pieces: &[&[u8]], most: usize) -> Option<Pairs> {
    let (mut fields, mut pairs) = (Fields::new(most), Pairs::new());
    let mut take = |name: &[u8], value: &[u8]| pairs.push((name.to_vec(), value.to_vec()));
    for piece in pieces {
        let Ok(()) = fields.read(piece, &mut take).map_err(|TooLong| ()) else { return None };
    }
    fields.end(&mut take);
    Some(pairs)
}

fuzz_target!(|input: &[u8]| {
    let Some((at, text)) = input.split_first() else { return };
    let (first, second) = text.split_at(usize::from(*at).min(text.len()));
    let whole = read(&[text], 1000);
    assert_eq!(whole, read(&[first, second], 1000));
    let bytes: usize = whole.iter().flatten().map(|(name, value)| name.len() + value.len()).sum();
    assert!(bytes <= text.len());
});
