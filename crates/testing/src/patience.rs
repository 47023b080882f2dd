//! Waiting for what nobody tells us of, with an end to it.

use std::future::Future;
use std::time::Duration;

/// Nothing in a test takes this long; one that waits longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often to look. Only for conditions that nobody tells of, such as those of another process.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until it is so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// What it gives, if it does not take too long.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it takes too long")
}
