//! Where a server expects the data connection.

/// The port in the text of a reply to `EPSV`: `(|||port|)`, with any byte for `|`
/// (`parse_epsv_reply`).
pub fn epsv_port(text: &[u8]) -> Option<u16> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    let rest = text.get(open + 1..)?;
    let (&[mark, second, third], number) = rest.split_first_chunk()?;
    if mark != second || mark != third || number.first() == Some(&mark) {
        return None;
    }
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let port = std::str::from_utf8(number.get(..digits)?).ok()?.parse().ok()?;
    let is_whole = number.get(digits..)?.starts_with(&[mark, b')']);
    (is_whole && port != 0).then_some(port)
}

/// The numbers of the address, and the port, in the text of a reply to `PASV`: six of them behind
/// the first word, in brackets or after `=`.
pub fn pasv_address(text: &[u8]) -> Option<([i32; 4], u16)> {
    let start = text.iter().position(|byte| *byte != b' ')?;
    let text = text.get(start..)?;
    let rest = text.get(text.iter().position(|byte| *byte == b' ')? + 1..)?;
    let numbers = match rest.strip_prefix(b"=") {
        Some(numbers) => numbers,
        None => {
            let start = rest.iter().position(|byte| *byte != b'(')?;
            let rest = rest.get(start..)?;
            let open = rest.iter().position(|byte| *byte == b'(')?;
            let inner = rest.get(open + 1..)?;
            let start = inner.iter().position(|byte| *byte != b')')?;
            inner.get(start..)?.split(|byte| *byte == b')').next()?
        }
    };
    let [a, b, c, d, high, low] = six(numbers)?;
    Some(([a, b, c, d], (high.wrapping_shl(8).wrapping_add(low)) as u16))
}

/// Six numbers, as `sscanf` reads them with commas between.
fn six(mut text: &[u8]) -> Option<[i32; 6]> {
    let mut numbers = [0; 6];
    for (at, number) in numbers.iter_mut().enumerate() {
        if at > 0 {
            text = text.strip_prefix(b",")?;
        }
        text = text.trim_ascii_start();
        let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
        let digits = text.get(sign..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (own, rest) = text.split_at_checked(sign + digits)?;
        *number = std::str::from_utf8(own).ok()?.parse().ok()?;
        text = rest;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epsv_names_a_port() {
        assert_eq!(epsv_port(b"Entering (|||6446|)"), Some(6446));
        assert_eq!(epsv_port(b"(!!!1!)."), Some(1));
        for text in ["", "(", "(|||", "(||||)", "(|||0|)", "(|||65536|)", "(||1|)", "(|||1|"] {
            assert_eq!(epsv_port(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn pasv_names_an_address() {
        let home = Some(([127, 0, 0, 1], 0x0102));
        assert_eq!(pasv_address(b"Entering Passive Mode (127,0,0,1,1,2)"), home);
        assert_eq!(pasv_address(b"Entering =127,0,0,1,1,2 x"), home);
        assert_eq!(pasv_address(b"Entering Passive (127, 0,0,1,1,2"), home);
        for text in ["", "x", "Passive 127,0,0,1,1,2", "x y (1,2,3,4,5)", "x (1,2,3,4,5,6)"] {
            assert_eq!(pasv_address(text.as_bytes()), None, "{text}");
        }
    }
}
