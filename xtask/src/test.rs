//! `cargo xtask test`: every check of the project, in one command.
use crate::report::{Tally, Verdict};
use crate::{Request, api, conformance, dashboard, interop, lint, tidy, unit, vectors};
use anyhow::{Result, bail};

pub fn all(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    // First, so that the program is built once, with the dashboard in it.
    dashboard::stages(&mut tally, request.verbose);
    lint::stages(&mut tally, request.verbose);
    tidy_stage(&mut tally);
    unit::stages(&mut tally, request.verbose);
    vectors::stages(&mut tally, request.verbose);
    api::stages(&mut tally, request);
    conformance::stages(&mut tally, request);
    interop::stages(&mut tally, request);
    dashboard::browser(&mut tally, request);
    Ok(tally.close())
}

pub fn part(name: &str, request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    match name {
        "lint" => lint::stages(&mut tally, request.verbose),
        "tidy" => tidy_stage(&mut tally),
        "dashboard" => dashboard::stages(&mut tally, request.verbose),
        "unit" => unit::stages(&mut tally, request.verbose),
        "coverage" => unit::counted(&mut tally, request.verbose),
        "vectors" => vectors::stages(&mut tally, request.verbose),
        "transcripts" => unit::transcripts(&mut tally, request.verbose),
        "api" => api::stages(&mut tally, request),
        "conformance" => conformance::stages(&mut tally, request),
        "interop" => interop::stages(&mut tally, request),
        "browser" => dashboard::browser(&mut tally, request),
        _ => {
            bail!(
                "no part called {name}; there are lint, tidy, dashboard, unit, coverage, vectors, transcripts, api, conformance, interop, browser"
            )
        }
    }
    Ok(tally.close())
}

fn tidy_stage(tally: &mut Tally) {
    tally.stage("tidy", || {
        let found = tidy::check()?;
        if found.complaints.is_empty() {
            return Ok(Verdict::pass(format!("{} files", found.files)));
        }
        Ok(Verdict {
            failed: found.complaints.len(),
            detail: found.complaints.join("\n"),
            ..Verdict::default()
        })
    });
}
