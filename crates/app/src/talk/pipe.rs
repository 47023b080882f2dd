//! The face of sessions, run in this process at the other end of a pipe.

use orchestr8_contract::Code;
use orchestr8_sessions_face::Face;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, duplex};
use tokio_util::sync::CancellationToken;

use super::line::{End, Line, read};
use crate::failure::Failure;

/// What is on its way in the pipe.
const PIPE_BYTES: usize = 64 * 1024;

/// A message larger than this is not read.
const LINE_BYTES: u64 = 64 * 1024 * 1024;

pub fn open(face: Face) -> Line {
    Line::new(|end| async move {
        let (client, server) = duplex(PIPE_BYTES);
        let (input, output) = tokio::io::split(server);
        let serving = face.serve_stdio(input, output, CancellationToken::new());
        // The client's side ends when the face has said its last word.
        tokio::join!(carry(client, end), async {
            serving.await;
        });
    })
}

async fn carry(client: DuplexStream, end: End) {
    let End { mut outgoing, incoming } = end;
    let (input, mut output) = tokio::io::split(client);
    let mut input = BufReader::new(input);
    let writing = async move {
        while let Some(text) = outgoing.recv().await {
            let line = format!("{text}\n");
            if output.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
        // The face waits for what is under way, and ends.
        let _ = output.shutdown().await;
    };
    let reading = async move {
        while let Some(line) = next_line(&mut input).await {
            let Some(message) = line.map_or_else(|failure| Some(Err(failure)), |line| read(&line)) else {
                continue;
            };
            // Whoever listens no more does not keep the face from finishing.
            let _ = incoming.send(message).await;
        }
    };
    tokio::join!(writing, reading);
}

/// None at the end of the pipe.
async fn next_line(input: &mut BufReader<ReadHalf<DuplexStream>>) -> Option<Result<String, Failure>> {
    let mut line = Vec::new();
    match (&mut *input).take(LINE_BYTES).read_until(b'\n', &mut line).await {
        Ok(0) | Err(_) => None,
        Ok(_) if line.ends_with(b"\n") => Some(Ok(String::from_utf8_lossy(&line).trim_end().to_owned())),
        Ok(_) => Some(Err(Failure::new(Code::PayloadTooLarge, "a message of the session is too large"))),
    }
}
