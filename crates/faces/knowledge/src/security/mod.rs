//! Who is asking: three profiles, each with its proof (KNO-3), and the roles they come to (KNO-6).

pub(crate) mod jose;
pub mod jws;
pub mod jwt;
pub mod keys;
mod refused;
pub mod roles;
mod who;

pub use refused::Refused;
pub(crate) use who::{Kind, Proven, Who, authenticate};
