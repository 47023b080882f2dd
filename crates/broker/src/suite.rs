//! What every broker must do. A broker runs it with `broker_suite!(open)`, where `open(settings)` gives a fresh one, and whatever
//! must live as long as it does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, also when another crate runs them")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use orchestr8_contract::Code;
use orchestr8_contract::id::{ActionName, Tenant};

use crate::{Broker, Delivery, Ended, Message, Redriven, Settings, Subject, Verdict};

pub type Shared = Arc<dyn Broker>;

/// What is to come comes within this time, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(30);

/// One test for each case of the suite.
#[macro_export]
macro_rules! broker_suite {
    ($open:path) => {
        $crate::broker_suite!($open:
            what_is_published_is_delivered_whole_and_gone_when_it_is_done
            what_nobody_settles_comes_again_and_a_late_word_counts_for_nothing
            what_failed_comes_again_and_after_the_last_attempt_it_is_a_dead_letter
            a_dead_letter_is_redriven_with_all_attempts_before_it_or_dropped
            what_can_never_work_is_a_dead_letter_at_once
            what_was_given_back_was_not_delivered
            a_tenant_that_has_enough_waiting_is_told_so_and_others_are_not
            a_tenant_has_only_so_much_in_hand_and_turns_are_fair
            a_lane_keeps_its_order_over_failures
            replies_are_read_in_their_order_by_whom_they_are_for
            tenants_do_not_see_each_other
            many_publish_at_once_and_each_message_is_delivered_once
        );
    };
    ($open:path: $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::suite::$case(|settings| Box::pin($open(settings))).await;
            }
        )*
    };
}

/// Gives a fresh broker.
pub type Open = fn(Settings) -> std::pin::Pin<Box<dyn Future<Output = Shared> + Send>>;

fn quick() -> Settings {
    Settings { ack_deadline_ms: 60_000, base_delay_ms: 1, max_delay_ms: 2, ..Settings::default() }
}

pub fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

pub fn message(of: &str, id: &str) -> Message {
    let action = ActionName::parse("knowledge.create_document").unwrap();
    Message {
        tenant: tenant(of),
        subject: Subject::of_action(&tenant(of), &action),
        id: id.to_owned(),
        principal: "svc:a".to_owned(),
        sender: r#"{"roles":["owner"]}"#.to_owned(),
        reply_to: Some(Subject::of_inbox(&tenant(of), "me").unwrap()),
        lane: None,
        body: Bytes::from(format!("body of {id}")),
    }
}

async fn take(broker: &Shared, most: usize) -> Vec<Delivery> {
    let taken = tokio::time::timeout(PATIENCE, broker.take(most)).await;
    taken.unwrap_or_else(|_| panic!("nothing came")).unwrap().deliveries
}

async fn one(broker: &Shared) -> Delivery {
    take(broker, 1).await.remove(0)
}

fn done() -> Verdict {
    Verdict::Done { reply: None }
}

fn again() -> Verdict {
    Verdict::Again { why: "it did not work".to_owned(), reply: Some(Bytes::from("given up")) }
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.message.id.as_str()).collect()
}

async fn inbox(broker: &Shared, of: &str, principal: Option<&str>, after: i64) -> Vec<(i64, String)> {
    let to = Subject::of_inbox(&tenant(of), "me").unwrap();
    let page = broker.replies(tenant(of), to, principal.map(str::to_owned), after, 100).await.unwrap();
    let text = |body: Bytes| String::from_utf8(body.to_vec()).unwrap();
    page.items.into_iter().map(|reply| (reply.seq, text(reply.body))).collect()
}

pub async fn what_is_published_is_delivered_whole_and_gone_when_it_is_done(open: Open) {
    let broker = open(quick()).await;
    broker.publish(message("acme", "1")).await.unwrap();
    let delivery = one(&broker).await;
    assert_eq!(delivery.message, message("acme", "1"));
    assert_eq!((delivery.receipt.attempt, delivery.round), (1, 0));
    assert_eq!(broker.settle(delivery, done()).await.unwrap(), Ended::Gone);
    broker.publish(message("acme", "2")).await.unwrap();
    assert_eq!(ids(&take(&broker, 9).await), ["2"], "the first one is gone");
}

pub async fn what_nobody_settles_comes_again_and_a_late_word_counts_for_nothing(open: Open) {
    let broker = open(Settings { ack_deadline_ms: 50, ..quick() }).await;
    broker.publish(message("acme", "1")).await.unwrap();
    let first = one(&broker).await;
    let second = one(&broker).await;
    assert_eq!((second.receipt.attempt, second.round), (2, 0), "it was tried to no end");
    assert_eq!(broker.settle(first.clone(), done()).await.unwrap(), Ended::Late);
    assert!(!broker.extend(first.receipt).await.unwrap());
}

