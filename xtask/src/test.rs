//! `cargo xtask test`: every check of the project, in one command.
use crate::report::{Tally, Verdict};
use crate::{Request, api, conformance, dashboard, interop, lint, tidy, unit, vectors, workspace};
use anyhow::{Result, bail};

pub fn all(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    tidy_stage(&mut tally);
    lint::format_stage(&mut tally, request.verbose);
    if request.quick {
        unit::quick(&mut tally, request.verbose);
        return Ok(tally.close());
    }
    // First, so that the program is built once, with the dashboard in it.
    dashboard::stages(&mut tally, request.verbose);
    unit::build(&mut tally, request.verbose);
    unit::stages(&mut tally, request.verbose);
    vectors::stages(&mut tally, request.verbose);
    from_outside(&mut tally, request);
    Ok(tally.close())
}

/// Clients of others against the program. They wait for most of their time, so the lints are checked beside them.
fn from_outside(tally: &mut Tally, request: &Request) {
    let mut request = request.clone();
    tally.stage("the program for clients of others", || {
        request.binary = Some(workspace::orchestr8(workspace::TESTS, &request)?);
        Ok(Verdict::pass(""))
    });
    let request = &request;
    tally.side_by_side(vec![
        Box::new(|tally| api::stages(tally, request)),
        Box::new(|tally| {
            conformance::stages(tally, request);
            interop::stages(tally, request);
            dashboard::browser(tally, request);
        }),
        Box::new(|tally| lint::clippy_stage(tally, request.verbose)),
    ]);
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
