//! The tables of `conformance/workflows` that the kernel holds to: trying again, the breaker, the event bus.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Code, Event, FailureCategory, Fault};
use orchestr8_kernel::Log;
use orchestr8_kernel::bus::{self, Bus, Config, Filter, Subscription, priority};
use orchestr8_kernel::log::{Captured, Level};
use orchestr8_kernel::ports::clock::Simulated;
use orchestr8_kernel::ports::random::Seeded;
use orchestr8_kernel::resilience::{
    self, Breakers, Kept, Pass, Resilience, breaker,
    retry::{self, Again},
};
use orchestr8_testing::{Row, Table};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn table(file: &str, title: &str) -> Table {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/workflows/tables");
    Table::read(folder.join(file), title)
}

/// What stands at a path with dots, as it is written.
fn written(value: &Value, path: &str) -> String {
    let found = path.split('.').fold(value, |value, name| &value[name]);
    found.as_str().map_or_else(|| found.to_string(), str::to_owned)
}

fn code(name: &str) -> Code {
    Code::ALL.iter().copied().find(|code| code.as_str() == name).unwrap_or_else(|| panic!("no code {name}"))
}

fn yes(holds: bool) -> String {
    String::from(if holds { "yes" } else { "no" })
}

#[test]
fn wf_19_1_the_defaults_of_resilience() {
    let defaults = serde_json::to_value(Resilience::default()).unwrap();
    table("resilience.md", "Defaults").holds(&["value"], |row| vec![written(&defaults, row.get("setting"))]);
}

#[test]
fn wf_19_1_how_long_it_waits_before_it_tries_again() {
    let fault = Fault::new(Code::Unavailable, "no");
    table("resilience.md", "Waits").holds(&["wait ms"], |row| {
        let policy: Resilience = serde_json::from_str(row.get("policy")).unwrap();
        let number = |column: &str| row.get(column).parse::<u64>().unwrap();
        let attempt = u32::try_from(number("attempt")).unwrap();
        let random = row.get("random").parse().unwrap();
        match retry::decide(&policy, attempt, number("left ms"), &fault, random) {
            Again::After { wait_ms } => vec![wait_ms.to_string()],
            Again::No => vec!["no".into()],
        }
    });
}

#[test]
fn wf_19_8_what_is_tried_again_and_what_counts() {
    table("resilience.md", "Failures").holds(&["category", "tried again", "counts for the breaker"], |row| {
        let fault = Fault::new(code(row.get("code")), "no");
        // Only the caller of the service knows that it was the network.
        let fault = match row.get("category") {
            "network" => fault.in_category(FailureCategory::Network),
            _ => fault,
        };
        let category = fault.category().as_str().to_owned();
        vec![category, yes(retry::may_retry(&fault)), yes(retry::counts(&fault))]
    });
}

struct World {
    clock: Arc<Simulated>,
    bus: Bus,
    breakers: Breakers,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(Simulated::new());
        let bus = Bus::new(&Config::default(), clock.clone(), Log::off());
        Self { breakers: Breakers::new(clock.clone(), bus.clone()), clock, bus }
    }

    fn state(&self) -> String {
        match self.breakers.snapshot().into_iter().next().map(|kept| kept.state) {
            None => String::from("closed 0"),
            Some(Kept::Closed { failures }) => format!("closed {failures}"),
            Some(Kept::Open { .. }) => String::from("open"),
            Some(Kept::HalfOpen) => String::from("half-open"),
        }
    }
}

/// One call of the table: the attempts that were made, how it ended, and the failures the breaker counted.
async fn call(row: &Row) -> Vec<String> {
    let (world, cancel) = (World::new(), CancellationToken::new());
    let mut plan = row.get("the attempts").split(", ");
    let mut made = 0;
    let work = |_| {
        made += 1;
        let (what, cancel) =
            (plan.next().unwrap_or_else(|| panic!("line {}: one too many", row.line)), &cancel);
        async move {
            match what {
                "ok" => Ok(()),
                "slow" => std::future::pending().await,
                "cancel" => {
                    cancel.cancel();
                    std::future::pending().await
                }
                failure => Err(Fault::new(code(failure), "no")),
            }
        }
    };
    let (policy, random) = (Resilience::default(), Seeded::new(1));
    let ended =
        resilience::run(&policy, "cb:a", work, &cancel, &world.breakers, &*world.clock, &random).await;
    let ended = ended.map_or_else(|fault| fault.code.to_string(), |()| String::from("ok"));
    vec![made.to_string(), ended, world.state().replace("closed ", "")]
}

#[test]
fn wf_19_1_the_layers_in_their_order() {
    table("resilience.md", "Layers").holds(&["attempts made", "ends with", "failures counted"], |row| {
        let paused = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        paused.unwrap().block_on(call(row))
    });
}

#[test]
fn wf_19_2_the_states_of_the_breaker() {
    table("breaker.md", "States").holds(&["state", "the next call", "others hear"], |row| {
        let world = World::new();
        let mut changes = world.bus.subscribe(&Filter::all()).unwrap();
        let mut probe: Option<Pass<'_>> = None;
        for word in row.get("what happens").split(", ") {
            let (times, word) = match word.split_once(' ') {
                Some((times, word)) if times.parse::<u32>().is_ok() => (times.parse().unwrap(), word),
                _ => (1, word),
            };
            (0..times).for_each(|_| happen(&world, word, &mut probe));
        }
        let state = world.state();
        let next = match world.breakers.admit("cb:a", breaker::Policy::default()) {
            Ok(_) => "goes",
            Err(fault) => {
                assert_eq!(fault.code, Code::CircuitOpen);
                "is refused"
            }
        };
        let heard: Vec<&str> = std::iter::from_fn(|| changes.try_next()).map(|event| event.name).collect();
        vec![state, next.to_owned(), heard.join(", ")]
    });
}

