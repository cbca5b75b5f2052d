//! Numbers in queries and maps.

/// A number at the beginning of a text, and its length (`strtod`).
pub(crate) fn number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let unsigned = text.get(sign..).unwrap_or_default();
    let is_negative = text.first() == Some(&b'-');
    let (value, length) = match unsigned {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => hexadecimal(unsigned),
        _ => decimal(unsigned)?,
    };
    Some((if is_negative { -value } else { value }, sign + length))
}

fn hexadecimal(text: &[u8]) -> (f64, usize) {
    let digits = text.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit());
    let (mut value, mut length) = (0.0, 2);
    for digit in digits {
        value = value * 16.0 + f64::from(char::from(*digit).to_digit(16).unwrap_or(0));
        length += 1;
    }
    (value, length)
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let mut length = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = digits(whole + 1);
        if whole + fraction > 0 {
            length = whole + 1 + fraction;
        }
    }
    if length == 0 {
        return None;
    }
    if matches!(text.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some(b'-' | b'+')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    Some((text.parse().ok()?, length))
}

/// The point that a query names; `None` if it names none, or the origin, which a browser without
/// images sends.
pub(super) fn point(query: Option<&[u8]>) -> Option<[f64; 2]> {
    let query = query?;
    let comma = query.iter().position(|byte| *byte == b',')?;
    let x = first_number(query.get(..comma)?)?;
    let y = first_number(query.get(comma + 1..)?)?;
    (x != 0.0 || y != 0.0).then_some([x, y])
}

fn first_number(text: &[u8]) -> Option<f64> {
    let start = text.iter().position(u8::is_ascii_digit)?;
    Some(number(text.get(start..)?)?.0)
}

/// Reads two numbers with commas or blanks between them (`sscanf("%lf%*[, ]%lf")`).
fn pair(text: &[u8]) -> Option<[f64; 2]> {
    let text = skip(text, is_space);
    let (x, length) = number(text)?;
    let rest = text.get(length..)?;
    let after = skip(rest, |byte| matches!(byte, b',' | b' '));
    if after.len() == rest.len() {
        return None;
    }
    Some([x, number(skip(after, is_space))?.0])
}

/// Reads the next vertex. As in Apache, what follows is looked for behind whole numbers.
pub(super) fn vertex(text: &mut &[u8]) -> Option<[f64; 2]> {
    let found = pair(text)?;
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let rest = skip(skip(text, is_space), is_digit);
    let rest = rest.get(1..).unwrap_or_default();
    *text = skip(skip(rest, is_space), is_digit);
    Some(found)
}

/// Whether `isspace` is true for a byte.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

pub(super) fn skip(text: &[u8], what: impl Fn(u8) -> bool) -> &[u8] {
    let count = text.iter().take_while(|byte| what(**byte)).count();
    text.get(count..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_name_points() {
        let of = |query: &str| point(Some(query.as_bytes()));
        assert_eq!(of("10,20"), Some([10.0, 20.0]));
        assert_eq!(of("x=1.5e1;,y-0x10"), Some([15.0, 16.0]));
        assert_eq!(of("0,0"), None);
        assert_eq!(of("0,1"), Some([0.0, 1.0]));
        assert_eq!(of("1"), None);
        assert_eq!(of(",1"), None);
        assert_eq!(point(None), None);
    }

    #[test]
    fn vertices_follow_each_other() {
        let mut text = &b" 1,2 3, 4\t5 ,6 x"[..];
        assert_eq!(vertex(&mut text), Some([1.0, 2.0]));
        assert_eq!(vertex(&mut text), Some([3.0, 4.0]));
        assert_eq!(vertex(&mut text), Some([5.0, 6.0]));
        // What is left begins with the comma.
        assert_eq!(vertex(&mut text), None);
        assert_eq!(vertex(&mut &b"1.5,2"[..]), Some([1.5, 2.0]));
        assert_eq!(vertex(&mut &b"-1e2 ,.5"[..]), Some([-100.0, 0.5]));
        assert_eq!(vertex(&mut &b"1;2"[..]), None);
    }
}
