//! Randomness, for jitter and sampling. A seed replays a run exactly.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub trait Random: Send + Sync + 'static {
    /// Uniform in [0, 1).
    fn unit(&self) -> f64;
}

/// Fresh randomness of the machine.
pub struct Real;

impl Random for Real {
    fn unit(&self) -> f64 {
        rand::rng().random()
    }
}

/// Always the same sequence for the same seed.
pub struct Seeded(Mutex<StdRng>);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Random for Seeded {
    fn unit(&self) -> f64 {
        self.0.lock().random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let (a, b) = (Seeded::new(7), Seeded::new(7));
        for _ in 0..100 {
            let unit = a.unit();
            assert_eq!(unit, b.unit());
            assert!((0.0..1.0).contains(&unit));
        }
    }
}
