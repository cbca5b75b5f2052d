//! The memory that loops share with WSGI workers, where a worker writes what it likes. The input is
//! a list of steps: those of a loop, of the supervisor and of an honest worker, and bytes that are
//! written anywhere. Nothing that the loop reads takes it out of bounds, nothing makes it run on,
//! and each slot that it has done with can be used again.
#![no_main]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use libfuzzer_sys::fuzz_target;
use wire::wsgi::{DATA_BYTES, Event, FrameDecoder, LOG_BYTES};
use wsgi_memory::{DOWN_BYTES, Geometry, Kind, Known, Region, State, UP_BYTES};

const SLOTS: usize = 64;
const LANES: u16 = 3;
const PROCESSES: u16 = 3;
const LANE: u16 = 1;
const HEAD_BYTES: usize = 4096;
/// More steps find nothing new.
const STEPS: usize = 300;
/// The words of lanes, places, states and streams are before this place; contents follow.
const WORDS_BYTES: u64 = 16 << 10;

/// The rest of the input.
struct Input<'i>(&'i [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn piece(&mut self) -> &[u8] {
        let length = usize::from(self.byte().unwrap_or(0)).min(self.0.len());
        let (piece, rest) = self.0.split_at(length);
        self.0 = rest;
        piece
    }
}

/// A request of the loop: its slot, as it was queued, and its own counters.
struct Own {
    slot: u32,
    queued: State,
    written: u32,
    read: u32,
    received: Vec<u8>,
    decoder: FrameDecoder,
}

fn send(region: &Region, own: &mut Vec<Own>) {
    let Some((slot, filling)) = region.fill(LANE, None) else { return };
    let mut written = 0;
    let _ = region.down(slot).put(&mut written, &[7; 100]);
    let Some(queued) = region.publish(slot, filling) else { return };
    region.wake_worker();
    let (received, decoder) = (Vec::new(), FrameDecoder::new(HEAD_BYTES));
    own.push(Own { slot, queued, written, read: 0, received, decoder });
}

/// Reads what a worker has written, and decodes it.
fn receive(region: &Region, one: &mut Own, most: usize) -> bool {
    let before = one.received.len();
    let Ok(count) = region.up(one.slot).take(&mut one.read, most, &mut one.received) else {
        return false;
    };
    assert!(count <= most.min(UP_BYTES as usize) && one.received.len() == before + count);
    loop {
        let (consumed, length) = match one.decoder.decode(&one.received) {
            Err(_) => return false,
            Ok(Event::NeedMore { consumed }) => {
                one.received.drain(..consumed);
                return one.received.len() <= HEAD_BYTES.max(DATA_BYTES).max(LOG_BYTES) * 2;
            }
            Ok(
                Event::Head { consumed, len }
                | Event::Data { consumed, len }
                | Event::Log { consumed, len }
                | Event::Answer { consumed, len },
            ) => (consumed, len),
            Ok(
                Event::Wanted { consumed }
                | Event::Failed { consumed, .. }
                | Event::Retry { consumed }
                | Event::End { consumed },
            ) => (consumed, 0),
        };
        assert!(length <= consumed && consumed <= one.received.len() && consumed > 0);
        one.received.drain(..consumed);
    }
}

/// The slot is free, or its worker frees it, unless it has become the slot of another request.
fn release(region: &Region, one: &Own) {
    let should_look = region.release(one.slot, one.queued);
    let Some(now) = region.state(one.slot) else { panic!("the slot is lost") };
    let is_own = now.lane == one.queued.lane && now.ticket == one.queued.ticket;
    let is_left = matches!(now.kind, Kind::Free | Kind::Abandoned);
    assert!(is_left || !is_own);
    assert!(!should_look || now.kind == Kind::Abandoned);
}

fn collect(region: &Region, looks: bool) {
    region.set_looks(LANE, looks);
    region.collect(LANE, |slot| assert!(slot < region.geometry().slots()));
}

/// As a worker does at once, or once it has nothing else to do.
fn tell(region: &Region, lane: u16, slot: u32, how: u16) {
    let _ = match how & 1 {
        0 => region.tell_loop(lane, slot),
        _ => region.tell_loop_soon(lane, slot) || region.must_ring(lane),
    };
}

fn step(region: &Region, file: &File, own: &mut Vec<Own>, input: &mut Input<'_>) -> Option<()> {
    let action = input.byte()?;
    let number = u16::from(action >> 4);
    let which = usize::from(number) % own.len().max(1);
    match action & 15 {
        0 | 1 => send(region, own),
        2..=5 => {
            // Words, mostly of 64 bits at their places, and then anything.
            let place = u64::from(u32::from_le_bytes(input.bytes()?));
            let place = if place & 1 == 0 { (place % WORDS_BYTES) & !7 } else { place >> 1 };
            let value: [u8; 8] = input.bytes()?;
            let end = region.geometry().bytes() as u64;
            let _ = file.write_at(&value, place % (end - 8));
        }
        6 => {
            if let Some(one) = own.get_mut(which) {
                // What an honest worker would write, with a hostile content.
                let mut counter = one.read.wrapping_add(one.received.len() as u32);
                let _ = region.up(one.slot).put(&mut counter, input.piece());
            }
        }
        7 => collect(region, number & 1 == 0),
        8 | 9 => {
            let most = usize::from(input.byte()?) << 8 | 255;
            if own.get_mut(which).is_some_and(|one| !receive(region, one, most)) {
                release(region, &own.swap_remove(which));
            }
        }
        10 => {
            if which < own.len() {
                release(region, &own.swap_remove(which));
            }
        }
        11 => {
            if let Some(one) = own.get_mut(which) {
                region.wait_for_room(one.slot);
                if let Ok(room) = region.down(one.slot).room(one.written) {
                    assert!(room <= DOWN_BYTES as usize);
                    let put = region.down(one.slot).put(&mut one.written, input.piece());
                    assert!(put.is_ok_and(|count| count <= room));
                }
                region.nudge(one.slot);
            }
        }
        12 => {
            let taken = region.take(number % PROCESSES, &mut Known::default());
            if let Some((slot, state, _)) = taken {
                assert!(slot < region.geometry().slots() && state.kind == Kind::Taken);
                tell(region, state.lane, slot, number);
                if number > 7 {
                    region.finish(slot, state);
                }
            }
        }
        13 => region.bury_worker(number % PROCESSES),
        14 => {
            // Another loop's end: its slots are not this one's.
            region.bury_lane(if number % LANES == LANE { 0 } else { number % LANES });
        }
        _ => {
            assert!(region.queued() <= region.geometry().slots() as usize);
            for one in &mut *own {
                let _ = region.up(one.slot).available(one.read);
                region.takes_wait_for_room(one.slot, number.into());
                region.close_down(one.slot);
            }
        }
    }
    Some(())
}

fuzz_target!(|input: &[u8]| {
    let geometry = Geometry::new(SLOTS, LANES.into(), PROCESSES.into());
    let region = Region::create(geometry).expect("memory");
    let file = File::from(region.as_fd().try_clone_to_owned().expect("a descriptor"));
    let (mut own, mut input) = (Vec::new(), Input(input));
    for _ in 0..STEPS {
        if step(&region, &file, &mut own, &mut input).is_none() {
            break;
        }
    }
    for one in &own {
        release(&region, one);
    }
    region.bury_lane(LANE);
    for slot in 0..region.geometry().slots() {
        let state = region.state(slot);
        let is_left = |state: State| state.lane == LANE && state.kind != Kind::Abandoned;
        assert!(!state.is_some_and(|state| is_left(state) && state.kind != Kind::Free));
    }
});
