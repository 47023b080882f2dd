//! Sequence numbers of one pair of agents: what was sent, what has arrived, and how far both agree (AACP-3, AACP-5).
//!
//! Pure. The same steps are taken while messages come and when a process takes up what an earlier one has left.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The side that numbers messages: from one, without holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sending {
    /// The last number that was given.
    last: u64,
    /// The other side has everything up to here.
    acked: u64,
}

/// What an acknowledgement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acked {
    /// More than was known.
    Further,
    /// Nothing new: acknowledgements may overtake each other.
    Known,
    /// More than was ever sent.
    NeverSent,
}

impl Sending {
    pub fn restore(last: u64, acked: u64) -> Self {
        Self { last: last.max(acked), acked }
    }

    /// The number of the next message.
    pub fn take(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub fn acknowledge(&mut self, ack: u64) -> Acked {
        if ack > self.last {
            return Acked::NeverSent;
        }
        if ack <= self.acked {
            return Acked::Known;
        }
        self.acked = ack;
        Acked::Further
    }

    /// What must be sent again until it is acknowledged.
    pub fn unacknowledged(&self) -> RangeInclusive<u64> {
        self.acked + 1..=self.last
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }
}

/// The side that receives: everything up to `contiguous`, and some beyond a gap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receiving {
    contiguous: u64,
    beyond: BTreeSet<u64>,
}

/// What a number means to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The one that was missing; it and what waited behind it, up to `ack`, can be handed on in order.
    InOrder {
        ack: u64,
    },
    /// Something before it is missing: it waits.
    BeyondGap,
    Duplicate,
    /// Further beyond the gap than is kept.
    TooFar,
}

impl Receiving {
    /// From what was recorded; whatever follows without a gap is taken in.
    pub fn restore(contiguous: u64, beyond: impl IntoIterator<Item = u64>) -> Self {
        let beyond = beyond.into_iter().filter(|seq| *seq > contiguous).collect();
        let mut receiving = Self { contiguous, beyond };
        receiving.close_up();
        receiving
    }

    /// Looks without taking it in.
    pub fn judge(&self, seq: u64, reach: u64) -> Arrival {
        if seq <= self.contiguous || self.beyond.contains(&seq) {
            Arrival::Duplicate
        } else if seq == self.contiguous + 1 {
            let mut ack = seq;
            while self.beyond.contains(&(ack + 1)) {
                ack += 1;
            }
            Arrival::InOrder { ack }
        } else if seq - self.contiguous > reach {
            Arrival::TooFar
        } else {
            Arrival::BeyondGap
        }
    }

    /// Takes a number in. The acknowledgement moves only over an unbroken row (AACP-ACK).
    pub fn receive(&mut self, seq: u64, reach: u64) -> Arrival {
        let arrival = self.judge(seq, reach);
        if matches!(arrival, Arrival::InOrder { .. } | Arrival::BeyondGap) {
            self.beyond.insert(seq);
            self.close_up();
        }
        arrival
    }

    /// The highest number such that everything up to it has arrived.
    pub fn ack(&self) -> u64 {
        self.contiguous
    }

    /// The highest number that has arrived.
    pub fn highest(&self) -> u64 {
        self.beyond.last().copied().unwrap_or(self.contiguous)
    }

    /// What is missing below the highest number, the first so many stretches.
    pub fn gaps(&self, limit: usize) -> Vec<RangeInclusive<u64>> {
        let mut gaps = Vec::new();
        let mut expected = self.contiguous + 1;
        for seq in &self.beyond {
            if gaps.len() == limit {
                break;
            }
            if *seq > expected {
                gaps.push(expected..=seq - 1);
            }
            expected = seq + 1;
        }
        gaps
    }

    fn close_up(&mut self) {
        while self.beyond.first() == Some(&(self.contiguous + 1)) {
            self.beyond.pop_first();
            self.contiguous += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REACH: u64 = 1000;

    #[test]
    fn aacp_3_numbers_begin_at_one_and_grow() {
        let mut sending = Sending::default();
        assert_eq!([sending.take(), sending.take(), sending.take()], [1, 2, 3]);
        assert_eq!(sending.unacknowledged(), 1..=3);
        assert_eq!(sending.acknowledge(2), Acked::Further);
        assert_eq!((sending.acknowledge(1), sending.acknowledge(4)), (Acked::Known, Acked::NeverSent));
        assert_eq!(sending.unacknowledged(), 3..=3);
    }

    #[test]
    fn aacp_ack_waits_for_the_gap_to_be_filled() {
        let mut receiving = Receiving::default();
        assert_eq!(receiving.receive(2, REACH), Arrival::BeyondGap);
        assert_eq!(receiving.receive(4, REACH), Arrival::BeyondGap);
        assert_eq!((receiving.ack(), receiving.highest()), (0, 4));
        assert_eq!(receiving.gaps(9), [1..=1, 3..=3]);
        assert_eq!(receiving.receive(1, REACH), Arrival::InOrder { ack: 2 });
        assert_eq!(receiving.receive(2, REACH), Arrival::Duplicate);
        assert_eq!(receiving.receive(3, REACH), Arrival::InOrder { ack: 4 });
        assert_eq!(receiving.gaps(9), []);
        assert_eq!(receiving.receive(5 + REACH, REACH), Arrival::TooFar);
        assert_eq!(receiving.receive(4 + REACH, REACH), Arrival::BeyondGap);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Whatever arrives in whatever order, how often so ever: the acknowledgement is the unbroken row, no more and no less,
        /// and a record of it brings back the same.
        #[test]
        fn aacp_5_the_acknowledgement_is_the_contiguous_prefix(arrivals in prop::collection::vec(1_u64..40, 0..120)) {
            let (mut receiving, mut seen) = (Receiving::default(), BTreeSet::new());
            for seq in arrivals {
                let fresh = seen.insert(seq);
                prop_assert_eq!(receiving.receive(seq, REACH) == Arrival::Duplicate, !fresh);
                let prefix = (1..).take_while(|seq| seen.contains(seq)).last().unwrap_or(0);
                prop_assert_eq!(receiving.ack(), prefix);
                let missing: Vec<u64> = receiving.gaps(usize::MAX).into_iter().flatten().collect();
                let absent: Vec<u64> = (1..receiving.highest()).filter(|seq| !seen.contains(seq)).collect();
                prop_assert_eq!(missing, absent);
                prop_assert_eq!(&Receiving::restore(prefix, seen.iter().copied()), &receiving);
            }
        }
    }
}
