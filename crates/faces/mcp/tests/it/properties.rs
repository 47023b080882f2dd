//! The correctness properties 1 to 8 of seed 000, each over a thousand cases. Nine and ten are the kernel's and the agents'.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::schema::{Schema, any_object};
use orchestr8_kernel::{Action, Context, Halt, Limits, Policy};
use orchestr8_mcp::{Eras, Face, Settings};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::world::{Client, face, face_on, settings, store, tool_error};

const CASES: u32 = 1000;
const CONNECTION_BEGINNING: &str = "00000002-0000-4000-8000-";
const REQUEST_BEGINNING: &str = "00000001-0000-4000-8000-";

/// Runs a property on one runtime with simulated time, so that a thousand cases share one face.
fn check<S: Strategy>(strategy: S, property: impl AsyncFn(S::Value)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |value| {
        runtime.block_on(property(value));
        Ok(())
    });
    outcome.unwrap();
}

/// A face whose making needs a runtime around it.
fn in_runtime<T>(make: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    make()
}

fn any_id() -> impl Strategy<Value = Value> {
    prop_oneof![any::<i64>().prop_map(Value::from), ".{0,20}".prop_map(Value::from), Just(Value::Null)]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z_]{1,6}", inner), 0..4).prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

fn no_object() -> impl Strategy<Value = Value> {
    any_json().prop_filter("must not be an object", |value| !value.is_object())
}

/// Replaces the tools that a property made before by these.
fn put(face: &Face, tools: Vec<Action>) {
    let tools = tools.into_iter().map(|mut tool| {
        tool.tenant = Some(Tenant::local());
        tool.allowed_to(orchestr8_contract::AllowedRoles::ANYONE)
    });
    face.kernel().registry().replace(|action| action.tenant.is_some(), tools.collect()).unwrap();
}

#[test]
fn prop_01_initialize_names_server_version_and_capabilities() {
    let kernel = in_runtime(face).kernel().clone();
    let versions = prop_oneof!["[0-9-]{0,12}".boxed(), Just(String::from("2024-11-05")).boxed()];
    check((".{0,40}", ".{0,20}", versions, any_id()), async |(name, version, wanted, id)| {
        let client = Client::of(&Face::new(kernel.clone(), Settings::new(&name, &version, [1; 32])));
        let answer = client
            .ask(id.clone(), "initialize", json!({"protocolVersion": wanted, "capabilities": {}}))
            .await;
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["serverInfo"], json!({"name": name, "version": version}));
        assert!(answer["result"]["capabilities"]["tools"].is_object());
        let spoken = answer["result"]["protocolVersion"].as_str().unwrap().to_owned();
        assert!(if wanted == "2024-11-05" {
            spoken == wanted
        } else {
            spoken == "2025-11-25" || spoken == wanted
        });
    });
}

#[test]
fn prop_02_nothing_passes_the_gate_before_running() {
    let face = in_runtime(|| {
        face_on(
            store(),
            Limits::default(),
            Settings { eras: Eras { legacy: true, modern: false }, ..settings() },
        )
    });
    let methods = prop_oneof![
        "[a-z/]{1,20}".boxed(),
        prop::sample::select(vec![
            "ping",
            "tools/list",
            "tools/call",
            "resources/read",
            "tasks/list",
            "initialized"
        ])
        .prop_map(String::from)
        .boxed(),
    ];
    let methods = methods.prop_filter("initialize opens the gate", |method| method != "initialize");
    check((any::<bool>(), methods, any_id(), any_json()), async |(begun, method, id, params)| {
        let client = Client::of(&face);
        if begun {
            client.ask(json!("init"), "initialize", json!({"protocolVersion": "2025-11-25"})).await;
        }
        let answer = client.ask(id.clone(), &method, params).await;
        assert_eq!(answer["id"], id);
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(-32002), &json!("Not initialized")));
        assert_eq!(error["data"]["code"], "NOT_INITIALIZED");
        assert!(error["data"]["message"].is_string() && error["data"].get("runId").is_none());
        assert_eq!(error["data"]["correlationId"], client.connection.id().as_str());
        assert_eq!(face.kernel().running(), 0);
    });
}

