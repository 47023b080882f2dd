//! Fresh ids. Random ones for the program; counted ones for deterministic mode and for tests.
#![allow(clippy::disallowed_methods, reason = "this is the one place that makes ids")]

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// What an id is for: counted ids show it in their first digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    Run,
    Correlation,
    Connection,
    Session,
    Task,
    Record,
    Execution,
}

pub trait Ids: Send + Sync + 'static {
    /// A fresh UUID of version 4 (MCP-CORR-2). Those of executions may be of version 7: they are stored in great numbers, and
    /// ids that grow with time lie together on disk.
    fn fresh(&self, purpose: For) -> Uuid;
}

/// Ids nobody can guess.
pub struct Random;

impl Ids for Random {
    fn fresh(&self, purpose: For) -> Uuid {
        match purpose {
            For::Execution => Uuid::now_v7(),
            For::Run | For::Correlation | For::Connection | For::Session | For::Task | For::Record => {
                Uuid::new_v4()
            }
        }
    }
}

/// Ids that count from one for each purpose, and still read as version 4.
#[derive(Default)]
pub struct Counted {
    counters: [AtomicU64; 7],
}

impl Ids for Counted {
    fn fresh(&self, purpose: For) -> Uuid {
        let place = match purpose {
            For::Run => 0,
            For::Correlation => 1,
            For::Connection => 2,
            For::Session => 3,
            For::Task => 4,
            For::Record => 5,
            For::Execution => 6,
        };
        let count = self.counters[place].fetch_add(1, Ordering::SeqCst) + 1;
        let high = u128::try_from(place).unwrap_or(0) << 96;
        uuid::Builder::from_u128(high | u128::from(count))
            .with_version(uuid::Version::Random)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_ids_are_version_four_and_count() {
        let ids = Counted::default();
        assert_eq!(ids.fresh(For::Run).to_string(), "00000000-0000-4000-8000-000000000001");
        assert_eq!(ids.fresh(For::Run).to_string(), "00000000-0000-4000-8000-000000000002");
        assert_eq!(ids.fresh(For::Correlation).to_string(), "00000001-0000-4000-8000-000000000001");
        assert_eq!(Random.fresh(For::Run).get_version_num(), 4);
    }
}
