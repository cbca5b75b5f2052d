//! The incremental parser of request heads.

use super::{HeadError, HeadFlags, Version};
use super::{HeadLimits, HeadOptions, LogLevel, Progress, RequestHead};
use crate::method::Method;

/// Parser state that lives across reads of one head. Call [`HeadParser::reset`] between requests.
#[derive(Debug, Default, Clone)]
pub struct HeadParser {
    scanned: usize,
}

impl HeadParser {
    /// A parser at the start of a head.
    pub fn new() -> Self {
        HeadParser::default()
    }

    /// Ready for the next head.
    pub fn reset(&mut self) {
        *self = HeadParser::default();
    }

    /// Parses `buf`, which holds the head from its first byte on and grows from call to call,
    /// into `head` (cleared before the first call).
    pub fn parse(
        &mut self,
        head: &mut RequestHead,
        buf: &[u8],
        limits: &HeadLimits,
        options: &HeadOptions<'_>,
    ) -> Progress {
        self.scanned = buf.len();
        let mut fields = [const { std::mem::MaybeUninit::uninit() }; 100];
        let mut request = httparse::Request::new(&mut []);
        match request.parse_with_uninit_headers(buf, &mut fields) {
            Ok(httparse::Status::Complete(consumed)) if consumed > limits.line_bytes => {
                refuse(414, 565, "request-line exceeds LimitRequestLine")
            }
            Ok(httparse::Status::Complete(consumed)) => {
                let name = request.method.unwrap_or_default().as_bytes();
                let target = request.path.unwrap_or_default().as_bytes();
                head.line.extend_from_slice(name);
                head.line.push(b' ');
                head.line.extend_from_slice(target);
                head.method_len = name.len();
                head.target = (name.len() + 1, head.line.len());
                head.line.extend_from_slice(b" HTTP/1.1");
                head.protocol = (head.target.1 + 1, head.line.len());
                head.method = Method::of(name, options.methods);
                head.header_only = name == b"HEAD";
                head.version = Version(1000 + u32::from(request.version.unwrap_or(1)));
                for field in request.headers.iter() {
                    head.flags.set(HeadFlags::of_field(field.name.as_bytes()));
                    head.headers.add(field.name.as_bytes(), field.value);
                }
                Progress::Done { consumed }
            }
            Ok(httparse::Status::Partial) => Progress::NeedMore,
            Err(_) => refuse(400, 566, "malformed request line"),
        }
    }
}

fn refuse(status: u16, log_number: u32, message: &str) -> Progress {
    Progress::Error(Box::new(HeadError {
        status,
        log_number,
        level: LogLevel::Error,
        message: message.into(),
        notes: Vec::new(),
    }))
}
