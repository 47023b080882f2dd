//! The ledger: outcomes, attempts, late answers.

use std::sync::Arc;

use orchestr8_contract::id::{AgentId, MessageId, RequestId};
use orchestr8_contract::{Code, Fault};
use proptest::prelude::*;
use serde_json::json;

use crate::aacp::ledger::{Act, Answer, Backoff, Entry, Fact, Moment, RetryPolicy, Status, next};

fn entry() -> Entry {
    Entry {
        request: RequestId::parse("r").unwrap(),
        source: AgentId::parse("ann").unwrap(),
        target: AgentId::parse("bob").unwrap(),
        message: MessageId::parse("m").unwrap(),
        seq: 1,
        status: Status::Pending,
        attempts: 1,
        timeout_ms: 1000,
        due_ms: Some(1000),
        asked_ms: 0,
        ended_ms: None,
        expires_ms: 100_000,
        late: false,
        answer: None,
        is_handed_over: true,
    }
}

fn policy() -> Backoff {
    Backoff { max_attempts: 3, base_delay_ms: 100, max_delay_ms: 150 }
}

fn at(now_ms: i64) -> Moment {
    Moment { now_ms, unit: 0.999_999 }
}

fn step(entry: &Entry, fact: Fact, now_ms: i64) -> (Entry, Act) {
    next(entry, fact, &policy(), at(now_ms))
}

fn answered() -> Fact {
    Fact::Answered(Answer::Payload(Arc::new(json!(1))))
}

#[test]
fn aacp_unknown_silence_leads_to_attempts_with_longer_waits_and_then_to_rest() {
    let (unknown, act) = step(&entry(), Fact::Due, 1000);
    assert_eq!((unknown.status, act, unknown.due_ms), (Status::Unknown, Act::Nothing, Some(1100)));
    let (sent, act) = step(&unknown, Fact::Due, 1100);
    assert_eq!((sent.attempts, act, sent.due_ms), (1, Act::Redeliver, None), "it lies there unread");
    let (second, _) = step(&sent, Fact::Read, 1100);
    assert_eq!((second.attempts, second.due_ms), (2, Some(1100 + 1000 + 150)), "the cap holds");
    let (sent, act) = step(&second, Fact::Due, 2250);
    assert_eq!((sent.attempts, act), (2, Act::Redeliver));
    let (third, _) = step(&sent, Fact::Transmitted(1), 2250);
    assert_eq!(third.attempts, 3);
    let (last, act) = step(&third, Fact::Due, 10_000);
    assert_eq!((last.status, last.due_ms, act), (Status::Unknown, None, Act::Nothing));
    let (again, act) = step(&last, Fact::AskedAgain, 20_000);
    assert_eq!((again.attempts, act), (3, Act::Redeliver), "the source may insist");
    assert_eq!(step(&again, Fact::Read, 20_000).0.attempts, 4);
    assert_eq!(step(&again, Fact::AskedAgain, 20_000).1, Act::Nothing, "it lies there already");
}

#[test]
fn aacp_retry_what_was_never_handed_over_is_no_attempt() {
    let placed = Entry { attempts: 0, is_handed_over: false, ..entry() };
    let (unknown, act) = step(&placed, Fact::Due, 1000);
    assert_eq!(
        (unknown.status, unknown.attempts, unknown.due_ms, act),
        (Status::Unknown, 0, None, Act::Nothing)
    );
    let (read, _) = step(&unknown, Fact::Read, 5000);
    assert_eq!((read.attempts, read.due_ms), (1, Some(5000 + 1000 + 100)));
    assert_eq!(step(&read, Fact::Read, 5001).0, read, "read twice, a transmission counts once");
}

