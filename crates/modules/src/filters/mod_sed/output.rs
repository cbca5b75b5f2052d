//! What a script prints.

/// Bytes of Apache's buffer (`MODSED_OUTBUF_SIZE`).
const BUFFER_BYTES: usize = 8000;

/// Buffers that Apache fills before it passes them on (`MAX_TRANSIENT_BUCKETS`): the length of a
/// longer response is not known when its head is sent.
const BUFFERS_MAX: usize = 50;

/// The output of a script.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// What was printed and not taken yet.
    pub text: Vec<u8>,
    /// Bytes in the buffer that Apache would be filling.
    filled: usize,
    /// Buffers that it would have filled.
    buffers: usize,
}

impl Output {
    /// Prints a line.
    pub fn line(&mut self, line: &[u8]) {
        self.write(line);
        self.write(b"\n");
    }

    /// Prints a text. Source: `sed_write_output`.
    pub fn write(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        let room = BUFFER_BYTES - self.filled;
        if text.len() < room {
            self.filled += text.len();
            return;
        }
        self.buffers += 1;
        self.filled = 0;
        match text.len() - room {
            rest if rest >= BUFFER_BYTES => self.buffers += 1,
            rest => self.filled = rest,
        }
    }

    /// Whether Apache would have sent the head of the response before this.
    pub fn is_passed_on(&self) -> bool {
        self.buffers >= BUFFERS_MAX
    }

    /// The same at the end of the output.
    pub fn is_passed_on_at_end(&self) -> bool {
        self.buffers + usize::from(self.filled > 0) >= BUFFERS_MAX
    }
}
