//! Work on files, off the threads that serve.

use orchestr8_contract::Code;

use crate::refusal::Refusal;

pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(worked) => worked,
        Err(_) => Err(Refusal::new(Code::InternalError, "the work failed unexpectedly")),
    }
}
