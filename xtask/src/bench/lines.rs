//! Benchmarks inside a crate: a plain program that prints one JSON line per figure.
use super::{keep, short};
use crate::Request;
use crate::process;
use crate::workspace::{self, BUILD_LIMIT};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::ffi::OsString;

/// One figure: `{"name":"submit no-op","value":1.2,"unit":"us"}`.
struct Figure {
    name: String,
    value: f64,
    unit: String,
}

pub fn run(bench: &str, package: &str, request: &Request) -> Result<()> {
    run_with(bench, package, &[], request)
}

/// The same, with something in its environment.
pub fn run_with(bench: &str, package: &str, variables: &[(&str, OsString)], request: &Request) -> Result<()> {
    let mut command = workspace::cargo(&["bench", "--package", package, "--bench", bench]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let done = process::run(&mut command, BUILD_LIMIT, request.verbose)?.require("cargo bench")?;
    let figures = read(&done.stdout);
    if figures.is_empty() {
        bail!("{package} has no benchmark called {bench} that prints figures\n{}", done.output);
    }
    let width = figures.iter().map(|figure| figure.name.chars().count()).max().unwrap_or(0);
    for figure in &figures {
        println!("{:<width$}  {:>12} {}", figure.name, short(figure.value), figure.unit);
    }
    let as_json = |figure: &Figure| json!({"name": figure.name, "value": figure.value, "unit": figure.unit});
    keep(bench, figures.iter().map(as_json).collect())
}

fn read(stdout: &str) -> Vec<Figure> {
    let figures = stdout.lines().filter_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        Some(Figure {
            name: value["name"].as_str()?.to_owned(),
            value: value["value"].as_f64()?,
            unit: value["unit"].as_str()?.to_owned(),
        })
    });
    figures.collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn figures_are_picked_out_of_other_output() {
        let figures =
            read("running\n{\"name\":\"submit\",\"value\":1.5,\"unit\":\"us\"}\n{\"name\":\"x\"}\n");
        assert_eq!(figures.len(), 1);
        assert_eq!(
            (figures[0].name.as_str(), figures[0].value, figures[0].unit.as_str()),
            ("submit", 1.5, "us")
        );
    }
}
