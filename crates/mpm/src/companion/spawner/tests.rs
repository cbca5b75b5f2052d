use std::io::{Read, Write, pipe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, spawn};

use super::*;
use crate::companion::order::{Limits, OrderWriter, set_key};
use crate::scoreboard::Scoreboard;

/// A spawner in a thread of its own.
struct Rig {
    line: Arc<Line>,
    thread: JoinHandle<i32>,
    last: AtomicU64,
}

/// A program that was ordered.
struct Ordered {
    input: Option<io::PipeWriter>,
    output: io::PipeReader,
    answer: OwnedFd,
    key: u64,
}

impl Rig {
    fn new(programs_max: usize) -> Rig {
        let line = Arc::new(Line::new().unwrap());
        let thread = spawn({
            let line = line.clone();
            let counts = Scoreboard::new(1, 1).unwrap().program_counts(None);
            move || run(&line, programs_max, counts)
        });
        Rig { line, thread, last: AtomicU64::new(0) }
    }

    fn order(&self, limits: &Limits, directory: &str, words: &[&str]) -> Ordered {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut order = OrderWriter::new(limits, directory.as_bytes(), words[0], &words);
        order.variable(b"PATH", b"/usr/bin:/bin");
        let (mut message, key) = (order.finish(), self.last.fetch_add(1, Ordering::Relaxed) + 1);
        set_key(&mut message, key);
        let ((input, own_input), (own_output, output)) = (pipe().unwrap(), pipe().unwrap());
        let descriptors = [input.as_fd(), output.as_fd(), output.as_fd()];
        let answer = self.line.ask_with(&message, &descriptors).unwrap();
        Ordered { input: Some(own_input), output: own_output, answer, key }
    }

    fn shell(&self, script: &str) -> Ordered {
        self.order(&Limits::default(), "/", &["/bin/sh", "-c", script])
    }

    /// Ends the line, as the end of the last asker does; returns the spawner's exit status.
    fn end(self) -> i32 {
        self.line.leave_to_companion();
        self.thread.join().unwrap()
    }
}

impl Ordered {
    /// What it writes up to its end, and how it ends.
    fn end(mut self) -> (String, Outcome) {
        self.input = None;
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        (text, outcome(self.answer))
    }

    /// Reads a line.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            self.output.read_exact(&mut byte).unwrap();
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap().trim().to_owned()
    }
}

fn outcome(answer: OwnedFd) -> Outcome {
    rustix::io::ioctl_fionbio(&answer, false).unwrap();
    let mut bytes = Vec::new();
    File::from(answer).read_to_end(&mut bytes).unwrap();
    Outcome::read(&bytes).unwrap()
}

/// Waits until a process has ended, as its parent sees it.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_runs_with_its_descriptors_and_its_end_is_told() {
    let rig = Rig::new(8);
    let mut ordered = rig.shell("cat; pwd; echo error >&2; exit 3");
    ordered.input.as_mut().unwrap().write_all(b"body\n").unwrap();
    assert_eq!(ordered.end(), ("body\n/\nerror\n".to_owned(), Outcome::Ended(3 << 8)));
    let killed = rig.shell("kill -9 $$");
    assert_eq!(killed.end().1, Outcome::Ended(9));
    assert_eq!(rig.end(), 0);
}

#[test]
fn a_program_finds_a_clean_process() {
    let rig = Rig::new(8);
    let limits = Limits {
        cpu_seconds: (Some(7), None),
        processes: (Some(900), Some(1000)),
        ..Limits::default()
    };
    // SIGPIPE and SIGXFSZ, which the server ignores.
    let script = "ulimit -t; ulimit -u; ulimit -Hu; env; while read name mask; do case $name in \
                  SigIgn:) echo ignored $((0x$mask & 0x1001000));; esac; done < /proc/$$/status; \
                  ls /proc/self/fd | wc -w; read one two three four five rest < /proc/$$/stat; \
                  test $$ = $five && echo leads";
    let script = ["/bin/bash", "-c", script];
    let (text, outcome) = rig.order(&limits, "/usr", &script).end();
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("SHLVL") && !line.starts_with("_=")).collect();
    // `ls` has the three standard descriptors and the folder.
    let expected =
        ["7", "900", "1000", "PWD=/usr", "PATH=/usr/bin:/bin", "ignored 0", "4", "leads"];
    let mut sorted = (lines.clone(), expected.to_vec());
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    assert_eq!(sorted.0, sorted.1, "{text}");
    assert_eq!(outcome, Outcome::Ended(0));
    rig.end();
}

#[test]
fn what_can_t_be_started_is_told() {
    let rig = Rig::new(8);
    let none = Limits::default();
    let order = |directory, program| rig.order(&none, directory, &[program]).end().1;
    assert_eq!(order("/", "/none"), Outcome::NotStarted(Step::Execute, libc::ENOENT));
    assert_eq!(order("/", "/etc/passwd"), Outcome::NotStarted(Step::Execute, libc::EACCES));
    assert_eq!(order("/none", "/bin/true"), Outcome::NotStarted(Step::Prepare, libc::ENOENT));
    let null = File::open("/dev/null").unwrap();
    for (message, count) in [(&b"no order"[..], 3), (b"no descriptors", 2)] {
        let answer = rig.line.ask_with(message, &vec![null.as_fd(); count]).unwrap();
        assert_eq!(outcome(answer), Outcome::NotStarted(Step::Prepare, libc::EINVAL));
    }
    rig.end();
}

