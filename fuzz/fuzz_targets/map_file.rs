//! Map files and SDBM files (mod_rewrite, mod_authn_dbm, mod_authz_dbm): every key that is found
//! has its value in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

// By their sources: the crate around them has no part in this, and would be instrumented too.
#[path = "../../crates/modules/src/mappers/mod_rewrite/map/index.rs"]
mod index;
#[path = "../../crates/modules/src/sdbm.rs"]
mod sdbm;

use index::Index;

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first() else { return };
    let (key, text) = rest.split_at(usize::from(*length).min(rest.len()));
    for index in [Index::of_text(text.to_vec()), Index::of_pages(text.to_vec())] {
        for key in [key, b"", b"a"] {
            if let Some(value) = index.find(key) {
                let has =
                    |part: &[u8]| part.is_empty() || text.windows(part.len()).any(|at| at == part);
                assert!(has(key) && has(value));
            }
        }
    }
});
