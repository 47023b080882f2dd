//! The end of a connection: the last word is said so that the client can still read it.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

/// How long, and for how much, a connection is read on after the last word: closing on unread bytes would destroy that word in
/// flight, and many clients send all of a body before they read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goodbye {
    pub total: Duration,
    pub bytes: usize,
}

/// A client that sends nothing for so long has either read the word or gone.
const SILENCE: Duration = Duration::from_secs(1);

impl Goodbye {
    /// For clients that were never let in: they may be many.
    pub const SHORT: Goodbye = Goodbye { total: Duration::from_secs(1), bytes: 256 * 1024 };

    /// For clients whose request was answered before its body had come: a body of up to so many bytes still gets its refusal.
    pub const ANSWERED: Goodbye = Goodbye { total: Duration::from_secs(10), bytes: 64 * 1024 * 1024 };

    /// Says `last_word`, if any, closes our side, and reads on until the client closes its own.
    pub async fn say<S: AsyncRead + AsyncWrite + Unpin>(self, mut stream: S, last_word: Option<&[u8]>) {
        let deadline = Instant::now() + self.total;
        let goodbye = async {
            if let Some(word) = last_word {
                stream.write_all(word).await?;
            }
            stream.shutdown().await?;
            let mut left = self.bytes;
            let mut scrap = vec![0; 16 * 1024];
            while left > 0 {
                match timeout(SILENCE, stream.read(&mut scrap)).await {
                    Ok(count) => match count? {
                        0 => break,
                        count => left = left.saturating_sub(count),
                    },
                    Err(_) => break,
                }
            }
            std::io::Result::Ok(())
        };
        // The client may be gone already; then there is no client left to tell.
        let _ = timeout_at(deadline, goodbye).await;
    }
}
