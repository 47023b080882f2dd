//! What the offline model does with each prompt form.

use super::*;
use crate::message::{Assistant, Block, StopReason, ToolResult, User};
use orchestr8_kernel::ports::clock::Simulated;
use serde_json::json;

struct World {
    model: Offline,
    clock: Arc<Simulated>,
    cancel: CancellationToken,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(Simulated::new());
        Self { model: Offline::new(clock.clone()), clock, cancel: CancellationToken::new() }
    }

    async fn ask(&self, request: Request) -> Vec<Result<Delta, Fault>> {
        self.model.stream(request, self.cancel.clone()).collect().await
    }

    async fn answer(&self, request: Request) -> Assistant {
        match self.ask(request).await.pop() {
            Some(Ok(Delta::Done(assistant))) => assistant,
            other => panic!("{other:?}"),
        }
    }

    async fn code(&self, request: Request) -> Option<Code> {
        self.ask(request).await.pop().and_then(|last| last.err()).map(|fault| fault.code)
    }
}

fn prompt(text: &str) -> Request {
    Request { messages: vec![Message::User(User::text(text, 1))], ..Request::default() }
}

fn result(call: &str, name: &str, text: &str, is_error: bool) -> Message {
    Message::ToolResult(ToolResult {
        tool_call_id: call.into(),
        tool_name: name.into(),
        content: vec![Block::text(text)],
        is_error,
        timestamp: 2,
    })
}

#[tokio::test]
async fn text_is_said_back_word_by_word() {
    let world = World::new();
    let deltas: Vec<Delta> =
        world.ask(prompt("good morning you")).await.into_iter().map(Result::unwrap).collect();
    let text = |delta: &str| Delta::Text { index: 0, delta: delta.into() };
    assert_eq!(
        deltas[..5],
        [
            Delta::TextStart { index: 0 },
            text("good "),
            text("morning "),
            text("you"),
            Delta::TextEnd { index: 0 }
        ]
    );
    let Delta::Done(done) = &deltas[5] else { panic!("{deltas:?}") };
    assert_eq!(
        (done.content.as_slice(), done.stop_reason),
        ([Block::text("good morning you")].as_slice(), StopReason::Stop)
    );
    assert_eq!((done.usage.input, done.usage.output, done.usage.cost), (4, 4, 0.0));
    assert_eq!((done.provider.as_str(), done.model.as_str()), ("offline", "echo"));
    assert_eq!(done.timestamp, Simulated::START_MS);
    assert_eq!(world.answer(prompt("")).await.content, [Block::text("ok")]);
}

#[tokio::test]
async fn tools_are_called_and_their_results_quoted() {
    let world = World::new();
    let mut request = prompt("/think let me see\nLooking.\n/tool echo {\"a\":1}\n/tool list");
    let called = world.answer(request.clone()).await;
    assert_eq!(called.stop_reason, StopReason::ToolUse);
    assert_eq!(called.content[0], Block::Thinking { thinking: "let me see".into(), signature: None });
    assert_eq!(called.content[1], Block::text("Looking."));
    let calls: Vec<_> = called.tool_calls().map(|(id, name, _)| (id.to_owned(), name.to_owned())).collect();
    assert_eq!(calls, [("call_1_1".into(), "echo".into()), ("call_1_2".to_owned(), "list".to_owned())]);
    assert_eq!(called.tool_calls().next().unwrap().2["a"], json!(1));
    request.messages.push(Message::Assistant(called));
    request.messages.push(result("call_1_1", "echo", "1", false));
    request.messages.push(result("call_1_2", "list", "no", true));
    let quoted = world.answer(request).await;
    assert_eq!(quoted.content, [Block::text("echo answered: 1\nlist failed: no")]);
    assert_eq!(quoted.stop_reason, StopReason::Stop);
}

