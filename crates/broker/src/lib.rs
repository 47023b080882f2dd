//! Messages between agents: published durably, delivered at least once, and never lost from sight (KNO-1).
//!
//! ```text
//! publish -> queue of a tenant -> take (fair turns, one lease) -> Receiver -> Verdict -> gone, again, or a dead letter
//!                                                                                 \-> reply, read by its inbox
//! ```
//!
//! [`Broker`] is the port; [`Embedded`] keeps everything in the store and needs nothing else. [`worker`] drives either.
//! What every broker must do is in `suite`.

mod embedded;
pub mod limits;
mod lines;
mod port;
mod settings;
mod subject;
#[cfg(any(test, feature = "suite"))]
pub mod suite;
pub mod tables;
pub mod worker;

pub use embedded::Embedded;
pub use port::{
    Broker, DeadLetter, Delivery, Ended, Message, Page, Receipt, Redriven, Reply, Reported, Taken, Verdict,
};
pub use settings::Settings;
pub use subject::{Subject, Wrong};
