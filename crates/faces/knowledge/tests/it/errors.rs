//! Every fault an action can end with, in the words of the envelope (KNO-4).

use std::collections::BTreeSet;

use orchestr8_contract::error::Retry;
use orchestr8_contract::{Code, Kind};
use serde_json::json;

use crate::world::{World, envelope};

#[tokio::test]
async fn kno_4_every_fault_has_its_word_its_status_a_hint_and_a_trace() {
    let world = World::new();
    let mut words = BTreeSet::new();
    for code in Code::ALL {
        let answer = world.send(&envelope(1, "test.fault", json!({"code": code.as_str()}))).await;
        let word = answer.error(answer.status.as_u16());
        let expected = match code.kind() {
            Kind::Invalid => (422, "UNPROCESSABLE_ENTITY"),
            Kind::NotFound => (404, "NOT_FOUND"),
            Kind::Unauthenticated => (401, "UNAUTHORIZED"),
            Kind::Forbidden => (403, "FORBIDDEN"),
            Kind::Conflict | Kind::Cancelled | Kind::Dependency | Kind::State | Kind::Unknown => {
                (409, "CONFLICT")
            }
            Kind::Exhausted if *code == Code::PayloadTooLarge => (400, "INVALID_ARGUMENT"),
            Kind::Exhausted => (429, "RATE_LIMIT_EXCEEDED"),
            Kind::Timeout | Kind::Unavailable => (503, "UNAVAILABLE"),
            Kind::Internal => (500, "INTERNAL"),
        };
        assert_eq!((answer.status.as_u16(), word.as_str()), expected, "{code}");
        if code.retry() == Retry::Later {
            assert!(matches!(answer.status.as_u16(), 409 | 429 | 503), "{code} may be tried again");
        }
        words.insert(word);
    }
    assert_eq!(words.len(), 9, "all but EXPIRED, which is the envelope's: {words:?}");
}
