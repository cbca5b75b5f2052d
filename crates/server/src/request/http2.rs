//! How a host speaks HTTP/2 (mod_http2). The connection acts on it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a host. A connection has those of the host of its address or handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Most requests at a time (`H2MaxSessionStreams`).
    pub streams: u32,
    /// Bytes of a request's body that may wait for its handler (`H2WindowSize`).
    pub window_bytes: u32,
    /// Bytes of a DATA frame (`H2MaxDataFrameLen`); 0 for the protocol's limit.
    pub data_bytes: usize,
    /// Whether a connection may begin with HTTP/2 (`H2Direct`); `None`: in clear only.
    pub direct: Option<bool>,
    /// How long a stream waits for its client (`H2StreamTimeout`); `None`: as long as `Timeout`.
    pub stream_timeout: Option<Duration>,
    /// The records of TLS (`H2TLSWarmUpSize`, `H2TLSCoolDownSecs`); `None`: full ones always.
    pub warm_up: Option<WarmUp>,
    /// Bytes of random padding: up to a power of two (`H2Padding`).
    pub padding_bits: u8,
    /// Whether requests name their host in the target, as a forward proxy needs it
    /// (`H2ProxyRequests`).
    pub is_forward_proxy: bool,
    /// Whether WebSockets may use a stream (`H2WebSockets`).
    pub has_websockets: bool,
    /// Whether responses are pushed (`H2Push`).
    pub pushes: bool,
    /// How many pushed responses a connection remembers (`H2PushDiarySize`).
    pub push_diary: usize,
    /// The places of pushed responses, by media type or `*` (`H2PushPriority`).
    pub push_places: Vec<(Box<[u8]>, PushPlace)>,
    /// Whether responses 103 are sent (`H2EarlyHints`).
    pub has_early_hints: bool,
}

/// When records of TLS are small, so that a client can use what has come of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// So many bytes of a connection are sent in small records (`H2TLSWarmUpSize`).
    pub bytes: u64,
    /// After so long without sending, records are small again (`H2TLSCoolDownSecs`).
    pub cool_down: Duration,
}

impl Http2 {
    /// The place of a pushed response of this media type, which may have parameters.
    pub fn push_place(&self, media_type: &[u8]) -> PushPlace {
        let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii();
        let find =
            |wanted: &[u8]| self.push_places.iter().find(|(media_type, _)| **media_type == *wanted);
        find(essence).or_else(|| find(b"*")).map_or(PushPlace::After, |(_, place)| *place)
    }
}

/// When a pushed response is sent, compared to the one that has caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushPlace {
    /// `After`
    After,
    /// `Before`
    Before,
    /// `Interleaved`
    Beside,
}

/// What a directory's configuration says about responses over HTTP/2.
#[derive(Clone, Debug, Default)]
pub struct Http2Dir {
    /// Whether a request of HTTP/1.1 may ask for HTTP/2 (`H2Upgrade`); `None`: in clear only.
    pub upgrade: Option<bool>,
    /// Whether nothing is pushed because of them (`H2Push off`).
    pub declines_pushes: bool,
    /// The fields of a response 103 that precedes them, as lines (`H2PushResource`,
    /// `H2EarlyHint`); none if there is no such response.
    pub hints: Option<Arc<[u8]>>,
}

/// What a request knows of pushed responses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pushing {
    /// Whether its client accepts any (`H2PUSH`).
    pub is_accepted: bool,
    /// Whether the configuration of its directory declines them.
    pub is_declined: bool,
    /// The stream because of which its own response is pushed.
    pub by: Option<NonZeroU32>,
}

impl Default for Http2 {
    fn default() -> Http2 {
        Http2 {
            streams: 100,
            window_bytes: 65_535,
            data_bytes: 0,
            direct: None,
            stream_timeout: None,
            warm_up: None,
            padding_bits: 0,
            is_forward_proxy: false,
            has_websockets: false,
            pushes: true,
            push_diary: 256,
            push_places: Vec::new(),
            has_early_hints: false,
        }
    }
}
