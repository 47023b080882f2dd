//! Writes requests that the edge rejects into the log and the audit trail: foreign hosts and origins, missing credentials, tokens
//! outside their scope.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::rejections::WINDOW;
use orchestr8_edge::{Rejection, RejectionLog, RejectionReason};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::audit::SecurityEvent;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Reports on their way into the audit trail. The edge sends a bounded number a minute, so this is never full for long.
const QUEUE: usize = 1024;

/// What the edge counts rejections with. What was counted is reported every minute, and once more when the server stops.
pub fn watch(kernel: &Kernel, stop: &CancellationToken) -> (Arc<RejectionLog>, JoinHandle<()>) {
    let (sender, mut reports) = mpsc::channel::<Rejection>(QUEUE);
    let log = Arc::new(RejectionLog::new(Arc::new(move |rejection| drop(sender.try_send(rejection)))));
    let (kernel, stop, counted) = (kernel.clone(), stop.clone(), Arc::downgrade(&log));
    let task = tokio::spawn(async move {
        loop {
            let clock = kernel.ports().clock.clone();
            tokio::select! {
                report = reports.recv() => match report {
                    Some(rejection) => record(&kernel, &rejection).await,
                    None => return,
                },
                () = stop.cancelled() => {
                    counted.upgrade().iter().for_each(|log| log.flush(true));
                    while let Ok(rejection) = reports.try_recv() {
                        record(&kernel, &rejection).await;
                    }
                    return;
                }
                () = clock.sleep(WINDOW) => counted.upgrade().iter().for_each(|log| log.flush(false)),
            }
        }
    });
    (log, task)
}

async fn record(kernel: &Kernel, rejection: &Rejection) {
    let source = rejection.address.map_or_else(|| String::from("many"), |address| address.to_string());
    let about = json!({
        "reason": rejection.reason.action(), "value": rejection.value, "path": rejection.path, "count": rejection.count,
    });
    kernel.log().warn("requests were rejected", about.clone());
    let event = SecurityEvent {
        action: rejection.reason.action(),
        tenant: Tenant::local(),
        principal: source.clone(),
        source,
        code: match rejection.reason {
            RejectionReason::Credentials => Code::Unauthenticated,
            RejectionReason::Host | RejectionReason::Origin | RejectionReason::Page => Code::Unauthorized,
        },
        detail: about,
    };
    if let Err(fault) = kernel.record_security_event(&event).await {
        let cause = json!({"cause": fault.message});
        kernel.log().error("rejected requests could not be written into the audit trail", cause);
    }
}
