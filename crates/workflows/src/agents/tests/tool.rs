//! `@orchestr8/tool` over a real kernel: repeats, failures, questions, cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use orchestr8_contract::{AllowedRoles, Code, Content, Fault, Output};
use orchestr8_kernel::action::OnUnknown;
use orchestr8_kernel::peer::{About, Ask};
use orchestr8_kernel::registry::ToolFilter;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply};
use serde_json::{Value, json};

use super::super::Settings;
use super::world::World;

const TOOL: &str = "@orchestr8/tool";

fn any() -> Value {
    json!({"type": "object"})
}

/// A world whose tool `count` says how often it ran.
fn counting() -> (World, Arc<AtomicU32>) {
    let (world, runs) = (World::new(), Arc::new(AtomicU32::new(0)));
    let counted = runs.clone();
    let action =
        Action::tool("count", "for tests", any(), Policy::outside(OnUnknown::Retry), move |args: Args, _| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            std::future::ready(Ok(Output::json(json!({"run": run, "args": args.into_value()})).into()))
        });
    world.kernel.registry().register(action.unwrap().allowed_to(AllowedRoles::ANYONE)).unwrap();
    (world, runs)
}

fn giving(world: &World, name: &str, result: Result<Output, Halt>) {
    let work = move |_: Args, _: Context| std::future::ready(result.clone().map(Reply::from));
    world
        .kernel
        .registry()
        .register(
            Action::tool(name, "for tests", any(), Policy::read(), work)
                .unwrap()
                .allowed_to(AllowedRoles::ANYONE),
        )
        .unwrap();
}

