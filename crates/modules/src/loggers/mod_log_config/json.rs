//! The `json` format, and JSON strings.

/// One object per line, valid JSON for any input. `%{…}J` writes an item as a JSON string, or
/// `null` without a value.
pub const FORMAT: &[u8] = concat!(
    r#"{"time":%J{%{begin:%Y-%m-%dT%H:%M:%S%:z}t},"client":%J{%a},"host":%J{%v},"#,
    r#""user":%J{%u},"request":%J{%r},"method":%J{%m},"path":%J{%U},"query":%J{%q},"#,
    r#""protocol":%J{%H},"status":%>s,"bytes":%B,"duration_us":%D,"#,
    r#""referer":%J{%{Referer}i},"user_agent":%J{%{User-agent}i}}"#
)
.as_bytes();

/// Writes bytes as a JSON string (RFC 8259 section 7); invalid UTF-8 becomes U+FFFD.
pub fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for letter in String::from_utf8_lossy(bytes).chars() {
        match letter {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\r' => out.extend_from_slice(b"\\r"),
            control if control < ' ' || control == '\u{7f}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
            }
            plain => {
                let mut utf8 = [0; 4];
                out.extend_from_slice(plain.encode_utf8(&mut utf8).as_bytes());
            }
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn anything_becomes_a_string() {
        let mut out = Vec::new();
        string(b"a\"\\\x00\xff\n", &mut out);
        assert_eq!(out, "\"a\\\"\\\\\\u0000\u{fffd}\\n\"".as_bytes());
    }
}
