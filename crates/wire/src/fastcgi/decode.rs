//! Records of a response.

use super::{HEADER_BYTES, REQUEST_ID, VERSION, kind};
use crate::status::Status;

/// The result of one decoding step, which consumes `consumed` bytes of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// More input is needed: pass the bytes that were not consumed again, with more behind them.
    NeedMore {
        /// Bytes consumed.
        consumed: usize,
    },
    /// Output of the program, which begins with its head: the last `len` of the `consumed` bytes.
    Stdout {
        /// Bytes consumed.
        consumed: usize,
        /// Bytes of output.
        len: usize,
    },
    /// The output has ended.
    EndOfStdout {
        /// Bytes consumed.
        consumed: usize,
    },
    /// A message for the error log (`AH01071`): the last `len` of the `consumed` bytes.
    Stderr {
        /// Bytes consumed.
        consumed: usize,
        /// Bytes of the message.
        len: usize,
    },
    /// Part of the answer to `write_get_values`: the last `len` of the `consumed` bytes. Its
    /// pairs can be read once all parts are there.
    Values {
        /// Bytes consumed.
        consumed: usize,
        /// Bytes of pairs.
        len: usize,
    },
    /// A record of a type that has no meaning here begins (`AH01072`). Its content is left out.
    Ignored {
        /// Bytes consumed.
        consumed: usize,
        /// The type.
        kind: u8,
    },
    /// The response is complete. Bytes after it make the connection useless.
    End {
        /// Bytes consumed.
        consumed: usize,
        /// What the backend said of it.
        end: EndRequest,
    },
}

/// How a request ended. Apache looks at neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndRequest {
    /// The status with which the program exited.
    pub app_status: u32,
    /// 0 complete, 1 one request at a time only, 2 overloaded, 3 unknown role.
    pub protocol_status: u8,
}

/// Why a response can't be read. The connection can't be used after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The connection ended before a header, or within.
    #[error("Failed to read FastCGI header")]
    Header,
    /// Another version than 1.
    #[error("Got bogus version {0}")]
    Version(u8),
    /// Another id than that of the request.
    #[error("Got bogus rid {0}, expected {REQUEST_ID}")]
    RequestId(u16),
    /// The connection ended within a content.
    #[error("Error dispatching request")]
    Content,
    /// The connection ended within a padding.
    #[error("Error occurred reading padding")]
    Padding,
}

impl Fault {
    /// The status of the response to the client, if nothing of it was sent.
    pub const fn status(&self) -> Status {
        503
    }

