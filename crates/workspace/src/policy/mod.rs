//! What may not be written, whatever the plan: placeholders, swallowed errors, and what each language has of its own.
//!
//! Rules are data: one file per language. A rule is a row of tokens as they follow each other in code, whatever the blanks
//! between them; text in quotes and comments is no code. Placeholders are looked for in comments.

mod any;
mod go;
mod javascript;
mod python;
mod rust;
mod shell;
mod tokens;

use orchestr8_contract::Code;
use serde_json::{Value, json};

use crate::limits;
use crate::refusal::Refusal;
use crate::root::Inside;

pub use tokens::Syntax;

/// What a file is for, as the executor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Executable,
    Boundary,
    Infrastructure,
    /// Tests: there, giving up at once is how a failure is told.
    Verification,
}

impl Purpose {
    pub const ALL: [(&'static str, Purpose); 4] = [
        ("EXECUTABLE", Purpose::Executable),
        ("BOUNDARY", Purpose::Boundary),
        ("INFRASTRUCTURE", Purpose::Infrastructure),
        ("VERIFICATION", Purpose::Verification),
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, purpose)| *purpose)
    }
}

/// One thing that may not be written.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub id: &'static str,
    /// Tokens separated by blanks; `…` stands for any one token.
    pub tokens: &'static str,
    pub message: &'static str,
    /// Whether tests may.
    pub tests_may: bool,
}

/// A language, how its text is read, and its rules.
pub struct Language {
    pub endings: &'static [&'static str],
    pub syntax: Syntax,
    pub rules: &'static [Rule],
    /// The code of a violation.
    pub code: Code,
}

const LANGUAGES: [&Language; 5] =
    [&rust::LANGUAGE, &javascript::LANGUAGE, &python::LANGUAGE, &go::LANGUAGE, &shell::LANGUAGE];

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub line: usize,
    pub message: &'static str,
}

/// Refuses a text that breaks a rule. What is quoted of it is nothing: it may hold secrets.
pub fn check(path: &Inside, text: &str, purpose: Purpose) -> Result<(), Refusal> {
    let language = language_of(path);
    let violations = violations(language, text, purpose);
    let Some(first) = violations.first() else { return Ok(()) };
    let code = match language {
        Some(language) if language.rules.iter().any(|rule| rule.id == first.rule) => language.code,
        Some(_) | None => Code::PolicyViolation,
    };
    let message = format!("line {} of '{path}': {} ({} in all)", first.line, first.message, violations.len());
    let shown: Vec<Value> = violations
        .iter()
        .map(
            |violation| json!({"rule": violation.rule, "line": violation.line, "message": violation.message}),
        )
        .collect();
    Err(Refusal::new(code, message).with("violations", shown))
}

fn language_of(path: &Inside) -> Option<&'static Language> {
    let ending = path.split().1.rsplit_once('.').map(|(_, ending)| ending)?;
    LANGUAGES.into_iter().find(|language| language.endings.contains(&ending))
}

fn violations(language: Option<&Language>, text: &str, purpose: Purpose) -> Vec<Violation> {
    let Some(language) = language else { return Vec::new() };
    let read = tokens::read(text, &language.syntax);
    let mut found = Vec::new();
    for rule in language.rules {
        if rule.tests_may && purpose == Purpose::Verification {
            continue;
        }
        let wanted: Vec<&str> = rule.tokens.split(' ').collect();
        for window in read.code.windows(wanted.len()) {
            if window.iter().zip(&wanted).all(|(token, wanted)| *wanted == "…" || token.text == *wanted) {
                found.push(Violation { rule: rule.id, line: window[0].line, message: rule.message });
            }
        }
    }
    for rule in any::PLACEHOLDERS {
        for comment in &read.comments {
            if any::is_in(rule, &comment.text) {
                found.push(Violation { rule: rule.id, line: comment.line, message: rule.message });
            }
        }
    }
    found.sort_by_key(|violation| violation.line);
    found.truncate(limits::FINDINGS);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, purpose: Purpose) -> Result<(), (Code, Value)> {
        super::check(&Inside::own(path.to_owned()), text, purpose)
            .map_err(|refusal| (refusal.code, refusal.details["violations"][0]["rule"].clone()))
    }

    #[test]
    fn every_rule_of_every_language_finds_what_it_is_for() {
        let cases = [
            ("a.rs", "fn f() { x . unwrap() }", Code::RustPolicyViolation, "rust-unwrap"),
            ("a.rs", "fn f() { x.expect(\"y\") }", Code::RustPolicyViolation, "rust-expect"),
            ("a.rs", "fn f() { panic!(\"y\") }", Code::RustPolicyViolation, "rust-panic"),
            ("a.rs", "fn f() { todo!() }", Code::RustPolicyViolation, "rust-todo"),
            ("a.rs", "fn f() { unimplemented!() }", Code::RustPolicyViolation, "rust-unimplemented"),
            ("a.rs", "unsafe { *p }", Code::RustPolicyViolation, "rust-unsafe"),
            ("a.rs", "let _ = f();", Code::RustPolicyViolation, "rust-ignored-result"),
            ("a.ts", "try { f() } catch (e) { }", Code::PolicyViolation, "js-swallowed-error"),
            ("a.js", "try { f() } catch {}", Code::PolicyViolation, "js-swallowed-error-unbound"),
            ("a.jsx", "p.catch(() => {})", Code::PolicyViolation, "js-swallowed-rejection"),
            ("a.py", "try:\n    f()\nexcept:\n    pass\n", Code::PolicyViolation, "python-bare-except"),
            ("a.py", "except ValueError: pass", Code::PolicyViolation, "python-swallowed-error"),
            ("a.py", "raise NotImplementedError()", Code::PolicyViolation, "python-not-implemented"),
            ("a.go", "_ = err", Code::PolicyViolation, "go-ignored-error"),
            ("a.go", "if err != nil { }", Code::PolicyViolation, "go-swallowed-error"),
            ("a.sh", "make || true", Code::PolicyViolation, "shell-swallowed-error"),
            ("a.rs", "// Todo: more", Code::PolicyViolation, "placeholder-todo"),
            ("a.py", "# not implemented yet", Code::PolicyViolation, "placeholder-not-implemented"),
            ("a.go", "/* FixMe */", Code::PolicyViolation, "placeholder-fixme"),
        ];
        for (path, text, code, rule) in cases {
            assert_eq!(check(path, text, Purpose::Executable), Err((code, rule.into())), "{path}: {text}");
        }
    }

    #[test]
    fn quotes_comments_other_words_and_other_files_are_left_alone() {
        for (path, text) in [
            ("a.rs", "let s = \"x.unwrap() todo!()\"; // it never panics and has no unsafe"),
            ("a.rs", "x.unwrap_or(0); let c = '\"'; r#\"panic!\"#;"),
            ("a.rs", "let todos = 1; /* a // b */ fn g<'a>(x: &'a str) {}"),
            ("a.js", "const s = `catch (e) {}`; try {} catch (e) { log(e) }"),
            ("a.py", "s = \"\"\"except: pass\"\"\"\n"),
            ("README.md", "Todo: x.unwrap()"),
            ("Makefile", "make || true"),
        ] {
            assert_eq!(check(path, text, Purpose::Executable), Ok(()), "{path}: {text}");
        }
        assert_eq!(check("a.rs", "x.unwrap()", Purpose::Verification), Ok(()));
        assert!(check("a.rs", "unsafe {}", Purpose::Verification).is_err());
    }
}
