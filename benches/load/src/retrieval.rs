//! Puts a collection of documents into a server, asks it every question of the collection, and scores what it finds.
use crate::http::{self, Connection};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const USAGE: &str = "\
usage: load retrieval --address HOST:PORT --collection FOLDER [--runs FOLDER]

  --collection FOLDER   holds corpus.jsonl {_id,title,text}, queries.jsonl {_id,text} and qrels/test.tsv
  --runs FOLDER         where to write what was found, as TREC runs";

const DEPTH: usize = 10;
/// So many passages are asked for: the most that a query may have.
const ASKED_FOR: usize = 20;
/// How long embedding all of it may take.
const INDEX_LIMIT: Duration = Duration::from_secs(1800);
const POLL: Duration = Duration::from_millis(250);
const SIDES: [&str; 3] = ["lexical", "dense", "hybrid"];

/// Question, document, grade.
type Grades = HashMap<String, HashMap<String, f64>>;

struct Plan {
    address: SocketAddr,
    collection: PathBuf,
    runs: Option<PathBuf>,
}

pub fn run(args: impl Iterator<Item = String>) -> Result<Value, String> {
    let plan = parse(args)?;
    let name = plan.collection.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut connection = http::connect(plan.address, Instant::now())?;
    let began = Instant::now();
    let documents = plan.fill(&mut connection, &name)?;
    let stored_s = began.elapsed().as_secs_f64();
    plan.wait_until_indexed(&mut connection, &name)?;
    let indexed_s = began.elapsed().as_secs_f64();
    let grades = grades(&read(&plan.collection.join("qrels/test.tsv"))?);
    let questions = lines(&plan.collection.join("queries.jsonl"))?;
    let mut figures =
        json!({"collection": name, "documents": documents, "stored_s": stored_s, "indexed_s": indexed_s});
    for side in SIDES {
        figures[side] = plan.score(&mut connection, &name, side, &questions, &grades)?;
    }
    Ok(figures)
}

