//! Questions of another server: passed on to the client of the call, or refused.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::peer::About;
use orchestr8_kernel::{Halt, Settled, Why};
use orchestr8_testing::settled::{fault, text};
use orchestr8_testing::{Person, until, within};
use serde_json::{Map, Value, json};

use crate::world::{World, fixture};

fn name() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"name": "Ada"}})
}

async fn call(world: &World, person: &Arc<Person>, tool: &str, args: Value) -> Settled {
    let mut submission = world.submission(tool, args);
    submission.peer = Some(person.clone());
    within(world.kernel.submit(submission)).await
}

/// What the server heard.
async fn heard(world: &World, person: &Arc<Person>, tool: &str, args: Value) -> Value {
    serde_json::from_str(&text(call(world, person, tool, args).await)).unwrap()
}

#[tokio::test]
async fn a_question_reaches_the_client_of_the_call_and_its_answer_the_server() {
    let world = World::with(fixture(&[])).await;
    let person = Person::always(&[About::Elicit], accepted());
    assert_eq!(heard(&world, &person, "other.ask_and_write", name()).await, json!([accepted()]));
    assert_eq!(person.asked.lock()[0].params["message"], "other: Who?", "a person should know who asks");
    let sampled = json!({"model": "m", "role": "assistant", "content": {"type": "text", "text": "hi"}});
    let person = Person::always(&[About::Sample], sampled.clone());
    let ask = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}});
    assert_eq!(heard(&world, &person, "other.ask", ask).await[0]["content"], sampled["content"]);
    assert_eq!(person.asked.lock()[0].params["maxTokens"], 5);
    let roots = json!({"roots": [{"uri": "file:///srv", "name": "srv"}]});
    let person = Person::always(&[About::Roots], roots.clone());
    assert_eq!(heard(&world, &person, "other.ask", json!({"method": "roots/list"})).await, json!([roots]));
    world.remote.stop().await;
}

#[tokio::test]
async fn what_a_client_cannot_be_asked_is_refused_and_the_call_goes_on() {
    let world = World::with(fixture(&[])).await;
    let deaf = Arc::new(Person::default());
    let refused = heard(&world, &deaf, "other.ask", name()).await;
    assert_eq!(refused, json!([{"code": -32_601, "message": "this client cannot be asked that"}]));
    let nobody: Value = serde_json::from_str(&text(world.call("other.ask", name()).await)).unwrap();
    assert_eq!(nobody, json!([{"code": -32_603, "message": "nobody is there to be asked"}]));
    let odd = Person::always(&[About::Elicit], json!({"action": 7}));
    let failed = heard(&world, &odd, "other.ask", name()).await;
    assert!(failed[0]["message"].as_str().unwrap().contains("cannot be read"), "{failed}");
    world.remote.stop().await;
}

#[tokio::test]
async fn nobody_is_asked_while_it_is_not_clear_whose_call_it_is() {
    let world = World::with(fixture(&[])).await;
    let hanging = world.submission("other.hang", json!({}));
    let (kernel, cancel) = (world.kernel.clone(), hanging.cancel.clone());
    let hang = tokio::spawn(async move { kernel.submit(hanging).await });
    until("the call to run", || world.kernel.running() == 1).await;
    let person = Person::always(&[About::Elicit], accepted());
    let refused = heard(&world, &person, "other.ask", name()).await;
    assert_eq!((&refused[0]["code"], person.asked.lock().len()), (&json!(-32_601), 0), "{refused}");
    cancel.fire(Why::Client);
    within(hang).await.unwrap();
    until("the slot to be free", || world.kernel.running() == 0).await;
    let refused = heard(&world, &person, "other.ask", name()).await;
    assert_eq!(refused[0]["code"], -32_601, "it may be a question of the call that was given up: {refused}");
    world.remote.stop().await;
}

#[tokio::test]
async fn a_server_asks_so_much_and_no_more() {
    let world = World::with(fixture(&[])).await;
    let person = Person::always(&[About::Elicit], accepted());
    let mut many = name();
    many["count"] = json!(20);
    let heard = heard(&world, &person, "other.ask", many.clone()).await;
    assert_eq!((&heard[15], &heard[16]["code"]), (&accepted(), &json!(-32_601)), "{heard}");
    world.remote.stop().await;
    let modern = World::with(fixture(&["--modern"])).await;
    let stopped = fault(call(&modern, &person, "other.ask", many).await);
    assert_eq!(stopped.code, Code::ResourceExhausted, "{stopped:?}");
    modern.remote.stop().await;
}

#[tokio::test]
async fn a_client_that_answers_by_calling_again_does_so_where_a_repeat_is_harmless() {
    for flags in [&[][..], &["--modern"][..]] {
        let world = World::with(fixture(flags)).await;
        let mut twice = name();
        twice["count"] = json!(2);
        let mut answers = Map::new();
        let calls = loop {
            let person = Person::by_key(&[About::Elicit], answers.clone().into());
            match call(&world, &person, "other.ask", twice.clone()).await.result {
                Err(Halt::Asks(asks)) => answers.extend(asks.into_iter().map(|ask| (ask.key, accepted()))),
                other => {
                    assert!(format!("{other:?}").contains("Ada"), "{other:?}");
                    break answers.len();
                }
            }
        };
        assert_eq!(calls, 2, "{flags:?}: one question at a time");
        world.remote.stop().await;
    }
    let world = World::with(fixture(&[])).await;
    let person = Person::by_key(&[About::Elicit], json!({}));
    let refused = heard(&world, &person, "other.ask_and_write", name()).await;
    assert!(refused[0]["message"].as_str().unwrap().contains("may not be repeated"), "{refused}");
    world.remote.stop().await;
}

#[tokio::test]
async fn in_the_current_revision_a_call_says_what_its_client_can_be_asked() {
    let world = World::with(fixture(&["--modern"])).await;
    let person = Person::always(&[About::Elicit], accepted());
    let heard = heard(&world, &person, "other.ask_and_write", name()).await;
    assert_eq!((&heard["heard"], &heard["able"]), (&json!([accepted()]), &json!({"elicitation": {}})));
    assert_eq!(person.asked.lock()[0].params["message"], "other: Who?");
    let deaf = Arc::new(Person::default());
    for _ in 0..10 {
        let refused = fault(call(&world, &deaf, "other.ask_and_write", name()).await);
        assert_eq!(refused.code, Code::CapabilityMissing, "the server is well, so its breaker stays closed");
    }
    world.remote.stop().await;
}
