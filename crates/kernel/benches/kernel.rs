//! Measures the parts of the kernel: one function a section, one line of JSON a figure.
//!
//! `cargo bench -p orchestr8-kernel [-- <part of a section's name>]`
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints figures of real time")]

#[path = "sections/submit.rs"]
mod submit;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use orchestr8_contract::{Event, Fault, Priority};
use orchestr8_kernel::bus::{self, Bus, Filter};
use orchestr8_kernel::log::{Level, Log, Sink};
use orchestr8_kernel::ports::{clock, random};
use orchestr8_kernel::redact::Redactor;
use orchestr8_kernel::resilience::{self, Attempt, Breakers, Resilience};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Section = (&'static str, fn() -> Outcome);

/// Add a section here.
const SECTIONS: [Section; 5] = [
    ("submit", submit::section),
    ("bus", bus_section),
    ("resilience", resilience_section),
    ("redact", redact_section),
    ("log", log_section),
];

/// Each figure is the best of so many rounds: others use the machine too.
const ROUNDS: usize = 5;

fn main() -> Outcome {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, section) in SECTIONS {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            section()?;
        }
    }
    Ok(())
}

/// How often the work is done in a second, at best.
fn rate(times: u64, mut work: impl FnMut() -> Outcome) -> Result<f64, Box<dyn std::error::Error>> {
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        work()?;
        #[allow(clippy::cast_precision_loss, reason = "far below what a float tells apart")]
        let rate = times as f64 / began.elapsed().as_secs_f64();
        best = best.max(rate);
    }
    Ok(best)
}

/// Prints how often it is done in a second.
fn report_rate(name: &str, times: u64, work: impl FnMut() -> Outcome) -> Outcome {
    let rate = rate(times, work)?;
    println!("{}", json!({"name": name, "value": rate.round(), "unit": "/s"}));
    Ok(())
}

/// Prints how many nanoseconds it takes once.
fn report_ns(name: &str, times: u64, work: impl FnMut() -> Outcome) -> Outcome {
    let rate = rate(times, work)?;
    println!("{}", json!({"name": name, "value": (1e10 / rate).round() / 10.0, "unit": "ns"}));
    Ok(())
}

fn runtime(threads: usize) -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_time().build()
}

fn event() -> Event {
    let data = Arc::new(json!({"action": "echo", "runId": "00000000-0000-4000-8000-000000000001"}));
    Event { name: "step-complete", subject: "local".into(), priority: Priority::Normal, at_ms: 0, data }
}

fn new_bus(overflow_policy: bus::Overflow) -> Bus {
    let config = bus::Config { overflow_policy, ..bus::Config::default() };
    Bus::new(&config, Arc::new(clock::Real::new()), Log::off())
}

/// Published and received: one task publishes and waits for room, another listens.
fn bus_section() -> Outcome {
    const EVENTS: u64 = 1_000_000;
    let runtime = runtime(2)?;
    report_rate("bus/publish", EVENTS, || {
        let bus = new_bus(bus::Overflow::Block);
        let mut listener = bus.subscribe(&Filter::names(["step-complete"]))?;
        let (publisher, event) = (bus.clone(), event());
        runtime.spawn(async move {
            for _ in 0..EVENTS {
                publisher.publish_blocking(event.clone()).await;
            }
        });
        runtime.block_on(async move {
            for _ in 0..EVENTS {
                black_box(listener.next().await);
            }
        });
        Ok(())
    })?;
    report_rate("bus/publish_and_take_on_one_thread", EVENTS, || {
        let bus = new_bus(bus::Overflow::DropOldest);
        let mut listener = bus.subscribe(&Filter::names(["step-complete"]))?;
        let event = event();
        for _ in 0..EVENTS {
            bus.publish(event.clone());
            black_box(listener.try_next());
        }
        Ok(())
    })?;
    report_rate("bus/delivered_to_100_listeners", EVENTS, || {
        let bus = new_bus(bus::Overflow::DropOldest);
        let all = |_| bus.subscribe(&Filter::all());
        let mut listeners = (0..100).map(all).collect::<Result<Vec<_>, Fault>>()?;
        let event = event();
        for _ in 0..EVENTS / 100 {
            bus.publish(event.clone());
            for listener in &mut listeners {
                black_box(listener.try_next());
            }
        }
        Ok(())
    })?;
    report_rate("bus/publish_into_full_queue", EVENTS, || {
        let bus = new_bus(bus::Overflow::DropOldest);
        let _stuck = bus.subscribe(&Filter::names(["step-complete"]))?;
        let event = event();
        for _ in 0..EVENTS {
            bus.publish(event.clone());
        }
        Ok(())
    })?;
    report_ns("bus/has_listeners_when_quiet", EVENTS, || {
        let bus = new_bus(bus::Overflow::DropOldest);
        for _ in 0..EVENTS {
            black_box(black_box(&bus).has_listeners("step-complete"));
        }
        Ok(())
    })
}

