//! When schedules are due, in time zones with changing clocks.

use jiff::Timestamp;
use proptest::prelude::*;

use super::plan::{Look, Plan, Progress, may_start, plan};
use super::spec::{Backfill, Overlap, Spec};
use crate::limits;

fn spec(cron: &str, zone: &str) -> Spec {
    Spec {
        revision: None,
        workflow_id: "w".into(),
        cron: cron.into(),
        time_zone: zone.into(),
        inputs: serde_json::Map::new(),
        tags: crate::tags::ExecutionTags::default(),
        overlap: Overlap::default(),
        backfill: Backfill::default(),
        principal: String::new(),
        roles: orchestr8_contract::RoleSet::NONE,
        scope: Vec::new(),
        tools: None,
    }
}

fn ms(moment: &str) -> i64 {
    moment.parse::<Timestamp>().unwrap().as_millisecond()
}

fn next(spec: &Spec, after: &str) -> String {
    let next = spec.next_after(ms(after)).unwrap().unwrap();
    Timestamp::from_millisecond(next).unwrap().to_string()
}

#[test]
fn a_time_is_one_of_its_zone_and_follows_its_clocks() {
    let nine = spec("0 9 * * *", "Europe/Zurich");
    assert_eq!(next(&nine, "2027-01-10T12:00:00Z"), "2027-01-11T08:00:00Z", "winter");
    assert_eq!(next(&nine, "2027-07-10T12:00:00Z"), "2027-07-11T07:00:00Z", "summer");
    assert_eq!(next(&spec("0 9 * * *", "UTC"), "2027-07-10T12:00:00Z"), "2027-07-11T09:00:00Z");
}

#[test]
fn a_time_the_clocks_leave_out_is_not_lost_and_one_they_repeat_runs_once() {
    // On 28 March 2027 there is no 02:30 in Zurich; on 31 October there are two.
    let half_past_two = spec("30 2 * * *", "Europe/Zurich");
    let spring = next(&half_past_two, "2027-03-27T12:00:00Z");
    assert!(spring.starts_with("2027-03-28T01:"), "{spring}");
    let first = next(&half_past_two, "2027-10-30T12:00:00Z");
    assert!(first.starts_with("2027-10-31T00:30") || first.starts_with("2027-10-31T01:30"), "{first}");
    let second = next(&half_past_two, &first);
    assert!(second.starts_with("2027-11-01"), "{second}");
}

/// Every minute, since 00:00, by a server that looks at 00:05:30 and has been there since this many seconds.
fn planned(backfill: Backfill, overlap: Overlap, there_s: i64, is_busy: bool) -> Plan {
    let spec = Spec { backfill, overlap, ..spec("* * * * *", "UTC") };
    let now_ms = ms("2027-01-01T00:05:30Z");
    let look = Look { now_ms, since_ms: now_ms - there_s * 1000 };
    let before = Progress { next_ms: Some(ms("2027-01-01T00:00:00Z")), pending: Vec::new() };
    plan(&spec, &before, look, is_busy).unwrap()
}

fn minutes(plan: &Plan) -> Vec<i64> {
    assert_eq!(plan.progress.next_ms, Some(ms("2027-01-01T00:06:00Z")), "every moment is looked at once");
    plan.progress.pending.iter().map(|at_ms| (at_ms - ms("2027-01-01T00:00:00Z")) / 60_000).collect()
}

#[test]
fn backfill_says_which_missed_moments_are_made_up_for() {
    for (backfill, there_s, expected) in [
        // The server started ten seconds ago: all were missed, also the one half a minute ago.
        (Backfill::None, 10, vec![]),
        (Backfill::One, 10, vec![5]),
        (Backfill::All, 10, vec![0, 1, 2, 3, 4, 5]),
        // It was there at 00:05.
        (Backfill::None, 40, vec![5]),
        (Backfill::One, 40, vec![4, 5]),
        (Backfill::All, 40, vec![0, 1, 2, 3, 4, 5]),
        // It was there all the time, and the machine slept.
        (Backfill::None, 100_000, vec![5]),
        (Backfill::One, 100_000, vec![4, 5]),
    ] {
        let plan = planned(backfill, Overlap::Queue, there_s, false);
        assert_eq!(minutes(&plan), expected, "{backfill:?} after {there_s} s");
    }
}

