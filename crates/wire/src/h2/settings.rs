//! Settings (RFC 9113 section 6.5).

use super::connection::Failure;
use super::window::{INITIAL_BYTES, LARGEST};
use super::{Code, frame};

/// Identifiers.
pub(super) const HEADER_TABLE_SIZE: u16 = 1;
pub(super) const ENABLE_PUSH: u16 = 2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
pub(super) const NO_RFC7540_PRIORITIES: u16 = 9;

/// Most settings of one frame; each has six bytes, and all known ones are fewer.
const SETTINGS_LIMIT: usize = 32;

/// What the peer has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub header_table_bytes: u32,
    pub enable_push: bool,
    pub initial_window_bytes: u32,
    pub frame_bytes: u32,
    pub streams: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            header_table_bytes: 4096,
            enable_push: true,
            initial_window_bytes: INITIAL_BYTES,
            frame_bytes: frame::PAYLOAD_BYTES as u32,
            streams: u32::MAX,
        }
    }
}

impl Settings {
    /// Takes over a frame's settings; if one is repeated, the last counts.
    pub fn update(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Failure(Code::FRAME_SIZE_ERROR, "SETTINGS of a wrong size"));
        }
        if entries.len() > SETTINGS_LIMIT {
            return Err(Failure(Code::ENHANCE_YOUR_CALM, "too many settings"));
        }
        for [a, b, value @ ..] in entries {
            self.set(u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value))?;
        }
        Ok(())
    }

    fn set(&mut self, identifier: u16, value: u32) -> Result<(), Failure> {
        let wrong = |why| Err(Failure(Code::PROTOCOL_ERROR, why));
        match (identifier, value) {
            (HEADER_TABLE_SIZE, _) => self.header_table_bytes = value,
            (ENABLE_PUSH, 0 | 1) => self.enable_push = value == 1,
            (MAX_CONCURRENT_STREAMS, _) => self.streams = value,
            (ENABLE_PUSH, _) => return wrong("invalid ENABLE_PUSH"),
            (INITIAL_WINDOW_SIZE, _) if i64::from(value) > LARGEST => {
                let why = "INITIAL_WINDOW_SIZE is too large";
                return Err(Failure(Code::FLOW_CONTROL_ERROR, why));
            }
            (INITIAL_WINDOW_SIZE, _) => self.initial_window_bytes = value,
            (MAX_FRAME_SIZE, 16_384..=0xff_ffff) => self.frame_bytes = value,
            (MAX_FRAME_SIZE, _) => return wrong("invalid MAX_FRAME_SIZE"),
            (ENABLE_CONNECT_PROTOCOL, 2..) => return wrong("invalid ENABLE_CONNECT_PROTOCOL"),
            (NO_RFC7540_PRIORITIES, 2..) => return wrong("invalid NO_RFC7540_PRIORITIES"),
            _ => {}
        }
        Ok(())
    }
}
