//! Compares values of expressions with Apache's, which are in `expr_values.txt`.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use conf::expr::{Backrefs, Env, Expr, Flags, NoNames, Subject, Table, Variable};

/// A request from 127.0.0.1 without further values.
struct Request;

impl Env for Request {
    fn variable(&mut self, _: Variable, _: &mut Vec<u8>) -> bool {
        false
    }

    fn lookup(&mut self, _: Table, _: &[u8], _: &mut Vec<u8>) -> bool {
        false
    }

    fn client_address(&mut self) -> Option<IpAddr> {
        Some(IpAddr::from([127, 0, 0, 1]))
    }

    fn allowed(&mut self, _: Subject, _: &[u8]) -> Result<bool, pcre::Later> {
        Ok(false)
    }
}

#[test]
fn values_are_those_of_apache() {
    let recorded = include_str!("expr_values.txt");
    let mut count = 0;
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, text, wanted] = fields.as_slice() else { panic!("{line}") };
        assert_eq!(value(kind, text), *wanted, "{text}");
        count += 1;
    }
    assert!(count > 70, "only {count} expressions");
}

fn value(kind: &str, text: &str) -> String {
    let text = text.as_bytes();
    if kind == "b" {
        let expr = Expr::parse_bool(text, Flags::default(), &NoNames).unwrap();
        let value = expr.eval_bool(&mut Request, &mut Backrefs::new()).unwrap();
        return if value { "True".to_owned() } else { "False".to_owned() };
    }
    let expr = Expr::parse_string(text, Flags::default(), &NoNames).unwrap();
    let mut out = Vec::new();
    expr.eval_string(&mut Request, &mut Backrefs::new(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
