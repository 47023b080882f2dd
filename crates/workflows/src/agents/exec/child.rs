//! One run of a program: its input goes in, what it says is heard within limits.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use orchestr8_kernel::ports::Clock;
use orchestr8_process::{Child, Killer, Tail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

use super::program::Program;
use crate::limits::{OUTPUT_BYTES, STDERR_KEPT_BYTES};

/// How it ended, and what it said.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// There was more on stdout than is taken.
    pub too_long: bool,
    /// The last of it.
    pub stderr: Vec<u8>,
}

/// Its environment is only what it is given. Dropped before its end, it is ended with everything it has started.
pub async fn run(program: &Program, input: Vec<u8>, clock: Arc<dyn Clock>) -> io::Result<Ended> {
    let mut command = Command::new(&program.path);
    command
        .args(&program.args)
        .env_clear()
        .envs(&program.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    let mut child = Child::start(&mut command, clock)?;
    let (pipes, killer) = (child.pipes(), child.killer());
    let (Some(stdin), Some(stdout), Some(stderr)) = (pipes.stdin, pipes.stdout, pipes.stderr) else {
        return Err(io::Error::other("the pipes to the program are missing"));
    };
    let (mut out, mut too_long, mut tail) = (Vec::new(), false, Tail::new(STDERR_KEPT_BYTES));
    let talking = async {
        tokio::join!(tell(stdin, &input), hear(stdout, &mut out, &mut too_long, killer), tail.listen(stderr));
    };
    let status = child.finish(talking).await?;
    Ok(Ended { status, stdout: out, too_long, stderr: tail.into_bytes() })
}

/// A program need not read its input, so what it does not take is not missed.
async fn tell(mut stdin: ChildStdin, input: &[u8]) {
    let _ = stdin.write_all(input).await;
}

/// Takes stdout up to the limit; a program that writes more is killed.
async fn hear(stdout: impl AsyncRead + Unpin, out: &mut Vec<u8>, too_long: &mut bool, killer: Killer) {
    let mut limited = stdout.take(OUTPUT_BYTES as u64 + 1);
    let _ = limited.read_to_end(out).await;
    if out.len() > OUTPUT_BYTES {
        *too_long = true;
        killer.kill();
    }
}
