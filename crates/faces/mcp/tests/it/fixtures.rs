//! Actions to try the face with: quick and slow ones, stubborn and talkative ones, a prompt, resources.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::content::{PromptMessage, ResourceContents, ResourceData, Role};
use orchestr8_contract::{AccessRole, AllowedRoles, Code, Content, Event, Fault, Output, Priority};
use orchestr8_kernel::action::{Address, PromptArgument, Resource, Slotting, Tasking};
use orchestr8_kernel::health::memory_usage_bytes;
use orchestr8_kernel::peer::{About, Ask, Severity};
use orchestr8_kernel::{Action, Args, Context, Halt, Kernel, Policy, Reply};
use orchestr8_mcp::audience::{REGISTRY_CHANGED, RESOURCE_UPDATED};
use orchestr8_mcp::{ASKS_FIRST, PROTOCOL_ERROR};
use serde_json::{Value, json};

type Given = Result<Reply, Halt>;

fn any() -> Value {
    json!({"type": "object"})
}

fn ms(args: &Args, name: &str) -> Duration {
    Duration::from_millis(args.get(name).and_then(Value::as_u64).unwrap_or_default())
}

fn text(text: impl Into<String>) -> Given {
    Ok(Output::text(text).into())
}

/// Fixtures have no row in the access table: anyone may run them unless they say otherwise.
fn open(action: Action) -> Action {
    let allowed = action.allowed.unwrap_or(AllowedRoles::ANYONE);
    action.allowed_to(allowed)
}

pub fn register(kernel: &Kernel) {
    for action in plain().into_iter().chain(odd()).chain(of_the_seed()).chain(asking()).chain(others()) {
        kernel.registry().register(open(action)).unwrap();
    }
}

fn plain() -> Vec<Action> {
    let message =
        json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]});
    let echo =
        Action::tool("echo", "Gives back.", message.clone(), Policy::quick_read(), |args, _| async move {
            Ok(Output::json(args.into_value()).into())
        });
    let sum = Action::tool("sum", "Adds.", any(), Policy::quick_read(), |args: Args, _| async move {
        let sum: i64 = args.as_value().as_object().unwrap().values().filter_map(Value::as_i64).sum();
        Ok(Output::json(json!({"sum": sum})).into())
    });
    let sum = sum.and_then(|sum| {
        sum.giving(json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}))
    });
    // Stops when it is told to.
    let sleep =
        Action::tool("sleep", "Waits.", any(), Policy::read(), |args: Args, context: Context| async move {
            tokio::select! {
                () = tokio::time::sleep(ms(&args, "ms")) => text("slept"),
                () = context.cancel.fired() => Err(Fault::new(Code::Cancelled, "stopped").into()),
            }
        });
    // Goes on whatever it is told.
    let stubborn = Action::tool("stubborn", "Waits.", any(), Policy::read(), |args: Args, _| async move {
        tokio::time::sleep(ms(&args, "ms")).await;
        text("done")
    });
    let panics =
        Action::tool(
            "panics",
            "Breaks.",
            any(),
            Policy::quick_read(),
            |_, _| async move { panic!("a defect") },
        );
    let long = Action::tool("long", "Says much.", any(), Policy::read(), |args: Args, _| async move {
        text("ä".repeat(usize::try_from(args.get("count").and_then(Value::as_u64).unwrap()).unwrap()))
    });
    let counts = Action::tool("counts", "Tells.", any(), Policy::read(), |_, context: Context| async move {
        for done in [0.0, 0.0, 50.0, 100.0] {
            context.progress(done, Some(100.0), None);
            context.tell(Severity::Info, json!({"done": done, "password": "hush"}));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        text("counted")
    });
    [echo, sum, sleep, stubborn, panics, long, counts].map(Result::unwrap).into()
}

