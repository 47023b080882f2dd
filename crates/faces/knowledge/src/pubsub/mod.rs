//! Envelopes over the bus (KNO-1): published with their proof, delivered at least once, answered in an inbox.

mod consume;
mod reply;
mod sender;

use std::sync::Arc;

use orchestr8_broker::{Broker, Settings};

pub use consume::consume;
pub(crate) use sender::Sender;

/// The bus this face takes envelopes from.
#[derive(Clone)]
pub struct PubSub {
    pub broker: Arc<dyn Broker>,
    pub settings: Settings,
}
