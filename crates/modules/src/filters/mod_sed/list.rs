//! `l`: a line with its unprintable bytes in octal.

use super::output::Output;

/// Bytes of a line of output before the backslash that continues it.
const WIDTH: usize = 71;

/// Prints a line. Source: `LCOM` in `command`.
pub(crate) fn list(text: &[u8], out: &mut Output) {
    let mut line = Vec::with_capacity(WIDTH + 1);
    for byte in text {
        let (shown, length) = shown(*byte);
        for byte in shown.into_iter().take(length) {
            line.push(byte);
            if line.len() >= WIDTH {
                line.push(b'\\');
                out.line(&line);
                line.clear();
            }
        }
    }
    out.line(&line);
}

/// What is printed of a byte, and how much of that counts.
fn shown(byte: u8) -> ([u8; 4], usize) {
    let digit = |shift: u8| b'0' + (byte >> shift & 7);
    match byte {
        b'\n' | b' '..=b'~' => ([byte, 0, 0, 0], 1),
        0..b' ' => ([b'\\', digit(3), digit(0), 0], 3),
        0x7f => (*b"\\177", 4),
        // Apache shifts a signed number.
        0x80.. => {
            let first = b'0'.wrapping_add_signed(byte.cast_signed() >> 6);
            ([b'\\', first, digit(3), digit(0)], 4)
        }
    }
}