pub async fn what_failed_comes_again_and_after_the_last_attempt_it_is_a_dead_letter(open: Open) {
    let broker = open(quick()).await;
    broker.publish(message("acme", "1")).await.unwrap();
    for attempt in 1..=6 {
        let delivery = one(&broker).await;
        assert_eq!((delivery.receipt.attempt, delivery.round), (attempt, attempt - 1));
        let ended = broker.settle(delivery, again()).await.unwrap();
        assert_eq!(ended == Ended::Dead, attempt == 6, "attempt {attempt}: {ended:?}");
        assert_eq!(inbox(&broker, "acme", None, 0).await.len(), usize::from(attempt == 6));
    }
    let dead = broker.dead(None, 0, 10).await.unwrap().items;
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].attempts, dead[0].why.as_str()), (6, "it did not work"));
    assert_eq!(dead[0].message, message("acme", "1"), "nothing of it is lost");
}

pub async fn a_dead_letter_is_redriven_with_all_attempts_before_it_or_dropped(open: Open) {
    let broker = open(quick()).await;
    broker.publish(message("acme", "1")).await.unwrap();
    let dead = Verdict::Dead { why: "never".to_owned(), reply: None };
    broker.settle(one(&broker).await, dead.clone()).await.unwrap();
    let seq = broker.dead(Some(tenant("acme")), 0, 10).await.unwrap().items[0].seq;
    assert_eq!(broker.redrive(Some(tenant("zeta")), seq, audit()).await.unwrap(), Redriven::Unknown);
    assert_eq!(broker.redrive(Some(tenant("acme")), seq, audit()).await.unwrap(), Redriven::OnItsWay);
    assert_eq!(
        broker.redrive(None, seq, audit()).await.unwrap(),
        Redriven::Unknown,
        "it is on its way already"
    );
    let delivery = one(&broker).await;
    assert_eq!(delivery.receipt.attempt, 1);
    assert!(delivery.round > 0, "a redriven message is a new try");
    broker.settle(delivery, dead).await.unwrap();
    let letter = broker.dead(None, 0, 10).await.unwrap().items.remove(0);
    assert_eq!(letter.redrives, 1);
    assert!(!broker.discard(Some(tenant("zeta")), letter.seq, audit()).await.unwrap());
    assert!(broker.discard(Some(tenant("acme")), letter.seq, audit()).await.unwrap());
    assert!(!broker.discard(None, letter.seq, audit()).await.unwrap());
    assert!(broker.find_dead(None, letter.seq).await.unwrap().is_none());
}

pub async fn what_can_never_work_is_a_dead_letter_at_once(open: Open) {
    let broker = open(quick()).await;
    broker.publish(message("acme", "1")).await.unwrap();
    let verdict = Verdict::Dead { why: "x".repeat(10_000), reply: Some(Bytes::from("no")) };
    assert_eq!(broker.settle(one(&broker).await, verdict).await.unwrap(), Ended::Dead);
    assert_eq!(inbox(&broker, "acme", None, 0).await.len(), 1);
    let report = broker.report().await.unwrap();
    assert_eq!((report[0].queued, report[0].dead), (0, 1));
}

pub async fn what_was_given_back_was_not_delivered(open: Open) {
    let broker = open(quick()).await;
    broker.publish(message("acme", "1")).await.unwrap();
    for _ in 0..20 {
        let delivery = one(&broker).await;
        assert_eq!((delivery.receipt.attempt, delivery.round), (1, 0));
        broker.settle(delivery, Verdict::Returned).await.unwrap();
    }
}

pub async fn a_tenant_that_has_enough_waiting_is_told_so_and_others_are_not(open: Open) {
    let broker = open(Settings { tenant_queued: 3, ..quick() }).await;
    for number in 0..3 {
        broker.publish(message("acme", &number.to_string())).await.unwrap();
    }
    let refused = broker.publish(message("acme", "4")).await.unwrap_err();
    assert_eq!(refused.code, Code::ResourceExhausted);
    broker.publish(message("zeta", "1")).await.unwrap();
    let mine = take(&broker, 1).await.remove(0);
    assert!(broker.publish(message("acme", "4")).await.is_err(), "what is in hand still counts");
    broker.settle(mine, done()).await.unwrap();
    broker.publish(message("acme", "4")).await.unwrap();
}

