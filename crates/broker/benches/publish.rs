//! What publishing and delivering a message costs, as JSON lines. Run with `cargo bench -p orchestr8-broker`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use orchestr8_broker::{Broker, Embedded, Message, Settings, Subject, Verdict, tables};
use orchestr8_contract::id::{ActionName, Tenant};
use orchestr8_kernel::ports::{clock, random};
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_testing::migrations;

/// How long each rate is measured.
const MEASURED: Duration = Duration::from_secs(3);

/// An envelope of a usual size.
const BODY_BYTES: usize = 800;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for publishers in [1, 64] {
            publish(publishers).await;
        }
    });
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{{\"name\":\"broker/{name}\",\"value\":{value:.1},\"unit\":\"{unit}\"}}");
}

async fn publish(publishers: usize) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("bench.sqlite3"));
    let store = sqlite::open(Options::new(place, migrations(&[tables::MIGRATIONS]))).unwrap();
    let settings = Settings {
        tenant_queued: 190_000,
        tenant_bytes: usize::MAX,
        tenant_in_flight: 64,
        ..Settings::default()
    };
    let (clock, random) = (Arc::new(clock::Real::new()), Arc::new(random::Real));
    let broker = Embedded::open(Arc::new(store), clock, random, settings).await.unwrap();
    let (started, count) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> =
        (0..publishers).map(|_| tokio::spawn(send(broker.clone(), started, count.clone()))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let sent = count.load(Ordering::SeqCst);
    print(&format!("publish/{publishers}"), sent as f64 / started.elapsed().as_secs_f64(), "/s");
    let (started, mut taken) = (Instant::now(), 0);
    while taken < sent && started.elapsed() < MEASURED {
        let deliveries = broker.take(64).await.unwrap().deliveries;
        taken += deliveries.len();
        let done = |delivery| broker.settle(delivery, Verdict::Done { reply: Some(Bytes::from("{}")) });
        futures::future::join_all(deliveries.into_iter().map(done)).await;
    }
    print(&format!("take+settle+reply/{publishers}"), taken as f64 / started.elapsed().as_secs_f64(), "/s");
}

async fn send(broker: Embedded, started: Instant, count: Arc<AtomicUsize>) {
    let tenant = Tenant::parse("acme").unwrap();
    let message = Message {
        subject: Subject::of_action(&tenant, &ActionName::parse("knowledge.create_document").unwrap()),
        reply_to: Some(Subject::of_inbox(&tenant, "me").unwrap()),
        tenant,
        id: "1".to_owned(),
        principal: "svc:a".to_owned(),
        sender: "{}".to_owned(),
        lane: None,
        body: Bytes::from(vec![b'x'; BODY_BYTES]),
    };
    while started.elapsed() < MEASURED {
        broker.publish(message.clone()).await.unwrap();
        count.fetch_add(1, Ordering::SeqCst);
    }
}
