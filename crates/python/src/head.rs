//! The head of a request as the loop sends it: texts that are separated by NUL.

/// Bytes of a length, which precedes a head and each piece of a body.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Texts before the environ.
pub(crate) const TEXTS: usize = 8;

/// A head.
pub(crate) struct Head<'h> {
    pub texts: [&'h [u8]; TEXTS],
    /// Names and values.
    pub environ: &'h [u8],
}

impl<'h> Head<'h> {
    /// Of a head with its length. What is missing is empty.
    pub fn parse(head: &'h [u8]) -> Head<'h> {
        let mut left = head.get(LENGTH_BYTES..).unwrap_or_default();
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

    /// What the loop knows of the script's file: the time in microseconds, its number, and its
    /// size. `None` if it does not know the file that the worker sees.
    pub fn identity(&self) -> Option<Identity> {
        let mut numbers = self.texts[4].split(|byte| *byte == b' ').map(number);
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    }

    /// When the request came, in seconds since 1970.
    pub fn received(&self) -> f64 {
        number(self.texts[7]).unwrap_or(0) as f64 / 1e6
    }
}

/// What tells a file from another one: its time in microseconds, number, and size.
pub(crate) type Identity = (u64, u64, u64);

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
