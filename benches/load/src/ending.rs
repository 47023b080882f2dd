//! The end of a server that was started for a measurement.
use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::time::{Duration, Instant};

/// Longer than any server takes that ends at all.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// Asks it to end, as an operator would, and ends it if it does not: one that counts what it runs writes that down at its end.
pub fn end(mut child: Child) {
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(PAUSE);
    }
    let _ = child.kill();
    let _ = child.wait();
}