#[test]
fn aacp_purge_nothing_is_planned_for_a_moment_after_the_end() {
    let short = Entry { expires_ms: 1050, ..entry() };
    assert_eq!(step(&short, Fact::Due, 1000).0.due_ms, None, "the next attempt would come at 1100");
    let (broken, _) = step(&short, Fact::Broke(Fault::new(Code::Unavailable, "away")), 1000);
    assert_eq!((broken.status, broken.due_ms), (Status::Unknown, None));
    let (gone, act) = step(&short, answered(), 1050);
    assert_eq!((gone.status, gone.due_ms, act), (Status::Pending, None, Act::Nothing));
}

#[test]
fn aacp_late_an_answer_after_its_time_is_recorded_as_late() {
    let (done, act) = step(&entry(), answered(), 999);
    assert_eq!((done.status, done.late, act), (Status::Completed, false, Act::Settle));
    let (unknown, _) = step(&entry(), Fact::Due, 1000);
    let (late, act) = step(&unknown, answered(), 1001);
    assert_eq!((late.status, late.late, act), (Status::Completed, true, Act::Settle));
}

#[test]
fn aacp_retry_what_may_be_mended_is_tried_again_and_what_may_not_has_failed() {
    let (unknown, act) = step(&entry(), Fact::Broke(Fault::new(Code::Unavailable, "away")), 10);
    assert_eq!((unknown.status, act, unknown.due_ms), (Status::Unknown, Act::Nothing, Some(110)));
    let (failed, act) = step(&entry(), Fact::Broke(Fault::invalid("nonsense")), 10);
    assert_eq!((failed.status, act), (Status::Failed, Act::Settle));
    let used_up = Entry { attempts: 3, ..entry() };
    let (unknown, _) = step(&used_up, Fact::Broke(Fault::new(Code::Timeout, "slow")), 10);
    assert_eq!((unknown.status, unknown.due_ms), (Status::Unknown, None), "nobody knows, and nobody tries");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Whatever happens in whatever order: the first outcome stands, attempts never pass the policy by themselves, and waits stay
    /// within the cap.
    #[test]
    fn aacp_6_the_first_outcome_stands(facts in prop::collection::vec((0_u8..8, 1_i64..2_000, 0.0..1.0_f64), 1..40)) {
        let (mut entry, mut now_ms, mut first, mut insisted) = (entry(), 0, None, 0);
        for (fact, passed_ms, unit) in facts {
            now_ms += passed_ms;
            let fact = match fact {
                0 => Fact::Answered(Answer::Payload(Arc::new(json!(now_ms)))),
                1 => Fact::Broke(Fault::new(Code::Unavailable, "away")),
                2 => Fact::AskedAgain,
                3..5 => Fact::Read,
                _ => Fact::Due,
            };
            let (is_wish, is_read) =
                (matches!(fact, Fact::AskedAgain), matches!(fact, Fact::Read | Fact::Answered(_)));
            let (after, act) = next(&entry, fact, &policy(), Moment { now_ms, unit });
            insisted += u32::from(is_wish && act == Act::Redeliver);
            prop_assert!(after.attempts <= policy().max_attempts() + insisted);
            // A final outcome is the first answer, which counts what was not counted.
            let counts = is_read && !entry.is_handed_over && !entry.status.is_final() && now_ms < entry.expires_ms;
            prop_assert!(after.attempts - entry.attempts == u32::from(counts));
            prop_assert!(after.due_ms.is_none_or(|due_ms| due_ms < after.expires_ms));
            if let Some(due_ms) = after.due_ms {
                prop_assert!(!after.status.is_final());
                prop_assert!(due_ms <= now_ms + after.timeout_ms + 150);
            }
            match &first {
                Some(first) => prop_assert_eq!(first, &after),
                None if after.status.is_final() => first = Some(after.clone()),
                None => {}
            }
            entry = after;
        }
    }
}

#[test]
fn words_of_statuses_come_back() {
    for status in Status::ALL {
        assert_eq!(Status::parse(status.as_str()), Some(status));
    }
    assert_eq!(policy().backoff_ms(64, 0.5), 75);
}