#[tokio::test]
async fn what_comes_after_then_waits_for_the_results() {
    let world = World::new();
    let mut request = prompt("/tool a\n/then\n/tool b\n/then\nall done");
    for name in ["a", "b"] {
        let called = world.answer(request.clone()).await;
        let (id, called_name, _) = called.tool_calls().next().unwrap();
        assert_eq!(called_name, name);
        let result = result(id, name, "x", false);
        request.messages.push(Message::Assistant(called));
        request.messages.push(result);
    }
    assert_eq!(world.answer(request).await.content, [Block::text("all done")]);
}

#[tokio::test]
async fn it_fails_as_asked_the_first_times_or_always() {
    let world = World::new();
    let request = prompt("/fail UNAVAILABLE 2\nhere I am");
    assert_eq!(world.code(request.clone()).await, Some(Code::Unavailable));
    assert_eq!(world.code(prompt("/fail UNAVAILABLE 1")).await, Some(Code::Unavailable));
    assert_eq!(world.code(request.clone()).await, Some(Code::Unavailable));
    assert_eq!(world.answer(request.clone()).await.content, [Block::text("here I am")]);
    assert_eq!(world.code(request).await, Some(Code::Unavailable), "it begins anew");
    for _ in 0..3 {
        assert_eq!(world.code(prompt("/fail INTERNAL")).await, Some(Code::Internal));
    }
}

#[tokio::test]
async fn only_so_many_failures_are_remembered() {
    let world = World::new();
    for n in 0..OFFLINE_FAILURES + 10 {
        world.code(prompt(&format!("/fail TIMEOUT 5\n{n}"))).await;
    }
    assert_eq!(world.model.failures.lock().0.len(), OFFLINE_FAILURES);
}

#[tokio::test(start_paused = true)]
async fn it_waits_before_each_delta_and_can_be_stopped_in_between() {
    let world = World::new();
    world.answer(prompt("/slow 100\none two")).await;
    assert_eq!(world.clock.now_ms() - Simulated::START_MS, 400);
    let mut stream = world.model.stream(prompt("/slow 60000\none two"), world.cancel.clone());
    assert_eq!(stream.next().await.unwrap().unwrap(), Delta::TextStart { index: 0 });
    let before_ms = world.clock.now_ms();
    let (next, ()) = tokio::join!(stream.next(), async { world.cancel.cancel() });
    assert!(next.is_none());
    assert_eq!(world.clock.now_ms(), before_ms);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn long_answers_have_as_many_words_and_keep_to_the_limit_of_output() {
    let world = World::new();
    assert_eq!(world.answer(prompt("/long 3")).await.content, [Block::text("word1 word2 word3")]);
    let cut = world.answer(Request { max_output: Some(2), ..prompt("/long 1000\n/tool x") }).await;
    assert_eq!(
        (cut.content.as_slice(), cut.stop_reason),
        ([Block::text("word1 wo")].as_slice(), StopReason::Length)
    );
    let echoed = world.answer(prompt(&"ä".repeat(10_000))).await;
    let Block::Text { text } = &echoed.content[0] else { panic!("{echoed:?}") };
    assert!(text.ends_with("… (8000 more characters)"), "{text}");
}

#[tokio::test]
async fn structured_answers_are_given_one_after_the_other() {
    let world = World::new();
    assert_eq!(world.answer(prompt("/json {\"a\": 1}")).await.content, [Block::text("{\"a\": 1}")]);
    let mut request = Request { response_schema: Some(json!({})), ..prompt("/json no\n/json {}") };
    for expected in ["no", "{}", "{}"] {
        let answer = world.answer(request.clone()).await;
        assert_eq!(answer.content, [Block::text(expected)]);
        request.messages.push(Message::Assistant(answer));
        request.messages.push(Message::User(User::text("that is not valid, mend it", 3)));
    }
    let plain = Request { response_schema: Some(json!({})), ..prompt("hello") };
    assert_eq!(world.answer(plain).await.content, [Block::text("hello")]);
}

#[tokio::test]
async fn a_mistake_in_a_form_is_said() {
    let answer = World::new().answer(prompt("/tool x {broken")).await;
    assert_eq!(answer.content, [Block::text("/tool x: the arguments are not a JSON object")]);
}