    /// Apache's message number.
    pub const fn log_number(&self) -> u32 {
        match self {
            Fault::Header => 1067,
            Fault::Version(_) => 1068,
            Fault::RequestId(_) => 1069,
            Fault::Content => 1075,
            Fault::Padding => 2537,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Header,
    /// Within a content.
    Content,
    /// The content has ended; its padding may follow.
    Padding,
    Done,
}

/// Decodes the records of one response after the other; contents are not copied.
#[derive(Clone, Debug)]
pub struct RecordDecoder {
    state: State,
    kind: u8,
    /// Bytes of content to come.
    content: u16,
    /// Bytes of padding to come.
    padding: u8,
    /// The content of `END_REQUEST`, and how much of it has arrived.
    end: [u8; 8],
    end_len: u8,
    stdout_ended: bool,
    takes_values: bool,
}

impl RecordDecoder {
    /// A decoder before the first record. `takes_values` allows answers to `write_get_values`,
    /// which have the id 0; Apache, which does not ask, refuses them.
    pub const fn new(takes_values: bool) -> Self {
        RecordDecoder {
            state: State::Header,
            kind: 0,
            content: 0,
            padding: 0,
            end: [0; 8],
            end_len: 0,
            stdout_ended: false,
            takes_values,
        }
    }

    /// Prepares for the response to the next request.
    pub fn reset(&mut self) {
        *self = RecordDecoder::new(self.takes_values);
    }

    /// Performs the next step.
    pub fn decode(&mut self, buf: &[u8]) -> Result<Event, Fault> {
        let mut at = 0;
        loop {
            let rest = buf.get(at..).unwrap_or_default();
            let found = match self.state {
                State::Header => match rest.first_chunk::<HEADER_BYTES>() {
                    Some(header) => {
                        at += HEADER_BYTES;
                        self.take_header(header)?;
                        self.announce(at)
                    }
                    None => return Ok(Event::NeedMore { consumed: at }),
                },
                State::Content if rest.is_empty() => return Ok(Event::NeedMore { consumed: at }),
                State::Content => self.take_content(rest, &mut at),
                State::Padding => {
                    let len = usize::from(self.padding).min(rest.len());
                    at += len;
                    self.padding -= len as u8;
                    if self.padding > 0 {
                        return Ok(Event::NeedMore { consumed: at });
                    }
                    self.end_record();
                    None
                }
                State::Done => {
                    let end = EndRequest {
                        app_status: self.end.first_chunk().map_or(0, |be| u32::from_be_bytes(*be)),
                        protocol_status: self.end[4],
                    };
                    return Ok(Event::End { consumed: at, end });
                }
            };
            if let Some(event) = found {
                return Ok(event);
            }
        }
    }

    /// The connection has ended before [`Event::End`].
    pub const fn end_of_input(&self) -> Fault {
        match self.state {
            State::Content => Fault::Content,
            State::Padding => Fault::Padding,
            State::Header | State::Done => Fault::Header,
        }
    }

    fn take_header(&mut self, header: &[u8; HEADER_BYTES]) -> Result<(), Fault> {
        let [version, kind, id_high, id_low, len_high, len_low, padding, _] = *header;
        if version != VERSION {
            return Err(Fault::Version(version));
        }
        let id = u16::from_be_bytes([id_high, id_low]);
        let is_management = matches!(kind, kind::GET_VALUES_RESULT | kind::UNKNOWN_TYPE);
        if id != REQUEST_ID && !(id == 0 && is_management && self.takes_values) {
            return Err(Fault::RequestId(id));
        }
        self.kind = kind;
        self.content = u16::from_be_bytes([len_high, len_low]);
        self.padding = padding;
        self.state = if self.content > 0 { State::Content } else { State::Padding };
        Ok(())
    }

    /// The event of a header, if it is one by itself.
    fn announce(&mut self, consumed: usize) -> Option<Event> {
        match self.kind {
            kind::STDOUT if self.content == 0 && !self.stdout_ended => {
                self.stdout_ended = true;
                Some(Event::EndOfStdout { consumed })
            }
            kind::STDOUT | kind::STDERR | kind::END_REQUEST => None,
            kind::GET_VALUES_RESULT if self.takes_values => None,
            kind => Some(Event::Ignored { consumed, kind }),
        }
    }

    fn take_content(&mut self, rest: &[u8], at: &mut usize) -> Option<Event> {
        let len = usize::from(self.content).min(rest.len());
        *at += len;
        self.content -= len as u16;
        if self.content == 0 {
            self.state = State::Padding;
        }
        let consumed = *at;
        match self.kind {
            kind::STDOUT if !self.stdout_ended => Some(Event::Stdout { consumed, len }),
            kind::STDERR => Some(Event::Stderr { consumed, len }),
            kind::GET_VALUES_RESULT if self.takes_values => Some(Event::Values { consumed, len }),
            kind::END_REQUEST => {
                let room = self.end.iter_mut().skip(usize::from(self.end_len));
                let copied = room.zip(rest.iter().take(len)).map(|(to, from)| *to = *from).count();
                self.end_len += copied as u8;
                None
            }
            _ => None,
        }
    }

    fn end_record(&mut self) {
        let is_end = self.kind == kind::END_REQUEST;
        self.state = if is_end { State::Done } else { State::Header };
    }
}
