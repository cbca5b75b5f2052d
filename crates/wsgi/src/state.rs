//! The state of a slot, as one word.

/// What a slot is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nothing.
    Free = 0,
    /// A loop writes a request.
    Filling = 1,
    /// The request waits for a worker.
    Queued = 2,
    /// A worker has it.
    Taken = 3,
    /// The worker has written all of the response.
    Done = 4,
    /// The loop has gone; the worker still has it.
    Abandoned = 5,
    /// The worker has died.
    Lost = 6,
}

/// A slot's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// What it is used for.
    pub kind: Kind,
    /// The lane of the loop that it belongs to.
    pub lane: u16,
    /// The worker process that it belongs to.
    pub worker: u16,
    /// When it was queued.
    pub ticket: u32,
}

/// Bits of a lane and of a worker.
const NUMBER_BITS: u32 = 12;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

impl State {
    /// A slot without use.
    pub const FREE: State = State { kind: Kind::Free, lane: 0, worker: 0, ticket: 0 };

    /// The same with another use.
    pub fn with(self, kind: Kind) -> State {
        State { kind, ..self }
    }

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.ticket) << 32
            | (u64::from(self.lane) & NUMBER_MASK) << 20
            | (u64::from(self.worker) & NUMBER_MASK) << 8
            | self.kind as u64
    }

    /// Whether a word is the state of a request that waits.
    pub(crate) fn is_queued(word: u64) -> bool {
        word & 0xff == Kind::Queued as u64
    }

    /// `None` if it is the state of no slot: only a broken worker writes one.
    pub(crate) fn unpack(word: u64) -> Option<State> {
        let number = |shift: u32| u16::try_from(word >> shift & NUMBER_MASK).unwrap_or(0);
        let kind = match word & 0xff {
            0 => Kind::Free,
            1 => Kind::Filling,
            2 => Kind::Queued,
            3 => Kind::Taken,
            4 => Kind::Done,
            5 => Kind::Abandoned,
            6 => Kind::Lost,
            _ => return None,
        };
        let ticket = u32::try_from(word >> 32).unwrap_or(0);
        Some(State { kind, lane: number(20), worker: number(8), ticket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_is_a_state_or_none(word: u64) {
            if let Some(state) = State::unpack(word) {
                prop_assert_eq!(state.pack(), word);
            }
        }
    }
}
