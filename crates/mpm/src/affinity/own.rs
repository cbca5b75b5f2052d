//! What a loop's thread tells about itself on the scoreboard: where it runs, how often it was
//! moved, how long it waited.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::meter::ThreadMeter;
use crate::scoreboard::LoopSlot;

/// As much of a thread's `sched` as is looked at.
const SCHED_BYTES: usize = 4096;
/// The line of `sched` that counts migrations.
const MIGRATIONS: &str = "se.nr_migrations";

/// Open files of the thread that made it. To be used on that thread.
#[derive(Debug)]
pub struct OwnMeter {
    times: Option<ThreadMeter>,
    /// `/proc/thread-self/sched`, where the kernel has it (`CONFIG_SCHED_DEBUG`).
    sched: Option<File>,
}

impl OwnMeter {
    /// Opens what there is: in a `ChrootDir` without /proc nothing.
    pub fn open() -> Self {
        let times = File::open("/proc/thread-self/schedstat").ok();
        let sched = File::open("/proc/thread-self/sched").ok();
        Self { times: times.map(ThreadMeter::of), sched }
    }

    /// Publishes. Two reads of open files, a few microseconds.
    pub fn publish(&mut self, slot: &LoopSlot) {
        slot.set_cpu(Some(rustix::thread::sched_getcpu()));
        if let Some(times) = &mut self.times
            && times.elapsed().is_some()
        {
            slot.set_run_delay_us(times.total().wait_us);
        }
        if let Some(migrations) = self.sched.as_ref().and_then(migrations) {
            slot.set_migrations(migrations);
        }
    }
}

fn migrations(sched: &File) -> Option<u64> {
    let mut bytes = [0; SCHED_BYTES];
    let length = sched.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(bytes.get(..length)?);
    let line = text.lines().find(|line| line.starts_with(MIGRATIONS))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Scoreboard;

    #[test]
    fn a_thread_tells_where_it_is() {
        let (board, slot) = Scoreboard::of_one_loop().unwrap();
        OwnMeter::open().publish(&slot);
        let seen = board.snapshot().processes.remove(0).loops.remove(0);
        let allowed = crate::affinity::mask::current().unwrap();
        assert!(seen.cpu.is_some_and(|cpu| allowed.contains(cpu)), "{:?}", seen.cpu);
    }

    #[test]
    fn migrations_are_found_in_the_kernels_text() {
        let path = std::env::temp_dir().join(format!("mpm-sched-{}", std::process::id()));
        let text = "loop (1, #threads: 2)\nse.exec_start   :  1.5\nse.nr_migrations  :     17\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(migrations(&File::open(&path).unwrap()), Some(17));
        std::fs::write(&path, "nothing\n").unwrap();
        assert_eq!(migrations(&File::open(&path).unwrap()), None);
        std::fs::remove_file(path).unwrap();
    }
}
