//! What must hold at the end of every simulation.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::Statement;
use orchestr8_kernel::{End, Settled, audit};
use orchestr8_stores::chain::{Entry, Verifier};
use orchestr8_stores::sqlite::simulated::Rates;

use crate::clients::{self, Wanted};
use crate::life::{Lanes, World};

/// A promise that did not hold, in words.
pub struct Broken(pub String);

pub fn check(world: &mut World) -> Result<(), Broken> {
    if let Some(broken) = world.history.iter().find(|line| line.starts_with("BROKEN")) {
        return Err(Broken(format!("two answers for one key: {broken}")));
    }
    // A last life without faults looks at what is left.
    world.store = world.store.restart();
    world.store.set_rates(Rates::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let effects = rows_by_key(world).await;
        effects_once(world, &effects)?;
        outside_once(world)?;
        dependencies_came_first(world)?;
        recorded_once(world).await?;
        answers_last(world).await
    })
}

async fn rows_by_key(world: &World) -> BTreeMap<String, usize> {
    let rows =
        world.store.query(Statement::new("SELECT key FROM effects", vec![])).await.expect("a sound store");
    let mut effects = BTreeMap::new();
    for row in rows {
        *effects.entry(row.text(0).expect("a key").to_owned()).or_default() += 1;
    }
    effects
}

/// The work came to a good end, whether or not the client was still there.
fn succeeded(told: &str) -> bool {
    told.starts_with(End::Success.as_str()) || told.starts_with(End::DisconnectedCompleted.as_str())
}

/// Whatever succeeded found what it depends on succeeded.
fn dependencies_came_first(world: &World) -> Result<(), Broken> {
    let told = |key: &str| {
        world.wishes.iter().flatten().find(|wish| wish.key == key).and_then(|wish| wish.told.clone())
    };
    for wish in world.wishes.iter().flatten() {
        let Some(first) = &wish.depends_on else { continue };
        let (own, before) = (told(&wish.key).unwrap_or_default(), told(first).unwrap_or_default());
        if succeeded(&own) && !succeeded(&before) {
            return Err(Broken(format!(
                "{} was told '{own}', and {first}, on which it depends, '{before}'",
                wish.key
            )));
        }
    }
    Ok(())
}

/// The audit chain is whole, and has one entry for each outcome of what is audited.
async fn recorded_once(world: &World) -> Result<(), Broken> {
    let sql = "SELECT seq, at_ms, body, prev_hash, entry_hash FROM chain WHERE name = ?1 ORDER BY seq";
    let rows =
        world.store.query(Statement::new(sql, vec![audit::CHAIN.into()])).await.expect("a sound store");
    let mut verifier = Verifier::new();
    for row in &rows {
        let entry = Entry {
            seq: row.int(0).expect("a number"),
            at_ms: row.int(1).expect("a time"),
            body: row.text(2).expect("a body").as_bytes(),
            prev_hash: row.text(3).expect("a hash").as_bytes(),
            entry_hash: row.text(4).expect("a hash").as_bytes(),
        };
        verifier.take(entry).map_err(|broken| Broken(broken.to_string()))?;
    }
    let is_recorded = |wish: &&clients::Wish| {
        wish.wanted != Wanted::Failing
            && wish.told.as_deref().is_some_and(|told| !told.starts_with(End::Refused.as_str()))
    };
    let outcomes = world.wishes.iter().flatten().filter(is_recorded).count();
    match rows.len() == outcomes {
        true => Ok(()),
        false => Err(Broken(format!("{outcomes} outcomes were told and {} are on record", rows.len()))),
    }
}

/// Nothing acknowledged is lost, and nothing is doubled.
fn effects_once(world: &World, effects: &BTreeMap<String, usize>) -> Result<(), Broken> {
    for wish in world.wishes.iter().flatten().filter(|wish| wish.wanted == Wanted::Stored) {
        let told = wish.told.as_deref().unwrap_or_default();
        let expected = usize::from(succeeded(told));
        let found = effects.get(&wish.key).copied().unwrap_or(0);
        if found != expected {
            return Err(Broken(format!("{} was told '{told}' and has {found} effects", wish.key)));
        }
    }
    Ok(())
}

fn outside_once(world: &World) -> Result<(), Broken> {
    let happened = world.outside.lock();
    for wish in world.wishes.iter().flatten() {
        let count = happened.get(&wish.key).copied().unwrap_or(0);
        let told = wish.told.as_deref().unwrap_or_default();
        let wrong = match wish.wanted {
            Wanted::Once => count > 1 || (succeeded(told) && count != 1),
            Wanted::Again => succeeded(told) && count == 0,
            Wanted::Stored | Wanted::Failing | Wanted::Slow => count != 0,
        };
        if wrong {
            return Err(Broken(format!("{} was told '{told}' and happened {count} times outside", wish.key)));
        }
    }
    Ok(())
}

/// Every answer is the answer for ever: asked again after a restart, each key gets what it got.
async fn answers_last(world: &mut World) -> Result<(), Broken> {
    let kernel = world.kernel(Arc::new(Lanes::default()), usize::MAX >> 1);
    for wish in world.wishes.clone().into_iter().flatten() {
        let settled: Settled = kernel.submit(clients::submission(&wish)).await;
        let told = wish.told.clone().unwrap_or_default();
        // Work that goes on after its timeout may give something in the end, which takes its place.
        let is_late = settled.end == End::LateCompleted && told.starts_with(End::Timeout.as_str());
        let same = is_late || told.starts_with(settled.end.as_str());
        if !same || (!settled.replayed && !told.starts_with("refused")) {
            return Err(Broken(format!(
                "{} was told '{told}' and is now '{}'",
                wish.key,
                settled.end.as_str()
            )));
        }
    }
    Ok(())
}
