//! Measures the exact scan of `crates/knowledge` against usearch (HNSW) on the same vectors, with and without a filter.
//!
//! `cargo run --release -- <docs.f32> <queries.f32> <count>`: files of little-endian f32, 384 to a vector. More vectors than the
//! file holds are made of those it has, each moved a little.

#[path = "../../../crates/knowledge/src/vectors/embedded/codes.rs"]
mod codes;
#[path = "../../../crates/knowledge/src/vectors/embedded/shelf.rs"]
mod shelf;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

const DIMENSIONS: usize = 384;
const TOP: usize = 10;
const CLIENTS: usize = 2;

fn read(path: &str) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let numbers: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    numbers.chunks_exact(DIMENSIONS).map(<[f32]>::to_vec).collect()
}

/// So many vectors: those given, then others near them.
fn grow(mut vectors: Vec<Vec<f32>>, count: usize) -> Vec<Vec<f32>> {
    let (real, mut state) = (vectors.len(), 88_172_645_463_325_252u64);
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    vectors.truncate(count);
    while vectors.len() < count {
        let mut next = vectors[vectors.len() % real].clone();
        next.iter_mut().for_each(|x| *x += 0.1 * random());
        vectors.push(codes::unit(&next).unwrap());
    }
    vectors
}

fn truth(vectors: &[Vec<f32>], query: &[f32], within: Option<&HashSet<i64>>) -> Vec<i64> {
    let mut scored: Vec<(f32, i64)> = vectors
        .iter()
        .enumerate()
        .map(|(n, vector)| (vector.iter().zip(query).map(|(a, b)| a * b).sum(), n as i64))
        .filter(|(_, n)| within.is_none_or(|within| within.contains(n)))
        .collect();
    scored.select_nth_unstable_by(TOP, |a, b| b.0.total_cmp(&a.0));
    scored.truncate(TOP);
    scored.into_iter().map(|(_, n)| n).collect()
}

fn rss_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0 / 1e6
}

/// Processor time of this thread so far. Machines are noisy; this is what a search costs.
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

fn measure(
    name: &str,
    queries: &Arc<Vec<Vec<f32>>>,
    truths: &[Vec<i64>],
    search: Arc<dyn Fn(&[f32]) -> Vec<i64> + Send + Sync>,
) {
    let (mut hits, mut wanted, mut fewer) = (0, 0, 0);
    for (query, truth) in queries.iter().zip(truths) {
        let found = search(query);
        fewer += usize::from(found.len() < truth.len());
        hits += truth.iter().filter(|n| found.contains(n)).count();
        wanted += truth.len();
    }
    let (next, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let total = queries.len() * 3;
    let threads: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (next, search, queries) = (next.clone(), search.clone(), queries.clone());
            std::thread::spawn(move || {
                let mut times = Vec::new();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= total {
                        return (times, cpu_ms());
                    }
                    let began = Instant::now();
                    std::hint::black_box(search(&queries[n % queries.len()]));
                    times.push(began.elapsed().as_secs_f64() * 1e3);
                }
            })
        })
        .collect();
    let (mut times, mut cpu) = (Vec::new(), 0.0);
    for (some, ms) in threads.into_iter().map(|thread| thread.join().unwrap()) {
        times.extend::<Vec<f64>>(some);
        cpu += ms;
    }
    let rate = total as f64 / began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!(
        "{name:<34} recall@10 {:.4}  short {fewer:>4}  {rate:>8.0} q/s  p50 {:.3} ms  p95 {:.3} ms  CPU {:.3} ms",
        hits as f64 / wanted as f64,
        at(0.5),
        at(0.95),
        cpu / total as f64
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let count: usize = args[3].parse().unwrap();
    let real = read(&args[1]);
    println!("{} real vectors of {count}", real.len().min(count));
    let vectors = grow(real, count);
    let mut queries = read(&args[2]);
    queries.truncate(if count > 200_000 { 200 } else { 500 });
    let queries = Arc::new(queries);
    let filter: Arc<HashSet<i64>> = Arc::new((0..count as i64).filter(|n| n % 100 == 7).collect());
    let half: Arc<HashSet<i64>> = Arc::new((0..count as i64).filter(|n| n % 2 == 1).collect());
    let filters = [("all", None), ("1 in 100", Some(filter)), ("1 in 2", Some(half))];
    let truths: Vec<Vec<Vec<i64>>> = filters
        .iter()
        .map(|(_, within)| queries.iter().map(|q| truth(&vectors, q, within.as_deref())).collect())
        .collect();

    let (before, began) = (rss_mb(), Instant::now());
    let mut shelf = shelf::Shelf::new(DIMENSIONS);
    for (n, vector) in vectors.iter().enumerate() {
        shelf.insert(&format!("document-{}", n / 4), n as i64, vector);
    }
    println!("scan: built in {:.1} s, {:.0} MB", began.elapsed().as_secs_f64(), rss_mb() - before);
    let shelf = Arc::new(shelf);
    for ((name, within), truths) in filters.iter().zip(&truths) {
        let (shelf, within) = (shelf.clone(), within.clone());
        let search = Arc::new(move |q: &[f32]| {
            shelf.search(q, within.as_deref(), TOP).into_iter().map(|(n, _)| n).collect()
        });
        measure(&format!("scan i8 + rescoring, {name}"), &queries, truths, search);
    }
    for (kind, word) in [(ScalarKind::I8, "i8"), (ScalarKind::F16, "f16")] {
        graph(kind, word, &vectors, &queries, &filters, &truths);
    }
}

type Filter = (&'static str, Option<Arc<HashSet<i64>>>);

/// The same with usearch.
fn graph(
    kind: ScalarKind,
    word: &str,
    vectors: &[Vec<f32>],
    queries: &Arc<Vec<Vec<f32>>>,
    filters: &[Filter],
    truths: &[Vec<Vec<i64>>],
) {
    let options = IndexOptions {
        dimensions: DIMENSIONS,
        metric: MetricKind::IP,
        quantization: kind,
        connectivity: 16,
        expansion_add: 128,
        expansion_search: 64,
        multi: false,
    };
    let index = Index::new(&options).unwrap();
    index.reserve(vectors.len()).unwrap();
    let (before, began) = (rss_mb(), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..CLIENTS {
            let index = &index;
            scope.spawn(move || {
                for n in (thread..vectors.len()).step_by(CLIENTS) {
                    index.add(n as u64, &vectors[n]).unwrap();
                }
            });
        }
    });
    println!("usearch {word}: built in {:.1} s, {:.0} MB", began.elapsed().as_secs_f64(), rss_mb() - before);
    let index = Arc::new(index);
    for expansion in [64, 128, 256] {
        index.change_expansion_search(expansion);
        for ((name, within), truths) in filters.iter().zip(truths) {
            if expansion != 128 && within.is_some() {
                continue;
            }
            let (index, within) = (index.clone(), within.clone());
            let search = Arc::new(move |q: &[f32]| {
                let found = match &within {
                    None => index.search(q, TOP),
                    Some(within) => index.filtered_search(q, TOP, |n| within.contains(&(n as i64))),
                };
                found.unwrap().keys.into_iter().map(|n| n as i64).collect()
            });
            measure(&format!("usearch {word}, ef {expansion}, {name}"), queries, truths, search);
        }
    }
}
