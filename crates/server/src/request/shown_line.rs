//! The request line for people to see: without the password of an absolute URL.

use std::borrow::Cow;

use wire::method::Method;
use wire::uri::{Normalize, Target, normalize_path};

use super::Request;

impl Request {
    /// The request line, with `mask` instead of the password in the URL of its target; `None`
    /// leaves the colon out, too. Source: `log_request_line`, `copy_request` (scoreboard.c),
    /// `apr_uri_unparse`.
    pub fn line_without_password(&self, mask: Option<&[u8]>) -> Cow<'_, [u8]> {
        let (line, target) = (self.head.request_line.as_slice(), self.head.unparsed_uri.as_slice());
        // Almost all targets are paths.
        if target.first().is_none_or(|byte| *byte == b'/') || self.head.method == Method::CONNECT {
            return line.into();
        }
        let Ok(target) = Target::parse(target) else { return line.into() };
        let Some((user, _)) = target.user_info.and_then(split_at_colon) else {
            return line.into();
        };
        let mut out = [&*self.head.method_name, b" "].concat();
        if let Some(scheme) = target.scheme {
            out.extend_from_slice(&[scheme, b":"].concat());
        }
        out.extend_from_slice(&[b"//", user].concat());
        if let Some(mask) = mask {
            out.extend_from_slice(&[b":", mask].concat());
        }
        out.push(b'@');
        write_host(&target, &mut out);
        self.write_path(&target, &mut out);
        if !self.head.simple {
            out.extend_from_slice(&[b" ", &*self.protocol_name()].concat());
        }
        out.into()
    }

    /// Path, query and fragment, the path as the phases have left it.
    fn write_path(&self, target: &Target<'_>, out: &mut Vec<u8>) {
        let mut path = target.path.unwrap_or_default().to_vec();
        // A strict server has refused the request before.
        if !self.connection.base_host.core.strict_protocol() {
            normalize_path(&mut path, Normalize::request(self.host.core.merge_slashes.or(true)));
        }
        out.extend_from_slice(&path);
        for (sign, part) in [(b"?", target.query), (b"#", target.fragment)] {
            if let Some(part) = part {
                out.extend_from_slice(&[sign, part].concat());
            }
        }
    }
}

/// Host and port, unless that is the scheme's own.
fn write_host(target: &Target<'_>, out: &mut Vec<u8>) {
    let (open, close): (&[u8], &[u8]) =
        if target.host_is_literal { (b"[", b"]") } else { (b"", b"") };
    out.extend_from_slice(&[open, target.host.unwrap_or_default(), close].concat());
    let number = target.port_number();
    let own = match target.scheme.unwrap_or_default().to_ascii_lowercase().as_slice() {
        b"http" => 80,
        b"https" => 443,
        b"ftp" => 21,
        _ => 0,
    };
    if let Some(port) = target.port.filter(|_| number != 0 && number != own) {
        out.extend_from_slice(&[b":", port].concat());
    }
}

fn split_at_colon(user_info: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = user_info.iter().position(|byte| *byte == b':')?;
    Some((user_info.get(..colon)?, user_info.get(colon + 1..)?))
}
