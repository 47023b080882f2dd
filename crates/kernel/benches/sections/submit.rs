//! What a submission costs: without a key, and with one that is durable when it is answered.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Key};
use orchestr8_contract::{AllowedRoles, Output};
use orchestr8_kernel::bus::{self, Bus};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{
    Action, Args, Kernel, Limits, Log, Policy, Ports, Principal, Started, Submission, tables,
};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, Options, Place};
use serde_json::{Map, json};

use crate::{Outcome, report_ns, report_rate, runtime};

pub fn section() -> Outcome {
    let runtime = runtime(2)?;
    let _entered = runtime.enter();
    let folder = tempfile::tempdir()?;
    let kernel = kernel(&folder.path().join("bench.sqlite3"))?;
    let who = Arc::new(Principal::local());
    let correlation = CorrelationId::parse("bench")?;

    const CALLS: u64 = 200_000;
    report_ns("submit/no-op", CALLS, || {
        for _ in 0..CALLS {
            let submission = Submission::new("noop", Args::new(message()), who.clone(), correlation.clone());
            let Started::Done(settled) = kernel.start(submission) else {
                return Err("a no-op ends at once".into());
            };
            std::hint::black_box(&settled);
        }
        Ok(())
    })?;

    let mut round = 0;
    for (clients, calls) in [(1_u64, 2_000_u64), (64, 20_000)] {
        report_rate(&format!("submit/durable/{clients}-in-flight"), calls, || {
            round += 1;
            let tasks: Vec<_> = (0..clients)
                .map(|client| {
                    let (kernel, who, correlation) = (kernel.clone(), who.clone(), correlation.clone());
                    runtime.spawn(async move {
                        for call in 0..calls / clients {
                            let args = Args::new(message());
                            let mut submission =
                                Submission::new("noop", args, who.clone(), correlation.clone());
                            let key = Key::parse(&format!("{round}-{client}-{call}"))
                                .map_err(|error| error.to_string())?;
                            submission.identities.push(Identity {
                                scope: Scope("bench".into()),
                                key,
                                ttl_ms: 86_400_000,
                            });
                            kernel.submit(submission).await.result.map_err(|halt| format!("{halt:?}"))?;
                        }
                        Ok::<(), String>(())
                    })
                })
                .collect();
            runtime.block_on(async {
                for task in tasks {
                    task.await??;
                }
                Ok(())
            })
        })?;
    }
    Ok(())
}

fn message() -> Map<String, serde_json::Value> {
    Map::from_iter([("message".to_owned(), json!("hello"))])
}

fn kernel(path: &std::path::Path) -> Result<Kernel, Box<dyn std::error::Error>> {
    let migrations = tables::MIGRATIONS.iter().map(|&(name, sql)| Migration { name, sql }).collect();
    let store = sqlite::open(Options::new(Place::File(path.to_owned()), migrations))?;
    let clock = Arc::new(clock::Real::new());
    let ports = Ports {
        clock: clock.clone(),
        ids: Arc::new(ids::Random),
        random: Arc::new(random::Real),
        store: Arc::new(store),
        log: Log::off(),
        redactor: Arc::default(),
    };
    let bus = Bus::new(&bus::Config::default(), clock, Log::off());
    let kernel = Kernel::new(ports, Limits { concurrent_runs: 64, ..Limits::default() }, bus);
    let schema = json!({"type":"object","properties":{"message":{"type":"string"}},"required":["message"]});
    let noop = Action::tool("noop", "does nothing", schema, Policy::quick_read(), |args, _| async move {
        Ok(Output::json(args.into_value()).into())
    })?;
    kernel.registry().register(noop.allowed_to(AllowedRoles::ANYONE))?;
    Ok(kernel)
}
