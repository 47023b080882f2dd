//! The index in this process and a Qdrant server, on the same vectors, in turns.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use orchestr8_knowledge::retrieval::dense::{Dense, Near, Point};
use orchestr8_knowledge::vectors::Embedded;

use crate::embedder::Real;
use crate::peer::Peer;
use crate::texts::{near, spread, unit};
use crate::words::{DIMENSIONS, Dice};
use crate::{Extent, Times, ask, memory_mb, own, print};

const TENANT: &str = "bench";
pub const TOP: usize = 10;

/// Queries whose answers are compared with the exact ones.
const COMPARED: usize = 200;

/// Points of one document, and documents that are put in at once.
const EACH: usize = 10;
const AT_ONCE: usize = 100;

/// One point in so many may be found.
pub const FILTERS: [usize; 3] = [1, 2, 100];

/// The recall that is asked for; the peer is told to look no further than it must for it.
pub const RECALL: f64 = 0.98;

/// Times that both are measured, in turns; the best of each counts.
const ROUNDS: usize = 2;

pub struct Work {
    pub points: Vec<Point>,
    pub queries: Vec<Vec<f32>>,
    /// For each filter, the nearest of each query.
    exact: Vec<Vec<HashSet<i64>>>,
}

impl Work {
    /// The share of the nearest that were found, for one filter.
    pub fn recall(&self, filter: usize, found: &[Vec<i64>]) -> f64 {
        let pairs = self.exact[filter].iter().zip(found);
        let right = pairs.map(|(exact, found)| found.iter().filter(|one| exact.contains(one)).count());
        right.sum::<usize>() as f64 / self.exact[filter].iter().map(HashSet::len).sum::<usize>() as f64
    }
}

pub async fn measure(passages: usize, real: Option<&Real>, extent: Extent) {
    let work = Arc::new(work(passages, real));
    let before = memory_mb("self");
    let here = Here::fill(passages, work.clone()).await;
    print(&format!("{passages} vectors, here, memory"), memory_mb("self") - before, "MB");
    let peer = match std::env::var_os("O8_QDRANT") {
        Some(_) => Some(Peer::fill(passages, work.clone()).await),
        None => None,
    };
    for (filter, every) in FILTERS.iter().enumerate() {
        let name = match every {
            1 => format!("{passages} vectors"),
            every => format!("{passages} vectors, one in {every} passes"),
        };
        print(&format!("{name}, here, recall@10"), here.recall(filter).await, "");
        let reach = match &peer {
            Some(peer) => Some(peer.reach(filter, &name).await),
            None => None,
        };
        let (mut ours, mut theirs): (Vec<Times>, Vec<Times>) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(ask(extent.queries, &own(), here.asking(filter)).await);
            if let (Some(peer), Some(reach)) = (&peer, reach) {
                theirs.push(ask(extent.queries, &peer.processes(), peer.asking(filter, reach)).await);
            }
        }
        let ours = best(ours).unwrap();
        ours.show(&format!("{name}, here, search"));
        if let Some(theirs) = best(theirs) {
            theirs.show(&format!("{name}, Qdrant, search"));
            print(&format!("{name}, rate here over Qdrant's"), ours.rate() / theirs.rate(), "x");
            print(&format!("{name}, Qdrant's p95 over that here"), theirs.at(0.95) / ours.at(0.95), "x");
        }
    }
}

fn best(rounds: Vec<Times>) -> Option<Times> {
    rounds.into_iter().max_by(|one, other| one.rate().total_cmp(&other.rate()))
}

/// The number of the n-th passage, as the store gives them.
pub fn number(n: usize) -> i64 {
    i64::try_from(n + 1).unwrap() * 4096 + 80
}

fn work(passages: usize, real: Option<&Real>) -> Work {
    let mut dice = Dice(88_172_645_463_325_252);
    let (vectors, queries): (Vec<Vec<f32>>, Vec<Vec<f32>>) = match real {
        Some(real) => {
            let step = (real.questions.len() / COMPARED).max(1);
            let queries = real.questions.iter().step_by(step).take(COMPARED).cloned().collect();
            (spread(&real.passages, passages), queries)
        }
        None => {
            let mut some = |count: usize| (0..count).map(|_| unit(dice.vector())).collect();
            (some(passages), some(COMPARED))
        }
    };
    let point =
        |(n, vector)| Point { passage: number(n), document: format!("document-{}", n / EACH), vector };
    let points: Vec<Point> = vectors.into_iter().enumerate().map(point).collect();
    let mut exact = vec![Vec::new(); FILTERS.len()];
    for query in &queries {
        let mut scored: Vec<(f32, usize)> =
            points.iter().enumerate().map(|(n, point)| (near(&point.vector, query), n)).collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        for (every, exact) in FILTERS.iter().zip(&mut exact) {
            let passing = scored.iter().filter(|(_, n)| n % every == 0);
            exact.push(passing.take(TOP).map(|(_, n)| number(*n)).collect());
        }
    }
    Work { points, queries, exact }
}

/// The index in this process.
struct Here {
    index: Embedded,
    work: Arc<Work>,
    within: Vec<Option<Arc<HashSet<i64>>>>,
}

impl Here {
    async fn fill(passages: usize, work: Arc<Work>) -> Self {
        let (index, began) = (Embedded::new(DIMENSIONS, 4 << 30), Instant::now());
        for some in work.points.chunks(EACH * AT_ONCE) {
            index.upsert(TENANT, some.to_vec()).await.unwrap();
        }
        print(&format!("{passages} vectors, here, indexed in"), began.elapsed().as_secs_f64(), "s");
        let within = |every: &usize| match every {
            1 => None,
            every => Some(Arc::new((0..passages).step_by(*every).map(number).collect())),
        };
        Self { index, work, within: FILTERS.iter().map(within).collect() }
    }

    fn near(&self, filter: usize, n: usize) -> Near {
        let vector = self.work.queries[n % self.work.queries.len()].clone();
        Near { tenant: TENANT.into(), vector, within: self.within[filter].clone(), limit: TOP }
    }

    async fn recall(&self, filter: usize) -> f64 {
        let mut found = Vec::new();
        for n in 0..self.work.queries.len() {
            let hits = self.index.search(self.near(filter, n)).await.unwrap();
            found.push(hits.into_iter().map(|(number, _)| number).collect());
        }
        self.work.recall(filter, &found)
    }

    fn asking(&self, filter: usize) -> crate::Ask {
        let index = self.index.clone();
        let near: Vec<Near> = (0..self.work.queries.len()).map(|n| self.near(filter, n)).collect();
        Arc::new(move |n| {
            let (index, near) = (index.clone(), near[n % near.len()].clone());
            Box::pin(async move { drop(index.search(near).await.unwrap()) })
        })
    }
}
