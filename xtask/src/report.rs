//! One line per stage when it ends, and at the end a table of the longest stages and one plain line of totals.
use anyhow::Result;
use std::time::{Duration, Instant};

/// How many stages the table at the end names.
const LONGEST: usize = 12;

/// What a stage found.
#[derive(Default, Debug)]
pub struct Verdict {
    pub passed: usize,
    pub failed: usize,
    /// A few words for the stage's own line.
    pub note: String,
    /// What to show when something failed.
    pub detail: String,
}

impl Verdict {
    pub fn pass(note: impl Into<String>) -> Verdict {
        Verdict { passed: 1, note: note.into(), ..Verdict::default() }
    }

    pub fn fail(detail: impl Into<String>) -> Verdict {
        Verdict { failed: 1, detail: detail.into(), ..Verdict::default() }
    }

    pub fn of(success: bool, detail: impl Into<String>) -> Verdict {
        if success { Verdict::pass("") } else { Verdict::fail(detail) }
    }
}

/// Collects the verdicts; a failed stage never hides a later one.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    times: Vec<(String, Duration)>,
}

/// Stages that run one after the other, beside those of other lanes.
pub type Lane<'a> = Box<dyn FnOnce(&mut Tally) + Send + 'a>;

impl Tally {
    pub fn stage(&mut self, name: &str, run: impl FnOnce() -> Result<Verdict>) {
        eprintln!("... {name}");
        let started = Instant::now();
        let verdict = run().unwrap_or_else(|error| Verdict::fail(format!("{error:#}")));
        if verdict.failed > 0 && !verdict.detail.is_empty() {
            println!("{}", verdict.detail.trim_end());
        }
        let word = match (verdict.passed, verdict.failed) {
            (0, 0) => "skip",
            (_, 0) => "ok",
            (_, _) => "FAILED",
        };
        let took = started.elapsed();
        let seconds = took.as_secs_f64();
        println!("{}", format!("{name:<44} {word:<6} {seconds:>7.1} s  {}", verdict.note).trim_end());
        self.times.push((name.to_owned(), took));
        self.passed += verdict.passed;
        self.failed += verdict.failed;
    }

    /// Runs lanes side by side and waits for all of them.
    pub fn side_by_side(&mut self, lanes: Vec<Lane<'_>>) {
        let run = |lane: Lane<'_>| {
            let mut tally = Tally::default();
            lane(&mut tally);
            tally
        };
        let done: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(move || run(lane))).collect();
            running.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        for lane in done {
            // A lane that panicked has failed.
            let lane = lane.unwrap_or(Tally { failed: 1, ..Tally::default() });
            self.passed += lane.passed;
            self.failed += lane.failed;
            self.times.extend(lane.times);
        }
    }

    /// Prints the longest stages and the totals; true when nothing failed.
    pub fn close(mut self) -> bool {
        if self.times.len() > 1 {
            self.times.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
            println!("\nlongest parts, in seconds:");
            for (name, took) in self.times.iter().take(LONGEST) {
                println!("  {:>7.1}  {name}", took.as_secs_f64());
            }
        }
        println!("{} passed, {} failed", self.passed, self.failed);
        self.failed == 0
    }
}

/// The last lines of a long output: where the reason for a failure almost always is.
pub fn tail(output: &str, lines: usize) -> String {
    let all: Vec<&str> = output.lines().collect();
    let from = all.len().saturating_sub(lines);
    let mut text = String::new();
    if from > 0 {
        text.push_str(&format!("[{from} lines before]\n"));
    }
    text.push_str(&all[from..].join("\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::{Tally, Verdict, tail};

    #[test]
    fn an_error_counts_as_one_failure_and_later_stages_still_run() {
        let mut tally = Tally::default();
        tally.stage("first", || anyhow::bail!("broken"));
        tally.stage("second", || Ok(Verdict { passed: 3, ..Verdict::default() }));
        assert_eq!((tally.passed, tally.failed), (3, 1));
        assert!(!tally.close());
    }

    #[test]
    fn lanes_are_added_up_and_one_that_panics_has_failed() {
        let mut tally = Tally::default();
        tally.side_by_side(vec![
            Box::new(|tally| tally.stage("a", || Ok(Verdict { passed: 2, ..Verdict::default() }))),
            Box::new(|tally| tally.stage("b", || Ok(Verdict::fail("b")))),
            Box::new(|_| panic!("a lane")),
        ]);
        assert_eq!((tally.passed, tally.failed, tally.times.len()), (2, 2, 2));
    }

    #[test]
    fn tail_says_what_it_left_out() {
        assert_eq!(tail("a\nb\nc", 2), "[1 lines before]\nb\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
