use std::task::Waker;

use rt::BlockingLimits;

use super::*;

/// A pool that runs its jobs at once.
fn pool() -> Arc<BlockingPool> {
    Arc::new(BlockingPool::new(BlockingLimits { threads: 0, queue: 1 }))
}

fn piece(number: usize) -> Bytes {
    vec![number as u8; 50_000 + number].into()
}

/// Takes everything out of it.
fn rest(spool: &mut Spool) -> Vec<u8> {
    let mut all = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(chunk)) = spool.poll_next(&mut cx) {
        match chunk {
            Chunk::Bytes(bytes) => all.extend_from_slice(&bytes),
            Chunk::File(slice) => {
                let mut bytes = vec![0; slice.length as usize];
                slice.file.read_exact_at(&mut bytes, slice.offset).unwrap();
                all.extend_from_slice(&bytes);
            }
            Chunk::Flush => {}
        }
    }
    assert!(spool.is_empty());
    all
}

#[test]
fn what_was_written_comes_back_in_order() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut spool = Spool::new(Limits { each: 2_000_000, total: u64::MAX }, pool());
    let mut expected = Vec::new();
    for number in 0..100 {
        if !spool.has_room() {
            break;
        }
        spool.push(piece(number));
        expected.extend_from_slice(&piece(number));
        spool.poll_write(&mut cx);
    }
    // The limit, but for the last write.
    assert!((1_700_000..=2_000_000).contains(&expected.len()), "{}", expected.len());
    assert!(spool.written > 1_500_000 && spool.gathered_bytes < WRITE_BYTES);
    assert!(rest(&mut spool) == expected);
    assert!(!spool.has_room());
}

#[test]
fn what_can_not_be_written_stays_in_memory() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut spool = Spool::new(Limits { each: u64::MAX / 2, total: u64::MAX }, pool());
    let failing: Writing = Box::pin(async { Err(io::ErrorKind::StorageFull.into()) });
    spool.writing = Some((failing, vec![piece(1), piece(2)]));
    spool.push(piece(3));
    spool.poll_write(&mut cx);
    assert!(!spool.has_room());
    assert!(rest(&mut spool) == [piece(1), piece(2), piece(3)].concat());
}

#[test]
fn all_files_share_a_limit() {
    let counter = AtomicU64::new(0);
    let mut one = Reserved { counter: &counter, bytes: 0 };
    let mut two = Reserved { counter: &counter, bytes: 0 };
    assert!(one.grow(600, 1000) && !two.grow(600, 1000) && two.grow(400, 1000));
    drop(one);
    assert!(two.grow(600, 1000));
    drop(two);
    assert_eq!(counter.load(Relaxed), 0);
}
