//! A response to a check, and whether it passes. Source: `hc_read_headers`, `hc_check_http`.

use std::net::IpAddr;

use conf::expr::{Backrefs, Env, Expr, Subject, Table, Variable};
use pcre::Later;

use super::OF_FUNCTION;

/// A response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub method: &'static str,
    pub status: u16,
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The response with this head, which ends before the empty line; `None` if it is none.
    pub fn parse(method: &'static str, head: &[u8]) -> Option<Response> {
        let mut lines = head.split(|byte| *byte == b'\n');
        let first = lines.next()?.trim_ascii_end();
        let status = first.get(9..12).filter(|_| first.starts_with(b"HTTP/1."))?;
        let status = std::str::from_utf8(status).ok()?.parse().ok()?;
        let mut fields = Vec::new();
        for line in lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = line.split_at(colon);
            fields.push((name.to_vec(), value.get(1..)?.trim_ascii().to_vec()));
        }
        Some(Response { method, status, fields, body: Vec::new() })
    }

    /// The first field of a name.
    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        let is_it = |(own, _): &&(Vec<u8>, Vec<u8>)| own.eq_ignore_ascii_case(name);
        self.fields.iter().find(is_it).map(|(_, value)| value.as_slice())
    }

    /// Whether it fulfils a condition; without one its status has to be 2xx or 3xx.
    ///
    /// # Errors
    /// Why the condition can't be evaluated.
    pub fn passes(&mut self, condition: Option<&Expr>) -> Result<bool, String> {
        match condition {
            None => Ok((200..400).contains(&self.status)),
            Some(condition) => {
                let value = condition.eval_bool(self, &mut Backrefs::new());
                value.map_err(|why| why.to_string())
            }
        }
    }
}

impl Env for Response {
    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) -> bool {
        match variable {
            Variable::RequestStatus => out.extend_from_slice(self.status.to_string().as_bytes()),
            Variable::RequestMethod => out.extend_from_slice(self.method.as_bytes()),
            Variable::ServerProtocol => out.extend_from_slice(b"HTTP/1.0"),
            Variable::ContentType => match self.field(b"Content-Type") {
                Some(value) => out.extend_from_slice(value),
                None => return false,
            },
            _ => return false,
        }
        true
    }

    fn lookup(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) -> bool {
        let value = self.field(name).filter(|_| table == Table::ResponseHeader);
        value.map(|value| out.extend_from_slice(value)).is_some()
    }

    fn client_address(&mut self) -> Option<IpAddr> {
        None
    }

    fn allowed(&mut self, _: Subject, _: &[u8]) -> Result<bool, Later> {
        Ok(false)
    }

    fn module_function(&mut self, id: u32, argument: &[u8], out: &mut Vec<u8>) -> bool {
        let name = match id & 0xffff == u32::from(OF_FUNCTION) {
            true => argument,
            false => argument.get(3..).unwrap_or_default(),
        };
        let is_body = name.eq_ignore_ascii_case(b"BODY");
        if is_body {
            out.extend_from_slice(&self.body);
        }
        is_body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_a_status_and_fields() {
        let response = Response::parse("GET", b"HTTP/1.1 204 No\r\nA: b \r\nC:d").unwrap();
        assert_eq!((response.status, response.field(b"a")), (204, Some(&b"b"[..])));
        assert_eq!(response.field(b"c"), Some(&b"d"[..]));
        for bad in ["", "HTTP/2 200", "HTTP/1.1 2x0 OK", "HTTP/1.1 200 OK\r\nno colon", "x"] {
            assert_eq!(Response::parse("GET", bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn statuses_of_success_and_redirections_pass() {
        for (status, passes) in [(199, false), (200, true), (399, true), (400, false)] {
            let mut response = Response { status, ..Response::default() };
            assert_eq!(response.passes(None), Ok(passes), "{status}");
        }
    }
}
