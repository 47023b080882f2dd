//! The results of `orchestr8 test` as JUnit XML, which CI systems read: one suite for each test file.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::{Real, iso};

use super::Verdict;
use super::case::Case;
use crate::failure::Failure;

/// A report to be written when the tests have ended.
pub struct Report {
    file: PathBuf,
    started_ms: i64,
}

impl Report {
    /// Fails if the file cannot be written, before any test runs.
    pub fn create(file: &Path) -> Result<Self, Failure> {
        std::fs::write(file, "").map_err(|cause| unwritable(file, &cause))?;
        Ok(Self { file: file.to_owned(), started_ms: Real::new().now_ms() })
    }

    /// `left` are tests that did not run because the run was cut short.
    pub fn write(self, verdicts: &[Verdict], left: &[Case]) -> Result<(), Failure> {
        let text = render(verdicts, left, &iso(self.started_ms));
        std::fs::write(&self.file, text).map_err(|cause| unwritable(&self.file, &cause))
    }
}

fn unwritable(file: &Path, cause: &std::io::Error) -> Failure {
    Failure::new(Code::InvalidArgument, format!("{} cannot be written: {cause}", file.display()))
        .hinting("--junit takes the path of a file in a folder that exists")
}

/// What became of one test, as the report says it.
enum Outcome<'v> {
    Ran(&'v Verdict),
    Skipped(&'v Case),
}

impl Outcome<'_> {
    fn case(&self) -> &Case {
        match self {
            Outcome::Ran(verdict) => &verdict.case,
            Outcome::Skipped(case) => case,
        }
    }

    fn duration_ms(&self) -> u64 {
        match self {
            Outcome::Ran(verdict) => verdict.duration_ms,
            Outcome::Skipped(_) => 0,
        }
    }
}

/// How many of some outcomes are what.
#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    duration_ms: u64,
}

impl Counts {
    fn of<'o>(outcomes: impl IntoIterator<Item = &'o Outcome<'o>>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            counts.tests += 1;
            counts.duration_ms += outcome.duration_ms();
            match outcome {
                Outcome::Ran(verdict) if verdict.is_error => counts.errors += 1,
                Outcome::Ran(verdict) => counts.failures += usize::from(!verdict.problems.is_empty()),
                Outcome::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }
}

fn render(verdicts: &[Verdict], left: &[Case], started: &str) -> String {
    let outcomes: Vec<Outcome<'_>> =
        verdicts.iter().map(Outcome::Ran).chain(left.iter().map(Outcome::Skipped)).collect();
    let all = Counts::of(&outcomes);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a text does not fail.
    let _ = writeln!(
        xml,
        "<testsuites name=\"orchestr8\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        all.tests,
        all.failures,
        all.errors,
        seconds(all.duration_ms)
    );
    // The tests of a file follow each other.
    for suite in outcomes.chunk_by(|one, next| one.case().file == next.case().file) {
        write_suite(&mut xml, suite, started);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn write_suite(xml: &mut String, outcomes: &[Outcome<'_>], started: &str) {
    let Some(first) = outcomes.first() else { return };
    let file = escape(&first.case().file.display().to_string());
    let counts = Counts::of(outcomes);
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\" timestamp=\"{started}\">",
        counts.tests,
        counts.failures,
        counts.errors,
        counts.skipped,
        seconds(counts.duration_ms)
    );
    for outcome in outcomes {
        write_case(xml, outcome, &file);
    }
    xml.push_str("  </testsuite>\n");
}

fn write_case(xml: &mut String, outcome: &Outcome<'_>, file: &str) {
    let (name, time) = (escape(&outcome.case().name), seconds(outcome.duration_ms()));
    let _ = write!(xml, "    <testcase name=\"{name}\" classname=\"{file}\" time=\"{time}\">");
    match outcome {
        Outcome::Skipped(_) => xml.push_str("<skipped message=\"the run ended before this test\"/>"),
        Outcome::Ran(verdict) => {
            if let Some(first) = verdict.problems.first() {
                let (element, kind) =
                    if verdict.is_error { ("error", "execution") } else { ("failure", "assertion") };
                let (message, text) = (escape(first), escape(&verdict.problems.join("\n")));
                let _ = write!(xml, "<{element} message=\"{message}\" type=\"{kind}\">{text}</{element}>");
            }
            if !verdict.execution.is_empty() {
                let _ = write!(xml, "<system-out>execution {}</system-out>", escape(&verdict.execution));
            }
        }
    }
    xml.push_str("</testcase>\n");
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A text as part of an attribute or of an element. Characters that XML 1.0 cannot hold are written as `\u{1b}`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // As a character these would become spaces in an attribute, and a line break in a text.
            '\t' | '\n' | '\r' => {
                let _ = write!(escaped, "&#{};", u32::from(letter));
            }
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.extend(letter.escape_unicode());
            }
            other => escaped.push(other),
        }
    }
    escaped
}
