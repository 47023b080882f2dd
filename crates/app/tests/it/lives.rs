//! The lives of one server: started on the same data again and again, killed in between, and where clients find it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use orchestr8_kernel::ports::random::{Random, Seeded};

use crate::program::PATIENCE;
use crate::server::Server;

/// Kills of one run; `O8_KILL_CYCLES` makes it more.
const CYCLES: u64 = 200;

/// A server is killed at a random moment after what was waited for.
const MOMENT_US: u64 = 20_000;

/// Where the server is, as long as it lives, and how far its clients have come.
#[derive(Default)]
pub struct Lives {
    address: Mutex<(u64, Option<SocketAddr>)>,
    changed: Condvar,
    progress: AtomicU64,
    news: Condvar,
    counted: Mutex<()>,
    over: AtomicBool,
}

/// Ends the waiting of clients when it is dropped while a test fails.
pub struct Watch<'l>(pub &'l Lives);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

impl Lives {
    fn post(&self, address: Option<SocketAddr>) {
        let mut board = self.address.lock().unwrap();
        *board = (board.0 + 1, address);
        self.changed.notify_all();
    }

    /// Waits for a server that was not there at `seen`. Panics when there will be none.
    pub fn server_after(&self, seen: u64) -> (u64, SocketAddr) {
        let mut board = self.address.lock().unwrap();
        loop {
            assert!(!self.over.load(Ordering::SeqCst), "the test has failed elsewhere");
            match *board {
                (generation, Some(address)) if generation > seen => return (generation, address),
                _ => board = self.changed.wait(board).unwrap(),
            }
        }
    }

    /// Lets go whoever waits for a server, if the test ends before it should.
    pub fn give_up(&self) {
        self.over.store(true, Ordering::SeqCst);
        let _board = self.address.lock();
        self.changed.notify_all();
    }

    /// Something has come on.
    pub fn advance(&self) {
        self.progress.fetch_add(1, Ordering::SeqCst);
        let _counted = self.counted.lock().unwrap();
        self.news.notify_all();
    }

    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::SeqCst)
    }

    /// Until so much more has come on.
    pub fn wait_for(&self, more: u64) {
        let wanted = self.progress() + more;
        let mut counted = self.counted.lock().unwrap();
        while self.progress() < wanted {
            let (back, timed_out) = self.news.wait_timeout(counted, PATIENCE).unwrap();
            assert!(!timed_out.timed_out(), "the clients make no progress");
            counted = back;
        }
    }

    /// Starts a server that clients find from now on.
    pub fn begin(&self, start: impl FnOnce() -> Server) -> Server {
        let server = start();
        self.post(Some(server.address));
        server
    }

    /// Starts and kills servers: each after up to so much progress, and a random moment more.
    pub fn go_through(&self, cycles: u64, most: u64, mut start: impl FnMut(u64) -> Server) {
        let mut random = random(cycles);
        let (_never, nothing) = channel::<()>();
        for cycle in 0..cycles {
            let server = self.begin(|| start(cycle));
            self.wait_for(random(most));
            let _ = nothing.recv_timeout(Duration::from_micros(random(MOMENT_US)));
            server.kill();
            self.post(None);
        }
    }
}

/// Whole numbers below a limit, always the same ones for the same seed.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let source = Seeded::new(seed);
    move |below| (source.unit() * below as f64) as u64
}

pub fn cycles() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a test is told by its environment how long to go on")]
    let wanted = std::env::var("O8_KILL_CYCLES").ok();
    wanted.map_or(CYCLES, |text| text.parse().unwrap())
}