#[test]
fn prop_03_protocol_errors_carry_a_correlation_id() {
    let face = in_runtime(face);
    let wrong = prop_oneof![
        Just((-32601, "no/such/method", json!({}))),
        Just((-32602, "tools/call", json!({"name": 7}))),
        Just((-32602, "tools/call", json!({"name": "echo", "arguments": []}))),
        Just((-32602, "prompts/get", json!({"name": "no_such"}))),
        Just((-32602, "logging/setLevel", json!({"level": "loud"}))),
        Just((-32600, "initialize", json!({"protocolVersion": "x"}))),
    ];
    let given = prop_oneof![
        Just(None).boxed(),
        "[ -~]{1,40}".prop_map(|text| Some(json!(text))).boxed(),
        Just(Some(json!(""))).boxed(),
        Just(Some(json!("a\nb"))).boxed(),
        Just(Some(json!(7))).boxed(),
    ];
    check(
        (wrong, given, any_id(), "[^\\[{\"0-9tfn\\-\\s][^\n]{0,20}"),
        async |((code, method, mut params), given, id, garbage)| {
            let client = Client::running(&face, "2025-11-25", &json!({}));
            if let Some(given) = &given {
                params["_meta"] = json!({"correlationId": given});
            }
            let answer = client.ask(id, method, params).await;
            let fit = given
                .as_ref()
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty() && !text.contains('\n'));
            assert_eq!(&answer["error"]["code"], &json!(code));
            let heard = answer["error"]["data"]["correlationId"].as_str().unwrap();
            match fit {
                Some(given) => assert_eq!(heard, given),
                // One is made for this request (MCP-CORR-2).
                None => assert!(heard.starts_with(REQUEST_BEGINNING), "{heard}"),
            }
            // Nothing can be derived from what cannot be read.
            client.tell(&garbage);
            let answer = client.hear().await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
            assert_eq!(answer["error"]["data"]["correlationId"], client.connection.id().as_str());
            assert!(client.connection.id().as_str().starts_with(CONNECTION_BEGINNING));
        },
    );
}

#[test]
fn prop_04_tools_are_listed_in_order_of_name() {
    let kernel = in_runtime(face).kernel().clone();
    check((btree_set("[A-Za-z0-9_.-]{1,12}", 0..12), 1..8_usize), async |(names, page_size)| {
        let face = Face::new(kernel.clone(), Settings { page_size, ..settings() });
        let fixed: Vec<String> =
            kernel.registry().table().all().iter().map(|action| action.name.to_string()).collect();
        let names: Vec<String> = names.into_iter().filter(|name| !fixed.contains(name)).collect();
        let work = |_, _: Context| async move { Ok(Output::json(1).into()) };
        let tools = names
            .iter()
            .rev()
            .map(|name| Action::tool(name, "t", any_object(), Policy::quick_read(), work).unwrap());
        put(&face, tools.collect());
        let client = Client::running(&face, "2025-11-25", &json!({}));
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor}));
            let answer = client.ask(json!(1), "tools/list", params).await;
            let page = answer["result"]["tools"].as_array().unwrap();
            assert!(page.len() <= page_size);
            listed.extend(page.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            match answer["result"].get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        put(&face, Vec::new());
        assert!(listed.is_sorted(), "{listed:?}");
        assert!(names.iter().all(|name| listed.contains(name)));
    });
}

#[test]
fn prop_05_calls_use_the_schema_compiled_at_registration() {
    let face = in_runtime(face);
    let types = prop::sample::select(vec!["string", "integer", "boolean", "array", "object", "strnig"]);
    check((types, any::<bool>(), any_json()), async |(of_type, required, value)| {
        let wanted = if required { json!(["a"]) } else { json!([]) };
        let schema = json!({"type": "object", "properties": {"a": {"type": of_type}}, "required": wanted});
        let args = if value.is_null() { json!({}) } else { json!({"a": value}) };
        let work = |_, _: Context| async move { Ok(Output::json("ran").into()) };
        let made = Action::tool("made", "t", schema.clone(), Policy::quick_read(), work);
        let (compiled, is_made) = (Schema::compile(schema), made.is_ok());
        put(&face, made.into_iter().collect());
        let client = Client::running(&face, "2025-11-25", &json!({}));
        let answer = client.call(1, "made", args.clone()).await;
        match compiled {
            // A schema that does not compile is never registered, so no call can come to compile it.
            Err(_) => assert!(!is_made && tool_error(&answer)["code"] == "NOT_FOUND"),
            Ok(schema) if schema.check(&args).is_ok() => {
                assert_eq!(answer["result"]["isError"], false, "{answer}")
            }
            Ok(_) => assert_eq!(tool_error(&answer)["details"]["reason"], "schema_validation_failed"),
        }
    });
}

