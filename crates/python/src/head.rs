//! The head of a request as the loop sends it: texts that are separated by NUL.

/// Texts before the environ.
pub(crate) const TEXTS: usize = 8;

/// A head.
pub(crate) struct Head<'h> {
    pub texts: [&'h [u8]; TEXTS],
    /// Names and values.
    pub environ: &'h [u8],
}

impl<'h> Head<'h> {
    /// What is missing is empty.
    pub fn parse(head: &'h [u8]) -> Head<'h> {
        let mut left = head;
        let texts = std::array::from_fn(|_| {
            let end = left.iter().position(|byte| *byte == 0).unwrap_or(left.len());
            let text = left.get(..end).unwrap_or_default();
            left = left.get(end + 1..).unwrap_or_default();
            text
        });
        Head { texts, environ: left }
    }

    /// Whether it is for the application of a script, and for no handler.
    pub fn is_plain(&self) -> bool {
        let [kind, .., handler_script, _, _] = self.texts;
        kind == b"r" && handler_script.is_empty()
    }

    /// The path of the script.
    pub fn script(&self) -> &'h [u8] {
        self.texts[1]
    }

    /// The name of the application in it.
    pub fn callable(&self) -> &'h [u8] {
        self.texts[2]
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.texts[3].contains(&flag)
    }

    /// When the request came, in seconds since 1970.
    pub fn received(&self) -> f64 {
        let micros = self.texts[7];
        let is_number = !micros.is_empty() && micros.len() < 17;
        let digits = micros.iter().filter(|byte| is_number && byte.is_ascii_digit());
        digits.fold(0u64, |all, digit| all * 10 + u64::from(digit - b'0')) as f64 / 1e6
    }
}
