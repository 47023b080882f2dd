//! The phases of a measurement, the same for every transport.
use crate::usage::{cpu_us, resident_mb};
use crate::{Plan, apart, message, message::Call};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Instant;

/// A connection, or a bundle of them, that carries calls.
pub trait Wire {
    /// How many calls it can carry at once.
    fn lanes(&self) -> usize;
    fn send(&mut self, lane: usize, message: &str) -> Result<(), String>;
    /// The next answer of a lane.
    fn receive(&mut self, lane: usize) -> Result<String, String>;
}

/// Warm-up, calls one by one, calls with several in flight, and those once more with a core for each side; then the figures as JSON.
pub fn run(
    plan: &Plan,
    wire: &mut impl Wire,
    server: u32,
    started: Instant,
    start_ms: f64,
) -> Result<Value, String> {
    let mut next = 1;
    one_by_one(plan, wire, &mut next, plan.warm_up)?;
    let idle_mb = resident_mb(server);
    let before = cpu_us(server);
    let mut latencies = one_by_one(plan, wire, &mut next, plan.calls)?;
    let alone_cpu = cpu_us(server) - before;
    let before = cpu_us(server);
    let began = Instant::now();
    in_flight(plan, wire, &mut next)?;
    let seconds = began.elapsed().as_secs_f64();
    let loaded_cpu = cpu_us(server) - before;
    let loaded_mb = resident_mb(server);
    let rate_apart = match apart::place(server)? {
        true => {
            let began = Instant::now();
            in_flight(plan, wire, &mut next)?;
            Some(plan.loaded_calls as f64 / began.elapsed().as_secs_f64())
        }
        false => None,
    };
    latencies.sort_unstable_by(f64::total_cmp);
    Ok(json!({
        "start_ms": start_ms,
        "p50_us": at(&latencies, 0.50),
        "p95_us": at(&latencies, 0.95),
        "rate_per_s": plan.loaded_calls as f64 / seconds,
        "rate_apart_per_s": rate_apart,
        "cpu_us": loaded_cpu as f64 / plan.loaded_calls as f64,
        "cpu_alone_us": alone_cpu as f64 / plan.calls as f64,
        "idle_mb": idle_mb,
        "loaded_mb": loaded_mb,
        "took_s": started.elapsed().as_secs_f64(),
    }))
}

fn one_by_one(plan: &Plan, wire: &mut impl Wire, next: &mut u64, calls: usize) -> Result<Vec<f64>, String> {
    let call = Call::new(plan.era);
    let mut latencies = Vec::with_capacity(calls);
    for _ in 0..calls {
        let message = call.numbered(*next);
        let sent = Instant::now();
        wire.send(0, &message)?;
        let id = message::answered(&wire.receive(0)?)?;
        latencies.push(sent.elapsed().as_secs_f64() * 1e6);
        if id != *next {
            return Err(format!("call {next} was answered as {id}"));
        }
        *next += 1;
    }
    Ok(latencies)
}

/// Keeps `in_flight` calls open, spread over the lanes, and takes the answers in whatever order they come.
fn in_flight(plan: &Plan, wire: &mut impl Wire, next: &mut u64) -> Result<(), String> {
    let lanes = wire.lanes();
    let last = *next + plan.loaded_calls as u64;
    let call = Call::new(plan.era);
    let mut open: HashSet<u64> = HashSet::new();
    for slot in 0..plan.in_flight.min(plan.loaded_calls) {
        wire.send(slot % lanes, &call.numbered(*next))?;
        open.insert(*next);
        *next += 1;
    }
    let mut lane = 0;
    while !open.is_empty() {
        let id = message::answered(&wire.receive(lane)?)?;
        if !open.remove(&id) {
            return Err(format!("call {id} was answered twice or never made"));
        }
        if *next < last {
            wire.send(lane, &call.numbered(*next))?;
            open.insert(*next);
            *next += 1;
        }
        lane = (lane + 1) % lanes;
    }
    Ok(())
}

/// The value below which a share of the sorted ones lie.
pub fn at(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{Wire, at, in_flight, one_by_one};
    use crate::Plan;
    use crate::message::Era;
    use std::collections::VecDeque;

    /// Answers every call, the newest of a lane first.
    struct Mirror {
        lanes: Vec<VecDeque<String>>,
        most: usize,
    }

    impl Wire for Mirror {
        fn lanes(&self) -> usize {
            self.lanes.len()
        }

        fn send(&mut self, lane: usize, message: &str) -> Result<(), String> {
            let id = message.split(r#""id":"#).nth(1).unwrap().split(',').next().unwrap().to_owned();
            self.lanes[lane].push_front(format!(r#"{{"id":{id},"result":"hello"}}"#));
            self.most = self.most.max(self.lanes.iter().map(VecDeque::len).sum());
            Ok(())
        }

        fn receive(&mut self, lane: usize) -> Result<String, String> {
            self.lanes[lane].pop_front().ok_or("nothing to receive".to_owned())
        }
    }

    fn plan() -> Plan {
        Plan { era: Era::Legacy, warm_up: 0, calls: 3, loaded_calls: 23, in_flight: 4, command: vec![] }
    }

    #[test]
    fn calls_stay_in_flight_and_all_are_answered() {
        for lanes in [1, 4] {
            let mut mirror = Mirror { lanes: vec![VecDeque::new(); lanes], most: 0 };
            let mut next = 1;
            in_flight(&plan(), &mut mirror, &mut next).unwrap();
            assert_eq!((next, mirror.most), (24, 4));
        }
    }

    #[test]
    fn one_by_one_measures_each_call() {
        let mut mirror = Mirror { lanes: vec![VecDeque::new()], most: 0 };
        assert_eq!(one_by_one(&plan(), &mut mirror, &mut 1, 3).unwrap().len(), 3);
        assert_eq!(mirror.most, 1);
    }

    #[test]
    fn percentiles_are_taken_from_the_sorted_list() {
        let sorted: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!((at(&sorted, 0.5), at(&sorted, 0.95)), (50.0, 95.0));
    }
}