impl Plan {
    /// Each collection is a tenant of its own.
    fn post(
        &self,
        connection: &mut Connection,
        tenant: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, String> {
        let headers = format!("X-Tenant-Id: {tenant}\r\n");
        connection.write(http::request(self.address, path, &headers, &body.to_string()).as_bytes())?;
        serde_json::from_str(&connection.read()?.body).map_err(|error| format!("{path}: {error}"))
    }

    fn fill(&self, connection: &mut Connection, tenant: &str) -> Result<usize, String> {
        let corpus = lines(&self.collection.join("corpus.jsonl"))?;
        for (number, document) in corpus.iter().enumerate() {
            // Some collections have no titles, but every document needs one: this has no word in it.
            let title = Some(text(document, "title")).filter(|title| !title.is_empty()).unwrap_or("-");
            let body = json!({
                "document_id": format!("00000000-0000-4000-8000-{number:012x}"), "parent_id": "root",
                "content": {"mime_type": "text/plain", "body": document["text"]},
                "metadata": {"title": title, "source": document["_id"]}
            });
            self.post(connection, tenant, "/documents", &body)?;
        }
        Ok(corpus.len())
    }

    /// A query that is not degraded has seen everything.
    fn wait_until_indexed(&self, connection: &mut Connection, tenant: &str) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < INDEX_LIMIT {
            let answer = self.ask(connection, tenant, "hybrid", "is it there")?;
            if answer.get("degraded").is_none() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        Err(format!("the documents of {tenant} were not indexed in time"))
    }

    fn ask(
        &self,
        connection: &mut Connection,
        tenant: &str,
        side: &str,
        query: &str,
    ) -> Result<Value, String> {
        let body = json!({"query": query, "top_k": ASKED_FOR, "routing": {"retrieval": side, "max_latency_ms": 10_000}});
        let answer = self.post(connection, tenant, "/documents/query", &body)?;
        Ok(answer.get("data").cloned().unwrap_or(answer))
    }

    fn score(
        &self,
        connection: &mut Connection,
        tenant: &str,
        side: &str,
        questions: &[Value],
        grades: &Grades,
    ) -> Result<Value, String> {
        let (mut found_all, mut run) = (HashMap::new(), String::new());
        let mut took_ms = Vec::with_capacity(questions.len());
        for question in questions {
            let (id, query) = (text(question, "_id"), text(question, "text"));
            let sent = Instant::now();
            let answer = self.ask(connection, tenant, side, query)?;
            took_ms.push(sent.elapsed().as_secs_f64() * 1e3);
            let mut found: Vec<String> = Vec::new();
            for item in answer["context"].as_array().into_iter().flatten() {
                let source = text(&item["metadata"], "source").to_owned();
                if !found.contains(&source) {
                    let _ =
                        writeln!(run, "{id} Q0 {source} {} {} {side}", found.len() + 1, 1000 - found.len());
                    found.push(source);
                }
            }
            found_all.insert(id.to_owned(), found);
        }
        if let Some(folder) = &self.runs {
            let path = folder.join(format!("{tenant}.{side}.run"));
            std::fs::write(&path, run).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        took_ms.sort_unstable_by(f64::total_cmp);
        let (ndcg, recall) = means(grades, &found_all);
        Ok(json!({"ndcg_at_10": ndcg, "recall_at_10": recall,
            "p50_ms": crate::measure::at(&took_ms, 0.50), "p95_ms": crate::measure::at(&took_ms, 0.95)}))
    }
}

/// Of all questions that something answers; one without an answer scores 0.
fn means(grades: &Grades, found: &HashMap<String, Vec<String>>) -> (f64, f64) {
    let (mut ndcg, mut recall, mut count) = (0.0, 0.0, 0.0);
    let gain = |rank: usize, grade: f64| grade / (rank as f64 + 2.0).log2();
    for (question, right) in grades {
        let mut best: Vec<f64> = right.values().copied().filter(|grade| *grade > 0.0).collect();
        if best.is_empty() {
            continue;
        }
        best.sort_unstable_by(|one, other| other.total_cmp(one));
        let ideal: f64 = best.iter().take(DEPTH).enumerate().map(|(rank, grade)| gain(rank, *grade)).sum();
        let list = found.get(question).map(Vec::as_slice).unwrap_or_default();
        let grades = list.iter().take(DEPTH).map(|id| right.get(id).copied().unwrap_or(0.0).max(0.0));
        ndcg += grades.clone().enumerate().map(|(rank, grade)| gain(rank, grade)).sum::<f64>() / ideal;
        recall += grades.filter(|grade| *grade > 0.0).count() as f64 / best.len() as f64;
        count += 1.0;
    }
    (ndcg / count, recall / count)
}

fn grades(text: &str) -> Grades {
    let mut grades = Grades::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(question), Some(document), Some(grade)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // The first line names the columns.
        let Ok(grade) = grade.trim().parse() else { continue };
        grades.entry(question.to_owned()).or_default().insert(document.to_owned(), grade);
    }
    grades
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn lines(path: &Path) -> Result<Vec<Value>, String> {
    let line =
        |line: &str| serde_json::from_str(line).map_err(|error| format!("{}: {error}", path.display()));
    read(path)?.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
    let (mut address, mut collection, mut runs) = (None, None, None);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"))?;
        match flag.as_str() {
            "--address" => address = Some(value.parse().map_err(|_| format!("{value} is no address"))?),
            "--collection" => collection = Some(PathBuf::from(value)),
            "--runs" => runs = Some(PathBuf::from(value)),
            _ => return Err(format!("{flag}: unknown\n{USAGE}")),
        }
    }
    let (Some(address), Some(collection)) = (address, collection) else { return Err(USAGE.to_owned()) };
    Ok(Plan { address, collection, runs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_first_counts_most_and_what_is_missed_counts_nothing() {
        let grades = grades("query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t2\nq2\tc\t1\nq3\td\t0\n");
        let found = HashMap::from([("q1".to_owned(), vec!["a".to_owned(), "x".to_owned(), "b".to_owned()])]);
        let (ndcg, recall) = means(&grades, &found);
        let expected = (1.0 + 2.0 / 2.0) / (2.0 + 1.0 / 3f64.log2()) / 2.0;
        assert!((ndcg - expected).abs() < 1e-9 && (recall - 0.5).abs() < 1e-9, "{ndcg} {recall}");
    }
}