#[test]
fn overlap_says_what_becomes_of_moments_while_an_execution_runs() {
    for (overlap, is_busy, expected, cancels) in [
        (Overlap::Allow, true, vec![5], false),
        (Overlap::Queue, true, vec![5], false),
        (Overlap::Skip, true, vec![], false),
        (Overlap::Skip, false, vec![5], false),
        (Overlap::Cancel, true, vec![5], true),
        (Overlap::Cancel, false, vec![5], false),
    ] {
        let plan = planned(Backfill::None, overlap, 40, is_busy);
        assert_eq!((minutes(&plan), plan.cancels), (expected, cancels), "{overlap:?}, {is_busy}");
    }
    // What is made up for is started one after another; what comes while it waits is left out, or takes its place.
    assert_eq!(minutes(&planned(Backfill::All, Overlap::Skip, 40, true)), [0, 1, 2, 3, 4]);
    assert_eq!(minutes(&planned(Backfill::All, Overlap::Cancel, 40, true)), [5]);
    for (overlap, may) in
        [(Overlap::Allow, true), (Overlap::Queue, false), (Overlap::Skip, false), (Overlap::Cancel, false)]
    {
        assert_eq!(may_start(overlap, false, true), may, "{overlap:?}");
        assert!(may_start(overlap, false, false));
    }
    assert!(may_start(Overlap::Cancel, true, true));
}

#[test]
fn moments_that_wait_are_bounded_and_the_newest_missed_ones_are_kept() {
    let every_second =
        Spec { backfill: Backfill::All, overlap: Overlap::Queue, ..spec("* * * * * *", "UTC") };
    let now_ms = ms("2027-06-01T00:00:00.500Z");
    let before = Progress { next_ms: Some(ms("2026-06-01T00:00:00Z")), pending: Vec::new() };
    let look = Look { now_ms, since_ms: now_ms };
    let plan = plan(&every_second, &before, look, false).unwrap();
    assert_eq!(plan.progress.pending.len(), limits::SCHEDULE_BACKLOG);
    assert_eq!(plan.progress.pending.last(), Some(&ms("2027-06-01T00:00:00Z")));
    assert!(plan.progress.pending.windows(2).all(|pair| pair[0] < pair[1]), "in their order");
    // A full line takes no more.
    let later = Look { now_ms: now_ms + 1000, since_ms: now_ms };
    let full = super::plan::plan(&every_second, &plan.progress, later, true).unwrap();
    assert_eq!((full.progress.pending, full.left_out), (plan.progress.pending, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_expression_is_refused_or_gives_times_that_grow(
        cron in prop_oneof![
            "[0-9*,/-]{1,6}( [0-9*,/L#W?-]{1,6}){4,6}",
            "([0-5]?[0-9]|[*]) ([0-9]|[*]|[*]/[1-9]) ([1-9]|[*]|L) ([*]|[1-9]) ([*]|[0-6]|[0-6]#[1-5]|5L)",
            ".{0,30}",
        ],
        zone in prop::sample::select(vec!["UTC", "Europe/Zurich", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"]),
        after_ms in -62_000_000_000_000_i64..253_000_000_000_000,
    ) {
        let spec = spec(&cron, zone);
        if spec.check(0).is_err() {
            return Ok(());
        }
        let (mut at_ms, mut count) = (after_ms, 0);
        while let (Ok(Some(next_ms)), true) = (spec.next_after(at_ms), count < 3) {
            prop_assert!(next_ms > at_ms, "{} in {}: {} is not after {}", cron, zone, next_ms, at_ms);
            (at_ms, count) = (next_ms, count + 1);
        }
    }
}

#[test]
fn what_would_never_start_is_refused() {
    assert!(spec("every day", "UTC").check(0).is_err());
    let impossible = spec("0 3 31 2 *", "UTC").check(0).unwrap_err();
    assert!(impossible.message.contains("never comes"), "{impossible:?}");
    assert!(spec("0 3 29 2 *", "UTC").check(0).is_ok(), "a leap day comes");
    assert!(spec("0 9 * * *", "Nowhere/At_All").check(0).is_err());
}
