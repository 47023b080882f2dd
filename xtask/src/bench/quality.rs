//! How well questions are answered by the right document, over collections of documents, questions and grades: by words, by
//! meaning, and by both.
use super::keep;
use crate::server::{Service, free_port};
use crate::{Request, process, workspace};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Embedding a collection takes most of it.
const LIMIT: Duration = Duration::from_secs(3600);
const SIDES: [&str; 3] = ["lexical", "dense", "hybrid"];

pub fn run(request: &Request) -> Result<()> {
    let Some(folder) = request.words.get(2).map(PathBuf::from) else {
        bail!(
            "say where the collections are: cargo xtask bench quality FOLDER; each is a folder in it with corpus.jsonl, \
             queries.jsonl and qrels/test.tsv"
        )
    };
    let collections = collections(&folder)?;
    let load = workspace::outside("benches/load", request.verbose)?;
    let ours = workspace::orchestr8("release", request)?;
    let place = workspace::target()?.join("bench");
    std::fs::create_dir_all(&place)?;
    let place = tempfile::tempdir_in(&place)?;
    let data = place.path().join("data");
    let mut pull = Command::new(&ours);
    pull.args(["models", "pull", "--data-dir"]).arg(&data);
    process::run(&mut pull, LIMIT, request.verbose)?.require("orchestr8 models pull")?;
    let port = free_port()?;
    let mut serve = Command::new(&ours);
    serve.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(&data);
    serve.env("ORCHESTR8_LOGGING_LEVEL", "error").env("ORCHESTR8_KNOWLEDGE_RATE_PER_MINUTE", "0");
    let service = Service::start("orchestr8", serve, place.path())?.ready(port, "/readyz")?;
    let mut rows: Vec<Value> = Vec::new();
    for collection in &collections {
        eprintln!("... {}", collection.display());
        let mut command = Command::new(&load);
        command
            .args(["retrieval", "--address", &format!("127.0.0.1:{port}"), "--collection"])
            .arg(collection);
        let done = process::run(&mut command, LIMIT, request.verbose)?;
        let done = done.require("load").with_context(|| service.log())?;
        rows.push(serde_json::from_str(done.stdout.trim()).context("the load client's line")?);
    }
    tell(&rows);
    keep("quality", json!(rows))
}

fn collections(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("corpus.jsonl").is_file())
        .collect();
    found.sort();
    if found.is_empty() {
        bail!("{} holds no folder with a corpus.jsonl", folder.display());
    }
    Ok(found)
}

fn tell(rows: &[Value]) {
    let figure = |row: &Value, side: &str, name: &str| row[side][name].as_f64().unwrap_or(f64::NAN);
    println!(
        "\n{:<20} {:>10} {:>10} {:>10}   {:>10} {:>10}",
        "nDCG@10", "words", "meaning", "both", "recall@10", "p95 ms"
    );
    for row in rows {
        let [words, meaning, both] = SIDES.map(|side| figure(row, side, "ndcg_at_10"));
        let (recall, p95) = (figure(row, "hybrid", "recall_at_10"), figure(row, "hybrid", "p95_ms"));
        let name = row["collection"].as_str().unwrap_or_default();
        let met = if both >= words.max(meaning) { "met   " } else { "missed" };
        println!(
            "{name:<20} {words:>10.4} {meaning:>10.4} {both:>10.4}   {recall:>10.4} {p95:>10.1}   {met} at least the better side"
        );
    }
}
