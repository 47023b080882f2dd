//! Takes messages from a broker and hands them to whoever does the work, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use orchestr8_kernel::Log;
use orchestr8_kernel::ports::Clock;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::limits::FAILURE_PAUSE_MS;
use crate::port::{Broker, Delivery, Ended, Message, Verdict};
use crate::settings::Settings;

/// Does the work of a message.
pub trait Receiver: Send + Sync + 'static {
    /// However long it takes: the lease is extended meanwhile.
    fn receive(&self, delivery: Delivery) -> BoxFuture<'static, Verdict>;

    /// Hears what became of a message, to count it.
    fn ended(&self, message: &Message, ended: Ended);

    /// What the sender of a message is told when nobody ever settled it.
    fn give_up(&self, message: &Message) -> bytes::Bytes;
}

/// What a worker works with. Clones share it.
#[derive(Clone)]
pub struct Worker {
    pub broker: Arc<dyn Broker>,
    pub receiver: Arc<dyn Receiver>,
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
    pub log: Log,
    pub stop: CancellationToken,
}

impl Worker {
    /// Runs until it is told to stop; then what is in hand is finished, and nothing new is taken.
    pub async fn run(self) {
        let mut hands = JoinSet::new();
        loop {
            while hands.try_join_next().is_some() {}
            let room = self.settings.in_flight.max(1).saturating_sub(hands.len());
            if room == 0 {
                hands.join_next().await;
                continue;
            }
            let taken = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                taken = self.broker.take(room) => taken,
            };
            match taken {
                Ok(taken) => {
                    for message in taken.died {
                        self.bury(message).await;
                    }
                    for delivery in taken.deliveries {
                        let worker = self.clone();
                        hands.spawn(async move { worker.work(delivery).await });
                    }
                }
                Err(fault) => {
                    self.log.error("no messages could be taken", json!({"error": fault.to_string()}));
                    self.pause().await;
                }
            }
        }
        while hands.join_next().await.is_some() {}
    }

    async fn work(self, delivery: Delivery) {
        let mut receiving = self.receiver.receive(delivery.clone());
        let half = Duration::from_millis((self.settings.ack_deadline_ms / 2).max(1));
        let verdict = loop {
            tokio::select! {
                biased;
                verdict = &mut receiving => break verdict,
                () = self.clock.sleep(half) => match self.broker.extend(delivery.receipt.clone()).await {
                    Ok(true) => {}
                    // It went to somebody else; what we find out is found out by them too.
                    Ok(false) => break receiving.await,
                    Err(fault) => self.log.warn("a lease could not be extended", json!({"error": fault.to_string()})),
                }
            }
        };
        match self.broker.settle(delivery.clone(), verdict).await {
            Ok(ended) => self.receiver.ended(&delivery.message, ended),
            Err(fault) => {
                // Its lease ends, and it comes again: at least once is what was promised.
                let about = json!({"subject": delivery.message.subject.as_str(), "id": delivery.message.id,
                    "error": fault.to_string()});
                self.log.error("a message could not be settled", about);
            }
        }
    }

    async fn bury(&self, message: Message) {
        self.receiver.ended(&message, Ended::Dead);
        let told = self.broker.answer(message.clone(), self.receiver.give_up(&message)).await;
        if let Err(fault) = told {
            self.log.error("nobody could be told of a dead letter", json!({"error": fault.to_string()}));
        }
    }

    async fn pause(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.clock.sleep(Duration::from_millis(FAILURE_PAUSE_MS)) => {}
        }
    }
}
