//! Packets of AJP: decoding in pieces equals decoding at once; requests stay within their packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::ajp::{AjpEvent, AjpFault, ForwardRequest, PacketDecoder};

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else { return };
    let packet_bytes = if choice & 1 == 0 { 8192 } else { 40 };
    let step = usize::from(*step).max(1);
    assert_eq!(read(bytes, step, packet_bytes), read(bytes, usize::MAX, packet_bytes));

    let texts: Vec<_> = bytes.split(|byte| *byte == 0).collect();
    let pairs = || texts.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let request = ForwardRequest {
        method: texts.first().copied().unwrap_or_default(),
        query: texts.last().copied(),
        ..ForwardRequest::default()
    };
    let mut out = Vec::new();
    let attributes = pairs().take(usize::from(choice >> 4));
    match request.write(&mut out, packet_bytes, pairs(), attributes) {
        Ok(()) => {
            assert!(out.len() <= packet_bytes && out.last() == Some(&0xff));
            assert_eq!(usize::from(u16::from_be_bytes([out[2], out[3]])), out.len() - 4);
        }
        Err(_) => assert!(out.is_empty()),
    }
});

type Said = (Option<u16>, Vec<(Vec<u8>, Vec<u8>)>, Vec<u8>, Option<bool>);

fn read(bytes: &[u8], step: usize, packet_bytes: usize) -> (Said, Option<AjpFault>) {
    let mut decoder = PacketDecoder::new(packet_bytes);
    let mut said = Said::default();
    let (mut at, mut end) = (0, 0);
    loop {
        match decoder.decode(&bytes[at..end]) {
            Ok(AjpEvent::NeedMore) if end == bytes.len() => {
                return (said, Some(decoder.end_of_input(&bytes[at..])));
            }
            Ok(AjpEvent::NeedMore) => end = bytes.len().min(end.saturating_add(step)),
            Ok(AjpEvent::Headers { consumed, headers }) => {
                at += consumed;
                said.0 = Some(headers.status);
                let fields = headers.fields();
                said.1 = fields.map(|pair| (pair.0.to_vec(), pair.1.to_vec())).collect();
            }
            Ok(AjpEvent::Body { consumed, bytes }) => {
                at += consumed;
                assert!(bytes.len() < consumed);
                said.2.extend_from_slice(bytes);
            }
            Ok(AjpEvent::GetBody { consumed, .. } | AjpEvent::Pong { consumed }) => at += consumed,
            Ok(AjpEvent::End { consumed, reuse }) => {
                assert!(at + consumed <= bytes.len());
                said.3 = Some(reuse);
                return (said, None);
            }
            Err(fault) => return (said, Some(fault)),
        }
    }
}
