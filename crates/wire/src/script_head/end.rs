//! Where mod_proxy_fcgi takes a head for complete.

/// Finds CR LF CR LF or LF LF in pieces of output (`handle_headers`). Unlike the parser of lines,
/// Apache does not see the end in LF CR LF there, nor before the first line. Output without it is
/// all body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndOfHead {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Cr,
    CrLf,
    CrLfCr,
    Lf,
}

impl EndOfHead {
    /// Looks at the next piece: the bytes of it that belong to the head, if it ends there.
    pub fn find(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            self.state = match (self.state, byte) {
                (State::CrLfCr | State::Lf, b'\n') => return Some(at + 1),
                (State::Cr, b'\n') => State::CrLf,
                (State::CrLf, b'\r') => State::CrLfCr,
                (_, b'\r') => State::Cr,
                (_, b'\n') => State::Lf,
                _ => State::Text,
            };
        }
        None
    }
}
