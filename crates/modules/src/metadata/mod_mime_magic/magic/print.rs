//! Descriptions as formats of `printf`, with one argument.

/// Most bytes that a description prints (`MAXMIMESTRING`).
const PRINTED_BYTES_MAX: usize = 255;

/// The argument of a format.
pub(super) enum Argument<'a> {
    Number(u64),
    Text(&'a [u8]),
}

/// Formats a description.
///
/// Source: `apr_vformatter`. A conversion that does not suit the argument prints nothing; in Apache
/// its outcome is undefined.
pub(super) fn print(format: &[u8], argument: &Argument<'_>) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), format);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let conversion = Conversion::take(&mut rest);
                out.extend(conversion.apply(argument));
            }
            byte => out.push(*byte),
        }
    }
    out.truncate(PRINTED_BYTES_MAX);
    super::c_string(&out).to_vec()
}

/// `%-08lx`
#[derive(Default)]
struct Conversion {
    is_left: bool,
    is_alternate: bool,
    sign: Option<u8>,
    is_padded_with_zeros: bool,
    width: usize,
    precision: Option<usize>,
    is_long: bool,
    letter: u8,
}

impl Conversion {
    fn take(rest: &mut &[u8]) -> Conversion {
        let mut conversion = Conversion::default();
        loop {
            match rest.first() {
                Some(b'-') => conversion.is_left = true,
                Some(b'+') => conversion.sign = Some(b'+'),
                Some(b' ') => conversion.sign = conversion.sign.or(Some(b' ')),
                Some(b'#') => conversion.is_alternate = true,
                Some(b'0') => conversion.is_padded_with_zeros = true,
                _ => break,
            }
            advance(rest);
        }
        conversion.width = number(rest).unwrap_or(0);
        if rest.first() == Some(&b'.') {
            advance(rest);
            conversion.precision = Some(number(rest).unwrap_or(0));
        }
        while let Some(letter @ (b'l' | b'q' | b'z' | b'h')) = rest.first() {
            conversion.is_long |= *letter != b'h';
            advance(rest);
        }
        conversion.letter = rest.first().copied().unwrap_or(0);
        advance(rest);
        conversion
    }

    fn apply(&self, argument: &Argument<'_>) -> Vec<u8> {
        let text = match (self.letter, argument) {
            (b's', Argument::Text(text)) => {
                let most = self.precision.unwrap_or(text.len());
                text.get(..most).unwrap_or(text).to_vec()
            }
            (b'c', Argument::Number(number)) => vec![*number as u8],
            (b'd' | b'i' | b'u' | b'o' | b'x' | b'X', Argument::Number(number)) => {
                return self.pad(self.digits(*number), self.is_padded_with_zeros);
            }
            (b'%', _) => return b"%".to_vec(),
            (b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' | b's' | 0, _) => return Vec::new(),
            (letter, _) => vec![b'%', letter],
        };
        self.pad(text, false)
    }

    fn digits(&self, number: u64) -> Vec<u8> {
        let number = if self.is_long { number } else { number & 0xffff_ffff };
        let signed = if self.is_long { number as i64 } else { i64::from(number as i32) };
        let (digits, prefix) = match self.letter {
            b'd' | b'i' => {
                let sign = if signed < 0 { Some(b'-') } else { self.sign };
                (
                    signed.unsigned_abs().to_string(),
                    sign.map_or(String::new(), |s| char::from(s).into()),
                )
            }
            b'o' => (format!("{number:o}"), if self.is_alternate { "0" } else { "" }.to_owned()),
            b'x' => (format!("{number:x}"), if self.is_alternate { "0x" } else { "" }.to_owned()),
            b'X' => (format!("{number:X}"), if self.is_alternate { "0X" } else { "" }.to_owned()),
            _ => (number.to_string(), String::new()),
        };
        let least = self.precision.unwrap_or(0).min(PRINTED_BYTES_MAX);
        format!("{prefix}{digits:0>least$}").into_bytes()
    }

    fn pad(&self, text: Vec<u8>, with_zeros: bool) -> Vec<u8> {
        let missing = self.width.min(PRINTED_BYTES_MAX).saturating_sub(text.len());
        if self.is_left {
            return [text, vec![b' '; missing]].concat();
        }
        if with_zeros {
            let sign = usize::from(matches!(text.first(), Some(b'-' | b'+' | b' ')));
            let (sign, digits) = text.split_at(sign);
            return [sign, vec![b'0'; missing].as_slice(), digits].concat();
        }
        [vec![b' '; missing], text].concat()
    }
}

fn advance(rest: &mut &[u8]) {
    *rest = rest.get(1..).unwrap_or_default();
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.is_empty())?;
    Some(digits.parse().unwrap_or(PRINTED_BYTES_MAX))
}
