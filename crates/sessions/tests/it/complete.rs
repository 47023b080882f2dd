//! `llm.complete`: text, conversations, structured answers and their repair, failures, cancellation.

use orchestr8_contract::id::Key;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{End, Why};
use orchestr8_testing::{Person, settled, submission, until, within};
use serde_json::{Value, json};

use crate::world::World;

const NAME: &str = "llm.complete";

async fn complete(world: &World, args: Value) -> Value {
    settled::value(world.kernel.submit(submission(NAME, args)).await)
}

async fn failed(world: &World, args: Value) -> Fault {
    settled::fault(world.kernel.submit(submission(NAME, args)).await)
}

fn number() -> Value {
    json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false})
}

#[tokio::test]
async fn a_prompt_is_answered_and_what_it_used_is_told() {
    let world = World::new().await;
    let answer = complete(&world, json!({"prompt": "hello there", "system": "be kind"})).await;
    assert_eq!(answer["text"], "hello there");
    assert_eq!(
        (&answer["provider"], &answer["model"], &answer["stopReason"], &answer["attempts"]),
        (&json!("offline"), &json!("echo"), &json!("stop"), &json!(1))
    );
    assert_eq!(
        answer["usage"],
        json!({"input": 5, "output": 3, "cacheRead": 0, "cacheWrite": 0, "cost": 0.0, "total": 8})
    );
    assert!(answer.get("json").is_none());
}

#[tokio::test]
async fn a_conversation_is_answered_from_its_last_message() {
    let world = World::new().await;
    let messages = json!([
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "1"},
        {"role": "user", "content": [{"type": "text", "text": "two"}]}
    ]);
    assert_eq!(complete(&world, json!({"messages": messages})).await["text"], "two");
    for (args, path) in [
        (json!({}), "/prompt"),
        (json!({"prompt": "a", "messages": [{"role": "user", "content": "b"}]}), "/prompt"),
        (json!({"messages": [{"role": "assistant", "content": "b"}]}), "/messages"),
        (json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}), "/messages/0"),
        (json!({"prompt": "a", "provider": "offline"}), "/modelId"),
        (json!({"prompt": "a", "schema": {"type": "string"}}), "/schema"),
        (
            json!({"prompt": "a", "schema": {"type": "object", "properties": {"a": {"type": "nothing"}}}}),
            "/schema",
        ),
    ] {
        let fault = failed(&world, args.clone()).await;
        assert_eq!(
            (fault.code, &fault.details.unwrap()["path"]),
            (Code::InvalidArgument, &json!(path)),
            "{args}"
        );
    }
    let fault = failed(&world, json!({"prompt": "a", "provider": "offline", "modelId": "nobody"})).await;
    assert_eq!(fault.code, Code::NotFound);
    assert_eq!(failed(&world, json!({"prompt": "a", "promt": "b"})).await.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_structured_answer_is_checked_and_mended() {
    let world = World::new().await;
    let args = |prompt: &str| json!({"prompt": prompt, "schema": number()});
    let right = complete(&world, args("/json {\"n\": 1}")).await;
    assert_eq!((&right["json"], &right["attempts"]), (&json!({"n": 1}), &json!(1)));
    let mended = complete(&world, args("/json sorry\n/json {\"n\": \"x\"}\n/json {\"n\": 3}")).await;
    assert_eq!((&mended["json"], &mended["attempts"]), (&json!({"n": 3}), &json!(3)));
    let (once, thrice) = (&right["usage"]["total"], &mended["usage"]["total"]);
    assert!(thrice.as_u64() > once.as_u64().map(|once| once * 3), "all attempts count: {once} and {thrice}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_mended_is_a_fault_with_its_problems_and_its_price() {
    let world = World::new().await;
    let prompt = "/json {\"n\": \"x\"}\n/json {\"m\": 1}";
    let fault = failed(&world, json!({"prompt": prompt, "schema": number(), "repairs": 1})).await;
    assert_eq!(fault.code, Code::AgentFailed);
    let details = fault.details.unwrap();
    assert_eq!((&details["reason"], &details["attempts"]), (&json!("schema_mismatch"), &json!(2)));
    assert_eq!((details["problems"].as_array().unwrap().len(), &details["text"]), (2, &json!("{\"m\": 1}")));
    assert!(details["usage"]["total"].as_u64().unwrap() > 20, "{details:?}");
    let cut = json!({"prompt": "/json {\"n\": 123456789}", "schema": number(), "maxTokens": 2});
    assert_eq!(failed(&world, cut).await.details.unwrap()["attempts"], 1);
}

#[tokio::test]
async fn failures_of_models_pass_through_and_leave_their_key_free() {
    let world = World::new().await;
    let wish = || {
        let mut wish = submission(NAME, json!({"prompt": "/fail UNAVAILABLE 1\nback"}));
        let key = Key::parse("k").unwrap();
        wish.identities.push(Identity { scope: Scope("test".into()), key, ttl_ms: 60_000 });
        world.kernel.submit(wish)
    };
    assert_eq!(settled::fault(wish().await).code, Code::Unavailable);
    let answered = wish().await;
    assert_eq!((answered.end, answered.replayed), (End::Success, false));
    let again = wish().await;
    assert!(again.replayed, "a success is not paid for twice");
    assert_eq!(settled::value(again)["text"], "back");
}

#[tokio::test]
async fn it_tells_progress_and_stops_when_told_to() {
    let world = World::new().await;
    let person = std::sync::Arc::new(Person::default());
    let mut wish =
        submission(NAME, json!({"prompt": "/slow 20\na b c d e f g h i j k l m n o p q r s t u v w x y z"}));
    wish.peer = Some(person.clone());
    let cancel = wish.cancel.clone();
    let kernel = world.kernel.clone();
    let running = tokio::spawn(async move { kernel.submit(wish).await });
    until("progress", || !person.heard.lock().is_empty()).await;
    cancel.fire(Why::Client);
    let ended = within(running).await.unwrap();
    assert_eq!(ended.code(), Some(Code::Cancelled));
}