fn resilience_section() -> Outcome {
    const RUNS: u64 = 200_000;
    let runtime = runtime(1)?;
    let (clock, random) = (Arc::new(clock::Real::new()), random::Real);
    let breakers = Breakers::new(clock.clone(), new_bus(bus::Overflow::DropOldest));
    let cancel = CancellationToken::new();
    let policy = Resilience::default();
    let key = resilience::breaker::key("echo", None);
    report_ns("resilience/stack", RUNS, || {
        runtime.block_on(async {
            for _ in 0..RUNS {
                let work = |attempt: Attempt| async move { Ok::<u32, Fault>(attempt.number) };
                black_box(resilience::run(&policy, &key, work, &cancel, &breakers, &*clock, &random).await?);
            }
            Ok(())
        })
    })?;
    report_ns("resilience/stack_around_a_yield", RUNS, || {
        runtime.block_on(async {
            for _ in 0..RUNS {
                let work = |attempt: Attempt| async move {
                    tokio::task::yield_now().await;
                    Ok::<u32, Fault>(attempt.number)
                };
                black_box(resilience::run(&policy, &key, work, &cancel, &breakers, &*clock, &random).await?);
            }
            Ok(())
        })
    })
}

fn arguments() -> Value {
    json!({
        "path": "crates/kernel/src/pipeline.rs", "query": "where is the deadline kept", "limit": 20,
        "options": {"case": false, "globs": ["*.rs", "*.md"], "context": {"before": 2, "after": 2}},
    })
}

fn redact_section() -> Outcome {
    const TIMES: u64 = 100_000;
    let redactor = Redactor::default();
    let clean = arguments();
    report_ns("redact/value_without_secrets", TIMES, || {
        for _ in 0..TIMES {
            black_box(redactor.value(black_box(&clean)));
        }
        Ok(())
    })?;
    let mut secret = arguments();
    secret["options"]["apiKey"] = "abc".into();
    report_ns("redact/value_with_a_secret", TIMES, || {
        for _ in 0..TIMES {
            black_box(redactor.value(black_box(&secret)));
        }
        Ok(())
    })?;
    let text = "A paragraph of ordinary prose, with numbers like 42 and names=values, as tools return it. "
        .repeat(1_000);
    report_rate("redact/text_bytes", text.len() as u64 * 20, || {
        for _ in 0..20 {
            black_box(redactor.text(black_box(&text)));
        }
        Ok(())
    })
}

/// Takes lines and does nothing with them.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&self, line: &str) {
        black_box(line);
    }
}

fn log_section() -> Outcome {
    const TIMES: u64 = 100_000;
    let log = Log::new(Level::Info, Nowhere, Arc::default(), Arc::new(clock::Real::new()));
    let fields =
        || json!({"runId": "00000000-0000-4000-8000-000000000001", "action": "echo", "durationMs": 3});
    report_ns("log/line", TIMES, || {
        for _ in 0..TIMES {
            log.info("finished", fields);
        }
        Ok(())
    })?;
    report_ns("log/level_that_is_off", TIMES, || {
        for _ in 0..TIMES {
            black_box(&log).debug("finished", fields);
        }
        Ok(())
    })
}