#[test]
fn prop_06_arguments_that_are_no_object_are_refused() {
    let (face, runs) = (in_runtime(face), Arc::new(AtomicUsize::new(0)));
    let counted = runs.clone();
    let tool = Action::tool("counted", "t", any_object(), Policy::quick_read(), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Output::json(1).into()) }
    });
    put(&face, vec![tool.unwrap()]);
    check((any_id(), no_object()), async |(id, arguments)| {
        let client = Client::running(&face, "2025-11-25", &json!({}));
        let answer =
            client.ask(id.clone(), "tools/call", json!({"name": "counted", "arguments": arguments})).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32602)));
        assert!(answer["error"]["data"]["correlationId"].is_string());
        assert_eq!(runs.load(Ordering::SeqCst), 0, "the tool must not have run");
    });
}

#[test]
fn prop_07_more_calls_than_slots_are_refused() {
    let faces: Vec<Face> = (1..=4)
        .map(|slots| {
            in_runtime(|| {
                face_on(store(), Limits { concurrent_runs: slots, ..Limits::default() }, settings())
            })
        })
        .collect();
    check((1..=4_usize, 1..10_usize, 1..50_u64), async |(slots, calls, ms)| {
        let face = &faces[slots - 1];
        let client = Client::running(face, "2025-11-25", &json!({}));
        for id in 0..calls {
            let params = json!({"name": "stubborn", "arguments": {"ms": ms}});
            client.tell(
                &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string(),
            );
        }
        let (mut refused, mut done) = (0, 0);
        for _ in 0..calls {
            let answer = client.hear().await;
            match answer["result"]["isError"].as_bool() {
                Some(true) => {
                    let error = tool_error(&answer);
                    assert_eq!(
                        (&error["code"], &error["details"]["reason"]),
                        (&json!("RESOURCE_EXHAUSTED"), &json!("concurrency_limit_exceeded"))
                    );
                    refused += 1;
                }
                Some(false) => done += 1,
                None => panic!("{answer}"),
            }
        }
        assert_eq!((refused, done), (calls.saturating_sub(slots), calls.min(slots)));
        assert_eq!(face.kernel().running(), 0, "every slot is given back");
    });
}

#[test]
fn prop_08_a_deadline_answers_once_fires_the_signal_and_keeps_the_slot() {
    let face = in_runtime(face);
    let times = (1..60_u64, 1..120_u64).prop_filter("a tie has no winner", |(timeout, work)| timeout != work);
    check((times, any::<bool>()), async |((timeout_ms, work_ms), listens)| {
        let fired = Arc::new(AtomicUsize::new(0));
        let seen = fired.clone();
        let work = move |_, context: Context| {
            let seen = seen.clone();
            async move {
                let sleep = tokio::time::sleep(Duration::from_millis(work_ms));
                tokio::pin!(sleep);
                tokio::select! {
                    () = &mut sleep => return Ok(Output::json("done").into()),
                    () = context.cancel.fired() => seen.fetch_add(1, Ordering::SeqCst),
                };
                if !listens {
                    sleep.await;
                }
                Err(Halt::Fault(Fault::new(Code::Cancelled, "stopped")))
            }
        };
        let policy = Policy { timeout_ms: Some(timeout_ms), ..Policy::read() };
        put(&face, vec![Action::tool("timed", "t", any_object(), policy, work).unwrap()]);
        let client = Client::running(&face, "2025-11-25", &json!({}));
        let answer = client.call(1, "timed", json!({})).await;
        if work_ms < timeout_ms {
            assert_eq!((&answer["result"]["isError"], fired.load(Ordering::SeqCst)), (&json!(false), 0));
        } else {
            assert_eq!(tool_error(&answer)["code"], "TIMEOUT");
            assert!(client.rest().await.is_empty());
            assert_eq!(fired.load(Ordering::SeqCst), 1, "the signal has fired");
            assert_eq!(
                face.kernel().running(),
                usize::from(!listens),
                "the slot is held while the work goes on"
            );
            tokio::time::sleep(Duration::from_millis(work_ms)).await;
            assert!(client.rest().await.is_empty(), "there is no second answer");
        }
        assert_eq!(face.kernel().running(), 0);
    });
}