fn odd() -> Vec<Action> {
    let mut secret =
        Action::tool("secret", "Hidden.", any(), Policy::quick_read(), |_, _| async move { text("!") });
    if let Ok(action) = &mut secret {
        action.shown = orchestr8_kernel::action::Shown::Hidden;
    }
    let mut roled =
        Action::tool("roled", "For admins.", any(), Policy::quick_read(), |_, _| async move { text("!") });
    if let Ok(action) = &mut roled {
        action.about.version = Some("3".into());
        action.allowed = Some(AllowedRoles::any_of(&[AccessRole::Admin]));
    }
    let image = Action::tool("image", "Shows.", any(), Policy::quick_read(), |_, _| async move {
        Ok(Output::blocks(vec![Content::image("AA==", "image/png")]).into())
    });
    let store = Action::tool("store", "Counts.", any(), Policy::stored(), |_, context: Context| async move {
        text(format!("run {}", context.run))
    });
    let aliased =
        Action::tool("agent.list", "Lists.", any(), Policy::quick_read(), |_, _| async move { text("none") })
            .map(|action| action.also_called("agent/list"));
    [secret, roled, image, store, aliased].map(Result::unwrap).into()
}

/// The tools of seed 000 as far as the transcripts call them, in the shapes the program gives them.
fn of_the_seed() -> Vec<Action> {
    let free = Policy { slotting: Slotting::Free, ..Policy::quick_read() };
    let health = Action::tool("health", "Shows.", any(), free, |_, context: Context| async move {
        let (kernel, limits) = (&context.kernel, context.kernel.limits());
        let telemetry =
            kernel.health().telemetry(memory_usage_bytes(), kernel.running(), limits.concurrent_runs);
        let config = json!({
            "toolTimeoutMs": limits.timeout_ms, "maxConcurrentExecutions": limits.concurrent_runs,
            "maxPayloadBytes": limits.payload_bytes, "maxStateBytes": orchestr8_contract::limits::STATE_BYTES,
        });
        let server = json!({"name": "test-server", "version": "1.2.3"});
        let status = kernel.health().status(&telemetry);
        Ok(Output::json(
            json!({"server": server, "config": config, "resources": telemetry, "status": status}),
        )
        .into())
    });
    let state =
        Action::tool("agent.getState", "Shows.", any(), Policy::quick_read(), |args: Args, _| async move {
            let id = args.text("agentId").unwrap_or_default().to_owned();
            Err(Fault::new(Code::NotFound, format!("there is no agent named '{id}'"))
                .with("agentId", id)
                .into())
        })
        .map(|action| action.also_called("agent/getState"));
    [health, state].map(Result::unwrap).into()
}

fn name_ask() -> Ask {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    Ask {
        key: "name".into(),
        about: About::Elicit,
        params: json!({"message": "Who?", "requestedSchema": schema}),
    }
}

async fn greet(context: Context) -> Given {
    let answer = context.ask(name_ask()).await?;
    text(format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or("nobody")))
}

