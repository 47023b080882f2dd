//! Keeps an index in step with the documents for as long as the program serves.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select, select_all};
use orchestr8_contract::Fault;
use orchestr8_kernel::Cancel;
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use serde_json::json;
use tokio::sync::watch;

use super::Step;
use crate::hub::Hub;
use crate::limits::{FOLLOW_BASE_MS, FOLLOW_CAP_MS, FOLLOW_EVERY_MS};

impl Hub {
    /// Goes round after round until it is told to stop, woken by news. Whatever fails is tried again, later and later, and the
    /// log says what is `behind`; writes never wait for it.
    pub(crate) async fn keep_up<'a>(
        &self,
        cancel: &Cancel,
        mut news: Vec<watch::Receiver<u64>>,
        behind: &'static str,
        round: impl Fn() -> BoxFuture<'a, Result<Step, Fault>>,
    ) {
        let clock = self.kernel().ports().clock.clone();
        let mut failures = 0;
        while !cancel.is_fired() {
            news.iter_mut().for_each(watch::Receiver::mark_unchanged);
            let going = Box::pin(AssertUnwindSafe(round()).catch_unwind());
            let Either::Left((ended, _)) = select(going, Box::pin(cancel.fired())).await else { break };
            let ended = ended.unwrap_or_else(|_| Err(Fault::internal("following the changes broke off")));
            let wait_ms = match ended {
                Ok(Step::More) => continue,
                Ok(Step::Done) => {
                    failures = 0;
                    FOLLOW_EVERY_MS
                }
                Err(fault) => {
                    failures += 1;
                    let word =
                        json!({"error": orchestr8_kernel::log::error(&fault), "failuresInARow": failures});
                    self.kernel().log().warn(behind, word);
                    self.put_off_ms(failures)
                }
            };
            let failed = failures > 0;
            let woken = Box::pin(async {
                // After a failure only time helps.
                if failed {
                    futures::future::pending::<()>().await;
                }
                select_all(news.iter_mut().map(|one| Box::pin(told(one)))).await;
            });
            let passed = select(woken, clock.sleep(Duration::from_millis(wait_ms)));
            if let Either::Right(_) = select(Box::pin(passed), Box::pin(cancel.fired())).await {
                break;
            }
        }
    }

    fn put_off_ms(&self, failures: u32) -> u64 {
        let doubled = FOLLOW_BASE_MS.checked_shl(failures.saturating_sub(1)).unwrap_or(FOLLOW_CAP_MS);
        delay_ms(Jitter::Equal, doubled.min(FOLLOW_CAP_MS), self.kernel().ports().random.unit())
    }
}

/// Waits for news; one who has stopped tells nothing more.
async fn told(news: &mut watch::Receiver<u64>) {
    if news.changed().await.is_err() {
        futures::future::pending::<()>().await;
    }
}
