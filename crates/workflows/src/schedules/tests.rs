//! When schedules are due, in time zones with changing clocks.

use jiff::Timestamp;
use proptest::prelude::*;

use super::{Backfill, Overlap, Spec, missed};

fn spec(cron: &str, zone: &str) -> Spec {
    Spec {
        revision: None,
        workflow_id: "w".into(),
        cron: cron.into(),
        time_zone: zone.into(),
        inputs: serde_json::Map::new(),
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

#[test]
fn missed_times_are_counted_up_to_a_limit() {
    let every_minute = spec("* * * * *", "UTC");
    let due = ms("2027-01-01T00:00:00Z");
    assert_eq!(missed(&every_minute, due, due + 1).unwrap(), (1, Some(due + 60_000)));
    assert_eq!(missed(&every_minute, due, due + 5 * 60_000).unwrap(), (6, Some(due + 6 * 60_000)));
    let (count, next) = missed(&every_minute, due, due + 100_000 * 60_000).unwrap();
    assert_eq!((count, next), (1000, Some(due + 100_001 * 60_000)));
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