#[test]
fn an_order_may_be_in_a_file() {
    let rig = Rig::new(8);
    let long = "x".repeat(100_000);
    let words: [&[u8]; 4] = [b"/bin/sh", b"-c", b"echo ${#0}", long.as_bytes()];
    let message = OrderWriter::new(&Limits::default(), b"/", b"/bin/sh", &words).finish();
    let file = rustix::fs::memfd_create(c"order", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut file = File::from(file);
    file.write_all(&message).unwrap();
    let (mut own, output) = pipe().unwrap();
    let null = File::open("/dev/null").unwrap();
    let descriptors = [null.as_fd(), output.as_fd(), null.as_fd(), file.as_fd()];
    let answer = rig.line.ask_with(b"file", &descriptors).unwrap();
    drop(output);
    let mut text = String::new();
    own.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), outcome(answer)), ("100000\n", Outcome::Ended(0)));
    rig.end();
}

#[test]
fn a_program_whose_asker_leaves_is_ended_with_what_it_started() {
    let rig = Rig::new(8);
    let mut ordered = rig.shell("sleep 1000 & echo $!; wait");
    let child = ordered.line();
    drop(ordered);
    wait_until(|| is_gone(&child));
    // A process that the program has left behind is not ended.
    let mut left = rig.shell("sleep 1000 >/dev/null 2>&1 & echo $!");
    let child = left.line();
    assert_eq!(left.end().1, Outcome::Ended(0));
    assert!(!is_gone(&child));
    nix::sys::signal::kill(Pid::from_raw(child.parse().unwrap()), Signal::SIGKILL).unwrap();
    rig.end();
}

#[test]
fn a_program_whose_asker_has_its_output_is_ended_alone() {
    let rig = Rig::new(8);
    for _ in 0..20 {
        let mut ordered = rig.shell("sleep 1000 >&- 2>&- & echo $! $$; exec >&- 2>&-; wait");
        let line = ordered.line();
        let (child, own) = line.split_once(' ').unwrap();
        // What came before the notice on the line does not delay it.
        let others: Vec<Ordered> = (0..3).map(|_| rig.shell("true")).collect();
        rig.line.tell(&ordered.key.to_ne_bytes()).unwrap();
        drop(ordered);
        wait_until(|| is_gone(own));
        assert!(!is_gone(child));
        nix::sys::signal::kill(Pid::from_raw(child.parse().unwrap()), Signal::SIGKILL).unwrap();
        others.into_iter().for_each(|other| assert_eq!(other.end().1, Outcome::Ended(0)));
    }
    // Notices of no program.
    rig.line.tell(b"?").unwrap();
    rig.line.tell(&u64::MAX.to_ne_bytes()).unwrap();
    assert_eq!(rig.shell("echo on").end(), ("on\n".to_owned(), Outcome::Ended(0)));
    rig.end();
}

#[test]
fn no_two_programs_that_run_have_the_same_key() {
    let rig = Rig::new(8);
    let mut first = rig.shell("echo runs; cat");
    assert_eq!(first.line(), "runs");
    rig.last.store(0, Ordering::Relaxed);
    let second = rig.shell("echo never").end().1;
    assert_eq!(second, Outcome::NotStarted(Step::Prepare, libc::EINVAL));
    assert_eq!(first.end().1, Outcome::Ended(0));
    rig.end();
}

#[test]
fn a_program_that_does_not_end_is_killed() {
    let rig = Rig::new(8);
    let mut ordered = rig.shell("trap '' TERM; echo $$; while :; do sleep 1; done");
    let pid = ordered.line();
    drop(ordered);
    wait_until(|| is_gone(&pid));
    rig.end();
}

#[test]
fn orders_beyond_the_limit_wait_and_are_refused() {
    let rig = Rig::new(1);
    let mut first = rig.shell("echo runs; cat");
    assert_eq!(first.line(), "runs");
    let mut waiting: Vec<Ordered> = (0..QUEUE_MAX)
        .map(|_| {
            loop {
                // The line is shorter than the queue.
                let order = OrderWriter::new(&Limits::default(), b"/", b"/bin/echo", &[b"echo"]);
                let ((input, own_input), (own_output, output)) = (pipe().unwrap(), pipe().unwrap());
                let descriptors = [input.as_fd(), output.as_fd(), output.as_fd()];
                match rig.line.ask_with(&order.finish(), &descriptors) {
                    Ok(answer) => {
                        let (input, output) = (Some(own_input), own_output);
                        break Ordered { input, output, answer, key: 0 };
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        })
        .collect();
    assert_eq!(rig.shell("echo never").end(), (String::new(), Outcome::Busy));
    // One that no longer waits is not started.
    waiting.truncate(3);
    drop(waiting.pop());
    assert_eq!(first.end().1, Outcome::Ended(0));
    for ordered in waiting {
        assert_eq!(ordered.end(), ("\n".to_owned(), Outcome::Ended(0)));
    }
    rig.end();
}

#[test]
fn orders_that_are_withdrawn_take_no_place() {
    let rig = Rig::new(1);
    let mut first = rig.shell("echo runs; cat");
    assert_eq!(first.line(), "runs");
    (0..3).for_each(|_| drop(rig.shell("echo never")));
    let waiting = rig.shell("echo now");
    assert_eq!(first.end().1, Outcome::Ended(0));
    // No other order comes that would wake the spawner.
    assert_eq!(waiting.end(), ("now\n".to_owned(), Outcome::Ended(0)));
    rig.end();
}

#[test]
fn the_end_of_the_line_ends_the_programs() {
    let rig = Rig::new(8);
    let mut ordered = rig.shell("echo $$; exec sleep 1000");
    let pid = ordered.line();
    assert_eq!(rig.end(), 0);
    assert!(is_gone(&pid));
}
