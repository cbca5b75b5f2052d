//! Frames that carry no part of a request.

use super::connection::{Connection, Event, Failure};
use super::frame::{self, Head, flag, kind};
use super::receive::{Outcome, depends_on, frame_size, protocol};
use super::stream::State;
use super::{Code, ledger};
use crate::priority::Priority;

/// Priorities of requests that are yet to come; beyond that the oldest is forgotten.
const EARLY_PRIORITIES: usize = 16;

impl Connection {
    /// Priorities by dependency (RFC 7540) are of no effect.
    pub(super) fn priority(&mut self, head: Head, payload: &[u8]) -> Outcome {
        if head.stream == 0 {
            return protocol("PRIORITY on stream 0");
        }
        let is_known = self.find(head.stream).is_some();
        match payload.len() {
            5 if depends_on(payload) == Some(head.stream) && is_known => {
                self.stream_error(head.stream, Code::PROTOCOL_ERROR)
            }
            5 if depends_on(payload) == Some(head.stream) => {
                protocol("a stream that depends on itself")
            }
            5 => self.pay(ledger::Event::Frame),
            _ if is_known => self.stream_error(head.stream, Code::FRAME_SIZE_ERROR),
            _ => frame_size("PRIORITY of a wrong size"),
        }
    }

    /// A change of a priority (RFC 9218 section 7.1), perhaps of a request that is yet to come.
    pub(super) fn priority_update(&mut self, head: Head, payload: &[u8]) -> Outcome {
        let Some((id, value)) = payload.split_first_chunk() else {
            return frame_size("PRIORITY_UPDATE of a wrong size");
        };
        let id = u32::from_be_bytes(*id) & 0x7fff_ffff;
        let is_pushed = id.is_multiple_of(2);
        if head.stream != 0 || id == 0 || is_pushed && self.is_unused(id) {
            return protocol("invalid PRIORITY_UPDATE");
        }
        self.pay(ledger::Event::Frame)?;
        let priority = Priority::parse(value);
        if self.find(id).is_some() {
            self.events.push_back(Event::Priority { stream: id, priority });
        } else if !is_pushed && id > self.seen {
            self.early_priorities.retain(|(of, _)| *of != id);
            if self.early_priorities.len() == EARLY_PRIORITIES {
                self.early_priorities.pop_front();
            }
            self.early_priorities.push_back((id, priority));
        }
        Ok(())
    }

    pub(super) fn rst_stream(&mut self, head: Head, payload: &[u8]) -> Outcome {
        if payload.len() != 4 {
            return frame_size("RST_STREAM of a wrong size");
        }
        if head.stream == 0 || self.is_unused(head.stream) {
            return protocol("RST_STREAM on a stream that is not open");
        }
        if let Some(stream) = self.find(head.stream).filter(|stream| stream.state != State::Closed)
        {
            stream.state = State::Closed;
            let code = frame::number(payload).map_or(Code::NO_ERROR, Code);
            self.events.push_back(Event::Reset { stream: head.stream, code });
        }
        // No frame that follows was sent in ignorance of a reset by this end.
        self.reset.retain(|reset| *reset != head.stream);
        // Clients cancel pushed responses that they have or do not want: that is no attack.
        let is_pushed = head.stream.is_multiple_of(2);
        self.pay(if is_pushed { ledger::Event::Frame } else { ledger::Event::Reset })
    }

    pub(super) fn settings(&mut self, head: Head, payload: &[u8]) -> Outcome {
        if head.stream != 0 {
            return protocol("SETTINGS on a stream");
        }
        self.pay(ledger::Event::Frame)?;
        if head.has(flag::ACK) {
            if !payload.is_empty() {
                return frame_size("SETTINGS ACK is not empty");
            }
            self.confirmed();
            return Ok(());
        }
        self.apply_settings(payload)?;
        frame::write(kind::SETTINGS, flag::ACK, 0, &[], &mut self.output);
        Ok(())
    }

    /// Takes over the client's settings.
    pub(super) fn apply_settings(&mut self, payload: &[u8]) -> Outcome {
        let before = self.peer.initial_window_bytes;
        self.peer.update(payload)?;
        self.encoder.set_limit(self.peer.header_table_bytes as usize);
        let change = i64::from(self.peer.initial_window_bytes) - i64::from(before);
        if change != 0 {
            let mut streams = self.streams.iter_mut();
            if !streams.all(|stream| stream.send_window.grant(change)) {
                return Err(Failure(Code::FLOW_CONTROL_ERROR, "a window becomes too large"));
            }
            self.events.push_back(Event::Window { stream: 0 });
        }
        Ok(())
    }

    pub(super) fn ping(&mut self, head: Head, payload: &[u8]) -> Outcome {
        if head.stream != 0 {
            return protocol("PING on a stream");
        }
        if payload.len() != 8 {
            return frame_size("PING of a wrong size");
        }
        self.pay(ledger::Event::Frame)?;
        if head.has(flag::ACK) {
            self.events.push_back(Event::Pong);
        } else {
            frame::write(kind::PING, flag::ACK, 0, payload, &mut self.output);
        }
        Ok(())
    }

    pub(super) fn goaway(&mut self, head: Head, payload: &[u8]) -> Outcome {
        if head.stream != 0 {
            return protocol("GOAWAY on a stream");
        }
        if payload.len() < 8 {
            return frame_size("GOAWAY of a wrong size");
        }
        self.pay(ledger::Event::Frame)?;
        let last = frame::number(payload).unwrap_or(0) & 0x7fff_ffff;
        self.events.push_back(Event::Leaves { last });
        self.peer_left = true;
        Ok(())
    }

    pub(super) fn window_update(&mut self, head: Head, payload: &[u8]) -> Outcome {
        let Some(grant) = frame::number(payload).filter(|_| payload.len() == 4) else {
            return frame_size("WINDOW_UPDATE of a wrong size");
        };
        let grant = i64::from(grant & 0x7fff_ffff);
        self.pay(ledger::Event::Update)?;
        if grant == 0 {
            return protocol("WINDOW_UPDATE of 0 bytes");
        }
        if head.stream == 0 {
            if !self.send_window.grant(grant) {
                let why = "the connection's window becomes too large";
                return Err(Failure(Code::FLOW_CONTROL_ERROR, why));
            }
        } else {
            if self.is_unused(head.stream) {
                return protocol("WINDOW_UPDATE on a stream that is not open");
            }
            let Some(stream) = self.find(head.stream).filter(|stream| stream.may_send()) else {
                return Ok(());
            };
            if !stream.send_window.grant(grant) {
                return self.stream_error(head.stream, Code::FLOW_CONTROL_ERROR);
            }
        }
        self.events.push_back(Event::Window { stream: head.stream });
        Ok(())
    }
}
