//! How a host speaks HTTP/2 (mod_http2). The connection acts on it.

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
    /// Whether a request of HTTP/1.1 may ask for it (`H2Upgrade`); `None`: in clear only.
    pub upgrade: Option<bool>,
    /// How long a stream waits for its client (`H2StreamTimeout`); `None`: as long as `Timeout`.
    pub stream_timeout: Option<Duration>,
    /// Bytes of random padding: up to a power of two (`H2Padding`).
    pub padding_bits: u8,
    /// Whether requests name their host in the target, as a forward proxy needs it
    /// (`H2ProxyRequests`).
    pub is_forward_proxy: bool,
    /// Whether WebSockets may use a stream (`H2WebSockets`).
    pub has_websockets: bool,
}

impl Default for Http2 {
    fn default() -> Http2 {
        Http2 {
            streams: 100,
            window_bytes: 65_535,
            data_bytes: 0,
            direct: None,
            upgrade: None,
            stream_timeout: None,
            padding_bits: 0,
            is_forward_proxy: false,
            has_websockets: false,
        }
    }
}
