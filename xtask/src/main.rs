//! Project tasks, run as `cargo xtask <task>`: run, test, tidy, coverage, prove, fuzz, bench, deny.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer tool: it reads the environment, measures time and talks to a terminal"
)]

mod api;
mod bench;
mod cargo_tools;
mod conformance;
mod coverage;
mod dashboard;
mod deny;
mod fuzz;
mod gateway;
mod interop;
mod lint;
mod llvm;
mod node;
mod order;
mod process;
mod profile;
mod prove;
mod python;
mod release;
mod report;
mod run;
mod server;
mod test;
mod tidy;
mod unit;
mod vectors;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  run                                                      build everything, start the server with example data
  test [lint|tidy|dashboard|unit|coverage|vectors|transcripts|api|conformance|interop|browser]
                                                           everything, or one part of it
       --url URL     run conformance or the HTTP half of interop against a server that already runs
       --binary PATH use this orchestr8 instead of building one (also for bench)
  tidy                                                     the house rules a compiler does not know
  coverage [CRATE...]                                      line coverage per crate, with the floors we promise;
                                                           of these alone (kernel, faces/mcp), by their own tests
  prove                                                    coverage, then the long versions of the randomised and crash tests
  fuzz [TARGET...]                                         texts that a fuzzer makes up, ten minutes per target
                                                           (needs a nightly compiler)
  bench mcp|kernel|store|audit|workflows|sessions|knowledge|messages
                                                           measure, side by side where there is a peer
       --rounds N    repeat each case N times (mcp, default 5; workflows, default 3)
       --quick       test: tidy, format and the tests that take no time; bench workflows and knowledge:
                     few calls, to see that it runs; prove: few cases; fuzz: 20 seconds
  bench knowledge FOLDER                                   the same on vectors of real texts, and the embedder
  bench quality FOLDER                                     how well questions are answered, over collections
                                                           with grades (see docs/guide/benchmarks.md)
  bench compare COMMIT|BINARY [mcp|workflows|sessions|messages...]
                                                           this build beside an earlier one, in one run; fails if
                                                           a call costs over 5 % more CPU than before
  deny                                                     licences, advisories and duplicates
  release                                                  build the program as it is shipped, and say where it is
  install                                                  the same, and put it on your path
  profile                                                  which code calls run, for the compiler of releases
       --binary PATH use this build that counts instead of making one
  order                                                    which functions start-up runs, for the linker (needs valgrind)
       --binary PATH use this build with symbols instead of making one

  --verbose          show the output of every step, not only of those that fail";

/// What was asked for on the command line.
#[derive(Clone)]
pub struct Request {
    pub words: Vec<String>,
    pub url: Option<String>,
    pub binary: Option<PathBuf>,
    pub rounds: Option<u32>,
    pub quick: bool,
    pub verbose: bool,
}

fn main() -> ExitCode {
    if coverage::stands_in() {
        eprintln!(
            "xtask: the compiler cannot be started: {}",
            coverage::become_rustc(std::env::args_os().skip(1))
        );
        return ExitCode::FAILURE;
    }
    let request = match parse(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(message) => {
            eprintln!("xtask: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    process::kill_children_on_interrupt();
    let words: Vec<&str> = request.words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["run"] => run::run(&request),
        ["test"] => test::all(&request),
        ["test", part] => test::part(part, &request),
        ["tidy"] => test::part("tidy", &request),
        ["coverage", crates @ ..] => coverage::run(crates, &request),
        ["prove"] => prove::run(&request),
        ["fuzz", targets @ ..] => fuzz::run(targets, &request),
        ["bench", "compare", _, ..] => bench::run("compare", &request),
        ["bench", what @ ("quality" | "knowledge"), _] => bench::run(what, &request),
        ["bench", what] => bench::run(what, &request),
        ["deny"] => deny::run(&request),
        ["release"] => release::run(&request),
        ["install"] => release::install(&request),
        ["profile"] => profile::run(&request),
        ["order"] => order::run(&request),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request =
        Request { words: Vec::new(), url: None, binary: None, rounds: None, quick: false, verbose: false };
    let mut args = args;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--url" => request.url = Some(args.next().ok_or("--url needs an address")?),
            "--binary" => request.binary = Some(args.next().ok_or("--binary needs a path")?.into()),
            "--rounds" => {
                let text = args.next().ok_or("--rounds needs a number")?;
                request.rounds = Some(text.parse().map_err(|_| format!("--rounds {text}: not a number"))?);
            }
            "--quick" => request.quick = true,
            "--verbose" | "-v" => request.verbose = true,
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
            _ => request.words.push(arg),
        }
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn words(line: &str) -> impl Iterator<Item = String> {
        line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn options_may_stand_anywhere() {
        let request = parse(words("test --url http://127.0.0.1:1/mcp conformance -v")).unwrap();
        assert_eq!(request.words, ["test", "conformance"]);
        assert_eq!(request.url.as_deref(), Some("http://127.0.0.1:1/mcp"));
        assert!(request.verbose);
    }

    #[test]
    fn an_unknown_option_is_refused_by_name() {
        assert_eq!(parse(words("test --fast")).err().unwrap(), "unknown option --fast");
        assert!(parse(words("bench mcp --rounds many")).is_err());
    }
}