fn happen<'w>(world: &'w World, word: &str, probe: &mut Option<Pass<'w>>) {
    let ask = || world.breakers.admit("cb:a", breaker::Policy::default()).expect("it goes through");
    let (pass, how) = match word.strip_prefix("probe ") {
        Some(how) => (probe.take(), how),
        None if matches!(word, "fails" | "succeeds" | "no count" | "ask") => (Some(ask()), word),
        None => (None, word),
    };
    match (pass, how) {
        (Some(pass), "fails") => {
            pass.failed();
        }
        (Some(pass), "succeeds") => {
            pass.succeeded();
        }
        (Some(pass), "ask") => *probe = Some(pass),
        (Some(pass), _) => drop(pass),
        (None, "nothing") => {}
        (None, time) => {
            let seconds =
                time.strip_prefix('+').and_then(|time| time.strip_suffix('s')).expect("so many seconds");
            world.clock.advance(Duration::from_secs(seconds.parse().unwrap()));
        }
    }
}

#[test]
fn wf_19_2_the_keys_of_breakers() {
    table("breaker.md", "Keys").holds(&["key"], |row| {
        let target = Some(row.get("target")).filter(|target| !target.is_empty());
        vec![breaker::key(row.get("agent"), target)]
    });
}

#[test]
fn wf_19_6_the_defaults_of_the_bus() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    table("event-bus.md", "Defaults").holds(&["value"], |row| vec![written(&defaults, row.get("setting"))]);
}

#[test]
fn wf_19_6_which_events_are_critical() {
    let table = table("event-bus.md", "Priorities");
    table.holds(&["priority"], |row| vec![priority(row.get("event")).as_str().to_owned()]);
    let listed = table.rows.iter().filter(|row| row.get("priority") == "critical").count();
    assert_eq!(listed, bus::CRITICAL.len(), "every critical event is in the table");
}

/// A bus whose queues hold ten events, and what it warns of.
fn small_bus(policy: &str) -> (Bus, Arc<Simulated>, Captured) {
    let (clock, lines) = (Arc::new(Simulated::new()), Captured::default());
    let log = Log::new(Level::Warn, lines.clone(), Arc::default(), clock.clone());
    let config: Config =
        serde_json::from_value(json!({"maxQueueSize": 10, "overflowPolicy": policy})).unwrap();
    (Bus::new(&config, clock.clone(), log), clock, lines)
}

fn publish(bus: &Bus, event: &str) {
    let name = if event.starts_with('c') { "error" } else { "info" };
    let (subject, data) = ("s".into(), Arc::new(Value::from(event)));
    bus.publish(Event { name, subject, priority: priority(name), at_ms: 0, data });
}

/// `n1..n3, c1` is n1, n2, n3, c1.
fn events(text: &str) -> Vec<String> {
    let range = |part: &str| -> Vec<String> {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let number = |event: &str| event[1..].parse::<u32>().unwrap();
        (number(first)..=number(last)).map(|number| format!("{}{number}", &first[..1])).collect()
    };
    text.split(", ").flat_map(range).collect()
}

fn heard(listener: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| listener.try_next()).map(|event| event.data.as_str().unwrap().to_owned()).collect()
}

#[test]
fn wf_19_6_what_overflows() {
    table("event-bus.md", "Overflow").holds(&["heard", "dropped normal", "dropped critical"], |row| {
        let (bus, ..) = small_bus(row.get("policy"));
        let mut listener = bus.subscribe(&Filter::names(["info", "error"])).unwrap();
        events(row.get("published")).iter().for_each(|event| publish(&bus, event));
        let metrics = bus.metrics();
        let (found, said) = (heard(&mut listener), row.get("heard"));
        let found = if found == events(said) { said.to_owned() } else { found.join(", ") };
        vec![found, metrics.events_dropped_normal.to_string(), metrics.events_dropped_critical.to_string()]
    });
}

#[test]
fn wf_19_6_what_the_bus_tells_of_itself() {
    let (bus, ..) = small_bus("drop-oldest");
    let listener = bus.subscribe(&Filter::names(["info", "error"])).unwrap();
    events("n1..n12, c1..c2").iter().for_each(|event| publish(&bus, event));
    let metrics = serde_json::to_value(bus.metrics()).unwrap();
    table("event-bus.md", "Metrics").holds(&["value"], |row| vec![written(&metrics, row.get("metric"))]);
    drop(listener);
}

#[test]
fn wf_19_6_when_the_bus_warns() {
    table("event-bus.md", "Warnings").holds(&["warnings"], |row| {
        let (bus, clock, lines) = small_bus("drop-oldest");
        let listener = bus.subscribe(&Filter::names(["info"])).unwrap();
        for word in row.get("what happens").split(", ") {
            match word.strip_suffix('s').and_then(|number| number.parse().ok()) {
                Some(seconds) => clock.advance(Duration::from_secs(seconds)),
                None => {
                    let count: u32 = word.split_once(' ').unwrap().0.parse().unwrap();
                    (0..count).for_each(|number| publish(&bus, &format!("n{number}")));
                }
            }
        }
        drop(listener);
        vec![lines.lines().len().to_string()]
    });
}
