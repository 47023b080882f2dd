//! Notices that the reader of stdout is gone before anything is written to it.
//!
//! A write finds that out too, but only the next one: without this the work in flight would end as if its client were still there.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};

/// The watch; dropped, it ends.
pub struct ReaderWatch {
    _wake: PipeWriter,
}

impl ReaderWatch {
    /// Calls `gone` once the other end of a pipe or socket is closed, from a thread of its own. A file has no other end.
    pub fn start(output: &impl AsFd, gone: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        const STACK_BYTES: usize = 65_536;
        let output = output.as_fd().try_clone_to_owned()?;
        let (woken, wake) = io::pipe()?;
        let thread = std::thread::Builder::new().name("mcp-watch".into()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            if is_closed(&output, &woken) {
                gone();
            }
        })?;
        Ok(Self { _wake: wake })
    }
}

/// Waits for the end of the reader or of the watch, and says whether it was the reader's.
fn is_closed(output: &OwnedFd, woken: &PipeReader) -> bool {
    loop {
        // Nothing is asked for: errors and hang-ups are always told.
        let mut ends = [PollFd::new(output, PollFlags::empty()), PollFd::new(woken, PollFlags::empty())];
        match poll(&mut ends, None) {
            Ok(_) if !ends[1].revents().is_empty() => return false,
            Ok(_) if !ends[0].revents().is_empty() => return true,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
