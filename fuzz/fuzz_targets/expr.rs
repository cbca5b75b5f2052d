//! Expressions: any text is parsed, or refused at a position in it; a parsed expression has a
//! value.
#![no_main]

use std::net::IpAddr;

use conf::expr::{Backrefs, Env, Expr, Flags, NoNames, Subject, Table, Variable};
use libfuzzer_sys::fuzz_target;

/// Every name's value is its own name.
struct Echo;

impl Env for Echo {
    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(format!("{variable:?}").as_bytes());
        true
    }

    fn lookup(&mut self, _: Table, name: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(name);
        !name.is_empty()
    }

    fn client_address(&mut self) -> Option<IpAddr> {
        Some(IpAddr::from([10, 1, 2, 3]))
    }

    fn allowed(&mut self, _: Subject, text: &[u8]) -> Result<bool, pcre::Later> {
        Ok(text.is_empty())
    }
}

fuzz_target!(|text: &[u8]| {
    // Restricted: an input must not read this machine's files.
    let flags = Flags { restricted: true, ..Flags::default() };
    let parsed =
        [Expr::parse_bool(text, flags, &NoNames), Expr::parse_string(text, flags, &NoNames)];
    for result in parsed {
        match result {
            Ok(expr) => {
                let mut out = Vec::new();
                let _ = expr.eval_bool(&mut Echo, &mut Backrefs::new());
                let _ = expr.eval_string(&mut Echo, &mut Backrefs::new(), &mut out);
                if let Some(constant) = expr.constant() {
                    assert!(expr.is_constant());
                    assert_eq!(constant, out);
                }
            }
            Err(error) => assert!(error.offset + error.length <= text.len(), "{error:?}"),
        }
    }
});