#[tokio::test]
async fn a_resumed_attempt_is_answered_from_the_ledger_and_a_retry_runs() {
    let (world, runs) = counting();
    let call = |attempt| {
        let mut call = world.call(TOOL, json!({"tool": "count", "arguments": {"a": 1}}));
        call.attempt = attempt;
        world.agent(TOOL).call(call)
    };
    let first = call(1).await.unwrap();
    assert_eq!(first.output, json!({"run": 1, "args": {"a": 1}}));
    assert_eq!(call(1).await.unwrap(), first, "the same attempt again");
    assert_eq!(call(2).await.unwrap().output["run"], 2);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_key_of_any_length_and_characters_is_kept() {
    let (world, runs) = counting();
    let call = || {
        let mut call = world.call(TOOL, json!({"tool": "count"}));
        call.key = format!("{}\n", "k".repeat(400)).into();
        world.agent(TOOL).call(call)
    };
    assert_eq!(call().await.unwrap(), call().await.unwrap());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn each_kind_of_output_becomes_a_value() {
    let world = World::new();
    let blocks = |structured, failed| Output::Blocks {
        blocks: vec![Content::text("said")],
        structured,
        failed,
        meta: None,
    };
    giving(&world, "structured", Ok(blocks(Some(json!({"a": 1})), false)));
    giving(&world, "content", Ok(blocks(None, false)));
    giving(&world, "failing", Ok(blocks(None, true)));
    giving(&world, "refusing", Err(Fault::new(Code::Unavailable, "later").into()));
    let ask = Ask { key: "k".into(), about: About::Elicit, params: json!({}) };
    giving(&world, "asking", Err(Halt::Asks(vec![ask])));
    let of = async |tool: &str| {
        let mut call = world.call(TOOL, json!({"tool": tool}));
        call.key = tool.into();
        world.agent(TOOL).call(call).await.map(|answer| answer.output)
    };
    assert_eq!(of("structured").await.unwrap(), json!({"a": 1}));
    assert_eq!(of("content").await.unwrap(), json!({"content": [{"type": "text", "text": "said"}]}));
    let failed = of("failing").await.unwrap_err();
    assert_eq!((failed.code, failed.message.as_ref()), (Code::AgentFailed, "the tool failing failed: said"));
    assert_eq!(of("refusing").await.unwrap_err().code, Code::Unavailable);
    assert_eq!(of("asking").await.unwrap_err().code, Code::CapabilityMissing);
}

#[tokio::test]
async fn only_tools_that_clients_see_can_be_called() {
    let world = World::new();
    let work = |_: Args, _: Context| std::future::ready(Ok(Output::json(1).into()));
    let hidden = Action::tool("hidden", "for tests", any(), Policy::read(), work)
        .unwrap()
        .hidden()
        .allowed_to(AllowedRoles::ANYONE);
    world.kernel.registry().register(hidden).unwrap();
    for tool in ["hidden", "nothing"] {
        assert_eq!(world.output(TOOL, json!({"tool": tool})).await.unwrap_err().code, Code::NotFound);
    }
    for wrong in [
        json!({}),
        json!({"tool": 1}),
        json!({"tool": "x", "args": {}}),
        json!({"tool": "x", "arguments": []}),
    ] {
        assert_eq!(world.output(TOOL, wrong).await.unwrap_err().code, Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_tool_that_is_filtered_out_is_not_there_for_workflows_either() {
    let tools = ToolFilter { only: vec!["read_*".into(), "list".into()], never: Vec::new() };
    let world = World::with(&Settings { tools, ..Settings::default() }, Vec::new());
    for name in ["read_file", "list", "write_file"] {
        giving(&world, name, Ok(Output::json(name)));
    }
    let of = async |tool: &str| {
        let mut call = world.call(TOOL, json!({"tool": tool}));
        call.key = tool.into();
        world.agent(TOOL).call(call).await.map(|answer| answer.output).map_err(|fault| fault.code)
    };
    assert_eq!(of("read_file").await, Ok(json!("read_file")));
    assert_eq!(of("list").await, Ok(json!("list")));
    assert_eq!(of("write_file").await, Err(Code::NotFound));
}

#[tokio::test]
async fn what_a_tool_says_of_others_is_filtered_too() {
    let tools = ToolFilter { only: vec!["look".into()], never: Vec::new() };
    let world = World::with(&Settings { tools, ..Settings::default() }, Vec::new());
    giving(&world, "other", Ok(Output::json(1)));
    let kernel = world.kernel.clone();
    let look = move |_: Args, context: Context| {
        let table = kernel.registry().table();
        let seen: Vec<&str> =
            table.tools().filter(|tool| context.sees(tool)).map(|tool| tool.name.as_str()).collect();
        std::future::ready(Ok(Output::json(json!(seen)).into()))
    };
    let look = Action::tool("look", "for tests", any(), Policy::read(), look)
        .unwrap()
        .allowed_to(AllowedRoles::ANYONE);
    world.kernel.registry().register(look).unwrap();
    assert_eq!(world.output(TOOL, json!({"tool": "look"})).await.unwrap(), json!(["look"]));
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_stops_the_tool() {
    let world = World::new();
    let (started, mut begun) = tokio::sync::mpsc::channel(1);
    let (stopped, mut ended) = tokio::sync::mpsc::channel(1);
    let work = move |_: Args, context: Context| {
        let (started, stopped) = (started.clone(), stopped.clone());
        async move {
            started.send(()).await.unwrap();
            context.cancel.fired().await;
            stopped.send(()).await.unwrap();
            Err(Halt::Fault(Fault::new(Code::Cancelled, "stopped")))
        }
    };
    world
        .kernel
        .registry()
        .register(
            Action::tool("slow", "for tests", any(), Policy::read(), work)
                .unwrap()
                .allowed_to(AllowedRoles::ANYONE),
        )
        .unwrap();
    let call = world.call(TOOL, json!({"tool": "slow"}));
    let cancel = call.cancel.clone();
    let calling = tokio::spawn(world.agent(TOOL).call(call));
    begun.recv().await.unwrap();
    cancel.cancel();
    let result =
        tokio::time::timeout(Duration::from_millis(100), calling).await.expect("within 100 ms").unwrap();
    assert_eq!(result.unwrap_err().code, Code::Cancelled);
    ended.recv().await.unwrap();
}