pub async fn a_tenant_has_only_so_much_in_hand_and_turns_are_fair(open: Open) {
    let broker = open(Settings { tenant_in_flight: 3, ..quick() }).await;
    for number in 0..50 {
        broker.publish(message("acme", &format!("a{number}"))).await.unwrap();
    }
    for number in 0..2 {
        broker.publish(message("zeta", &format!("z{number}"))).await.unwrap();
    }
    let first = take(&broker, 4).await;
    assert_eq!(ids(&first), ["a0", "z0", "a1", "z1"], "fifty of one do not hide the two of another");
    let second = take(&broker, 100).await;
    assert_eq!(ids(&second), ["a2"], "and one has at most three in hand");
    broker.settle(first[0].clone(), done()).await.unwrap();
    assert_eq!(ids(&take(&broker, 100).await), ["a3"]);
}

pub async fn a_lane_keeps_its_order_over_failures(open: Open) {
    let broker = open(quick()).await;
    for number in 1..=3 {
        let mut message = message("acme", &number.to_string());
        message.lane = Some("thread".to_owned());
        broker.publish(message).await.unwrap();
    }
    broker.publish(message("acme", "free")).await.unwrap();
    let first = take(&broker, 9).await;
    assert_eq!(ids(&first), ["1", "free"], "one of a lane at a time");
    broker.settle(first[0].clone(), again()).await.unwrap();
    let head = one(&broker).await;
    assert_eq!(ids(std::slice::from_ref(&head)), ["1"], "the one behind does not overtake");
    broker.settle(head, done()).await.unwrap();
    let second = one(&broker).await;
    assert_eq!(ids(std::slice::from_ref(&second)), ["2"]);
    broker.settle(second, Verdict::Dead { why: String::new(), reply: None }).await.unwrap();
    assert_eq!(ids(&take(&broker, 9).await), ["3"]);
}

pub async fn replies_are_read_in_their_order_by_whom_they_are_for(open: Open) {
    let broker = open(quick()).await;
    let mut news = broker.news();
    for (number, principal) in [(1, "svc:a"), (2, "svc:b"), (3, "svc:a")] {
        let mut message = message("acme", &number.to_string());
        message.principal = principal.to_owned();
        broker.publish(message).await.unwrap();
        let reply = Some(Bytes::from(format!("reply {number}")));
        broker.settle(one(&broker).await, Verdict::Done { reply }).await.unwrap();
        tokio::time::timeout(PATIENCE, news.changed()).await.unwrap().unwrap();
    }
    let texts = |found: &[(i64, String)]| found.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>();
    let mine = inbox(&broker, "acme", Some("svc:a"), 0).await;
    assert_eq!(texts(&mine), ["reply 1", "reply 3"]);
    assert_eq!(texts(&inbox(&broker, "acme", Some("svc:a"), mine[0].0).await), ["reply 3"]);
    assert_eq!(inbox(&broker, "acme", None, 0).await.len(), 3);
    let to = Subject::of_inbox(&tenant("acme"), "me").unwrap();
    let page = broker.replies(tenant("acme"), to, None, 0, 2).await.unwrap();
    assert!(page.more && page.items.len() == 2);
    broker.answer(message("acme", "9"), Bytes::from("later")).await.unwrap();
    assert_eq!(inbox(&broker, "acme", None, 0).await.len(), 4);
}

pub async fn tenants_do_not_see_each_other(open: Open) {
    let broker = open(quick()).await;
    broker.publish(message("acme", "1")).await.unwrap();
    let verdict = Verdict::Dead { why: String::new(), reply: Some(Bytes::from("no")) };
    broker.settle(one(&broker).await, verdict).await.unwrap();
    assert!(broker.dead(Some(tenant("zeta")), 0, 10).await.unwrap().items.is_empty());
    assert!(inbox(&broker, "zeta", None, 0).await.is_empty());
    let acmes = Subject::of_inbox(&tenant("acme"), "me").unwrap();
    assert!(broker.replies(tenant("zeta"), acmes, None, 0, 10).await.unwrap().items.is_empty());
}

pub async fn many_publish_at_once_and_each_message_is_delivered_once(open: Open) {
    let broker = open(quick()).await;
    let names = ["acme", "zeta", "mu"];
    let publish = (0..300).map(|number| broker.publish(message(names[number % 3], &number.to_string())));
    for published in join_all(publish).await {
        published.unwrap();
    }
    let mut seen = Vec::new();
    while seen.len() < 300 {
        let taken = take(&broker, 16).await;
        seen.extend(taken.iter().map(|delivery| delivery.message.id.parse::<u32>().unwrap()));
        for ended in join_all(taken.into_iter().map(|delivery| broker.settle(delivery, done()))).await {
            assert_eq!(ended.unwrap(), Ended::Gone);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
    assert!(broker.report().await.unwrap().is_empty());
}

/// The audit entry of an operation.
fn audit() -> orchestr8_kernel::ports::store::Link {
    orchestr8_kernel::audit::StateChange::by_server("test", "acme", None).link(0)
}
