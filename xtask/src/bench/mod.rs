//! `cargo xtask bench`: figures in one table and in `bench/results.json`; no test asserts a time.
mod compare;
mod knowledge;
mod lines;
mod mcp;
mod messages;
mod quality;
mod sessions;
mod workflows;

use crate::{Request, workspace};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

pub fn run(what: &str, request: &Request) -> Result<bool> {
    match what {
        "mcp" => mcp::run(request)?,
        "kernel" => lines::run("kernel", "orchestr8-kernel", request)?,
        "store" => lines::run("store", "orchestr8-stores", request)?,
        "encryption" => lines::run("encryption", "orchestr8-stores", request)?,
        "audit" => lines::run("audit", "orchestr8-workspace", request)?,
        "workflows" => workflows::run(request)?,
        "sessions" => sessions::run(request)?,
        "knowledge" => knowledge::run(request)?,
        "quality" => quality::run(request)?,
        "messages" => messages::run(request)?,
        "compare" => return compare::run(request),
        _ => {
            bail!(
                "no benchmark called {what}; there are mcp, kernel, store, encryption, audit, workflows, sessions, knowledge, quality, messages, compare"
            )
        }
    }
    Ok(true)
}

/// Replaces one section of the results file and leaves the others as they were.
fn keep(section: &str, figures: Value) -> Result<()> {
    let path = workspace::root().join("bench/results.json");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut all: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    all.insert(section.to_owned(), figures);
    std::fs::create_dir_all(path.parent().context("the results file has a folder")?)?;
    std::fs::write(&path, serde_json::to_string_pretty(&all)? + "\n")?;
    println!("\nwritten to bench/results.json");
    Ok(())
}

/// Three significant digits, with thousands separated.
fn short(value: f64) -> String {
    if value >= 1000.0 {
        let digits = format!("{value:.0}");
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short_and_readable() {
        let shown: Vec<String> = [0.123, 9.876, 12.34, 123.4, 1234.5, 1_234_567.0].map(short).to_vec();
        assert_eq!(shown, ["0.12", "9.88", "12.3", "123", "1,234", "1,234,567"]);
    }
}
