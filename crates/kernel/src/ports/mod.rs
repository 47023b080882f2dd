//! What the kernel needs from outside, each port with its real and its simulated form side by side.

pub mod clock;
pub mod ids;
pub mod random;
pub mod store;

pub use clock::Clock;
pub use ids::Ids;
pub use random::Random;
pub use store::Store;
