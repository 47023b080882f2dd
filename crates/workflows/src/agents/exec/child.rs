//! One run of a program in its sandbox: its input goes in, its output is read within limits.

use std::future::Future;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use orchestr8_kernel::ports::Clock;
use orchestr8_process::sandbox::SandboxedCommand;
use orchestr8_process::{Ended as ProcessEnd, Killer, Tail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, Take};
use tokio::process::ChildStdin;

use crate::limits::STDERR_KEPT_BYTES;

/// How it ended, and what it said.
pub struct Ended {
    pub end: ProgramEnd,
    pub stdout: Vec<u8>,
    /// There was more on stdout than is taken.
    pub too_long: bool,
    /// The last of it.
    pub stderr: Vec<u8>,
}

/// How a program came to its end.
pub enum ProgramEnd {
    Exited(ExitStatus),
    /// It was told to stop; it was killed if it did not.
    Stopped {
        was_killed: bool,
    },
}

/// Told to stop, it is waited for until nothing of it is left. Dropped before its end, it is ended with everything it has started; only then is `turn` dropped.
pub async fn run(
    mut sandboxed: SandboxedCommand,
    (input, most): (Vec<u8>, usize),
    clock: Arc<dyn Clock>,
    turn: impl Send + 'static,
    stop: impl Future<Output = ()>,
) -> io::Result<Ended> {
    sandboxed.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = sandboxed.start(clock)?.holding(turn);
    drop(sandboxed);
    let (pipes, killer) = (child.pipes(), child.killer());
    let (Some(stdin), Some(stdout), Some(stderr)) = (pipes.stdin, pipes.stdout, pipes.stderr) else {
        return Err(io::Error::other("the pipes to the program are missing"));
    };
    let (mut out, mut too_long, mut tail) = (Vec::new(), false, Tail::new(STDERR_KEPT_BYTES));
    let talking = async {
        tokio::join!(
            tell(stdin, &input),
            hear(stdout.take(most as u64 + 1), &mut out, &mut too_long, killer),
            tail.listen(stderr)
        );
    };
    let end = match child.finish_unless(talking, stop).await? {
        ProcessEnd::Itself(status) => ProgramEnd::Exited(status),
        ProcessEnd::Stopped { is_forced } => ProgramEnd::Stopped { was_killed: is_forced },
    };
    Ok(Ended { end, stdout: out, too_long, stderr: tail.into_bytes() })
}

/// A program need not read its input, so what it does not take is not missed.
async fn tell(mut stdin: ChildStdin, input: &[u8]) {
    let _ = stdin.write_all(input).await;
}

/// Takes stdout up to one byte beyond the limit; a program that writes more is killed.
async fn hear(
    mut limited: Take<impl AsyncRead + Unpin>,
    out: &mut Vec<u8>,
    too_long: &mut bool,
    killer: Killer,
) {
    let _ = limited.read_to_end(out).await;
    if limited.limit() == 0 {
        *too_long = true;
        killer.kill();
    }
}
