//! The clients of a simulation: each has its list of wishes, and asks for each until it is told how it ended.

use orchestr8_contract::id::{CorrelationId, Key, Lane, SubmissionId};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Args, Principal, Submission};
use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a wish is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A row in the store, written with the outcome.
    Stored,
    /// Something outside, which must not happen twice.
    Once,
    /// Something outside, which may.
    Again,
    /// A failure.
    Failing,
    /// Takes longer than its deadline.
    Slow,
}

impl Wanted {
    pub fn action(self) -> &'static str {
        match self {
            Wanted::Stored => "stored",
            Wanted::Once => "once",
            Wanted::Again => "again",
            Wanted::Failing => "failing",
            Wanted::Slow => "slow",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Wish {
    pub key: String,
    pub wanted: Wanted,
    /// Wishes of one client in a lane are asked for in order, and run in it.
    pub lane: Option<String>,
    /// It waits for this one, which was asked for before it.
    pub depends_on: Option<String>,
    /// How it ended, once the client was told.
    pub told: Option<String>,
}

pub const CLIENTS: usize = 4;
const WISHES: usize = 4;
const DAY_MS: u64 = 86_400_000;

pub fn wishes(random: &mut StdRng) -> Vec<Vec<Wish>> {
    (0..CLIENTS)
        .map(|client| {
            let lane = random.random_bool(0.5).then(|| format!("lane-{}", client % 2));
            (0..random.random_range(1..=WISHES))
                .map(|wish| Wish {
                    key: format!("{client}-{wish}"),
                    depends_on: (wish > 0 && random.random_bool(0.2))
                        .then(|| format!("{client}-{}", wish - 1)),
                    wanted: match random.random_range(0..8) {
                        0..=3 => Wanted::Stored,
                        4 => Wanted::Once,
                        5 => Wanted::Again,
                        6 => Wanted::Failing,
                        _ => Wanted::Slow,
                    },
                    lane: lane.clone(),
                    told: None,
                })
                .collect()
        })
        .collect()
}

pub fn submission(wish: &Wish) -> Submission {
    asking(wish, json!({"key": wish.key}))
}

/// Another request under the key of a wish.
pub fn contradiction(wish: &Wish) -> Submission {
    asking(wish, json!({"key": wish.key, "another": true}))
}

fn asking(wish: &Wish, args: Value) -> Submission {
    let map = args.as_object().cloned().expect("an object");
    let correlation = CorrelationId::parse("simulation").expect("a correlation id");
    let mut submission =
        Submission::new(wish.wanted.action(), Args::new(map), Arc::new(Principal::local()), correlation);
    submission.identities.push(Identity {
        scope: Scope("simulation".into()),
        key: Key::parse(&wish.key).expect("a key"),
        ttl_ms: DAY_MS,
    });
    let id = |key: &String| SubmissionId::parse(key).expect("an id");
    let mut submission = submission.named(Scope("simulated ids".into()), id(&wish.key), DAY_MS);
    submission.depends_on = wish.depends_on.iter().map(id).collect();
    submission.lane = wish.lane.as_ref().map(|lane| Lane::parse(lane).expect("a lane"));
    submission
}