fn asking() -> Vec<Action> {
    let asks = Action::tool("asks", "Asks.", any(), Policy::read(), |_, context| greet(context));
    let twice =
        Action::tool("asks_twice", "Asks.", any(), Policy::read(), |_, context: Context| async move {
            let name = context.ask(name_ask()).await?;
            let color = context.ask(Ask { key: "color".into(), ..name_ask() }).await?;
            text(format!("{} likes {}", name["content"]["name"], color["content"]["name"]))
        });
    let samples =
        Action::tool("samples", "Samples.", any(), Policy::read(), |_, context: Context| async move {
            let params = json!({"messages": [], "maxTokens": 5});
            let answer = context.ask(Ask { key: "s".into(), about: About::Sample, params }).await?;
            text(answer["content"]["text"].as_str().unwrap_or_default())
        });
    let tasked = |tasking| Policy { tasking, timeout_ms: Some(100_000), ..Policy::read() };
    let job = Action::tool(
        "job",
        "Works.",
        any(),
        tasked(Tasking::Optional),
        |args: Args, context: Context| async move {
            if let Some(words) = args.text("saying") {
                context.progress(1.0, None, Some(words));
            }
            tokio::select! {
                () = tokio::time::sleep(ms(&args, "ms")) => text("worked"),
                () = context.cancel.fired() => Err(Fault::new(Code::Cancelled, "stopped").into()),
            }
        },
    );
    let required = Action::tool("only_task", "Works.", any(), tasked(Tasking::Required), |_, _| async move {
        Err(Fault::internal("it broke").into())
    });
    let protocol =
        Action::tool("protocol_job", "Breaks.", any(), tasked(Tasking::Optional), |_, _| async move {
            Err(Fault::internal("a protocol error").with(PROTOCOL_ERROR, -32603).into())
        });
    let asking_job =
        Action::tool("asking_job", "Asks.", any(), tasked(Tasking::Optional), |_, context| greet(context));
    let mut first =
        Action::tool("asks_first", "Asks.", any(), tasked(Tasking::Required), |_, context| greet(context));
    if let Ok(action) = &mut first {
        action.about.meta.insert(ASKS_FIRST.into(), json!(["name"]));
    }
    let changes = Action::tool(
        "changes",
        "Tells.",
        any(),
        Policy::quick_read(),
        |args: Args, context: Context| async move {
            let (name, subject) = match args.text("uri") {
                Some(uri) => (RESOURCE_UPDATED, uri),
                None => (REGISTRY_CHANGED, args.text("what").unwrap_or_default()),
            };
            context.kernel.bus().publish(Event {
                name,
                subject: subject.into(),
                priority: Priority::Normal,
                at_ms: 0,
                data: Arc::default(),
            });
            text("told")
        },
    );
    [asks, twice, samples, job, required, protocol, asking_job, first, changes].map(Result::unwrap).into()
}

fn others() -> Vec<Action> {
    let fixed = Resource {
        address: Address::Fixed("test://fixed".into()),
        mime_type: Some("text/plain".into()),
        size: None,
    };
    let read = |uri: String, text: String| {
        let data = ResourceData::Text(text);
        let contents = ResourceContents { uri, mime_type: Some("text/plain".into()), data, meta: None };
        Ok(Output::Resource { contents: vec![contents] }.into())
    };
    let fixed = Action::resource("fixed", "One thing.", fixed, move |args: Args, _| async move {
        read(args.text("uri").unwrap().to_owned(), "fixed text".into())
    });
    let template =
        Resource { address: Address::Template("test://item/{id}".into()), mime_type: None, size: None };
    let template = Action::resource("item", "Many things.", template, move |args: Args, _| async move {
        match args.text("id").unwrap() {
            "none" => Err(Fault::new(Code::NotFound, "no such item").into()),
            id => read(args.text("uri").unwrap().to_owned(), format!("item {id}")),
        }
    })
    .map(|action| {
        action.completing(Arc::new(|_, typed, _| (0..150).map(|n| format!("{typed}{n}")).collect()))
    });
    let arguments =
        vec![PromptArgument { name: "who".into(), description: Some("Whom?".into()), required: true }];
    let prompt = Action::prompt("hello", "Greets.", arguments, |args: Args, _| async move {
        let content = Content::text(format!("Hello, {}!", args.text("who").unwrap()));
        Ok(Output::Prompt { description: None, messages: vec![PromptMessage { role: Role::User, content }] }
            .into())
    })
    .map(|action| action.completing(Arc::new(|_, typed, _| vec![format!("{typed}!")])));
    let asking = Action::prompt("asking", "Asks.", Vec::new(), |_, context: Context| async move {
        let answer = context.ask(name_ask()).await?;
        let content = Content::text(answer["content"]["name"].as_str().unwrap_or_default());
        Ok(Output::Prompt { description: None, messages: vec![PromptMessage { role: Role::User, content }] }
            .into())
    });
    [fixed, template, prompt, asking].map(Result::unwrap).into()
}
