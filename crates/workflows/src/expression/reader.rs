//! Reads one `${...}` from left to right, looking at each character once or twice and never back.

use std::sync::Arc;

use serde_json::Value;

use super::reference::{Literal, Part, Reference, Root};
use super::{DANGEROUS, LOCALS};
use crate::limits;

/// What is wrong with an expression, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub message: String,
    pub hint: String,
}

impl Mistake {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Reads an expression that begins at `from`, just behind its `${`. Gives it and the place behind its `}`.
pub(super) fn read(text: &str, from: usize) -> Result<(Reference, usize), Mistake> {
    let mut reader = Reader { text, at: from, longest: LONGEST };
    reader.skip_space();
    let root = reader.root()?;
    let path = reader.path(&root)?;
    reader.skip_space();
    let default = if reader.take("??") { Some(reader.default()?) } else { None };
    reader.skip_space();
    if reader.take("}") {
        return Ok((Reference { root, path, default }, reader.at));
    }
    Err(reader.unexpected())
}

/// Reads a quoted text that begins at `from`. Gives what it says and the place behind its closing quote.
pub(super) fn read_quoted(text: &str, from: usize) -> Result<(String, usize), Mistake> {
    let mut reader = Reader { text, at: from, longest: text.len() };
    let value = reader.quoted()?;
    Ok((value, reader.at))
}

/// Reads a JSON array or object that begins at `from`. Gives it and the place behind it.
pub(super) fn read_nested(text: &str, from: usize) -> Result<(Value, usize), Mistake> {
    let mut reader = Reader { text, at: from, longest: text.len() };
    let value = reader.nested()?;
    Ok((value, reader.at))
}

/// A default is not looked at beyond this, so that many open ones in one text cannot make reading slow. Two for its quotes.
const LONGEST: usize = limits::DEFAULT_BYTES + 2;

/// What may stand between the parts of an expression.
const SPACE: [char; 2] = [' ', '\t'];

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How far a literal is looked for its end.
    longest: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().chars().take_while(|letter| SPACE.contains(letter)).count();
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// The longest run of letters, digits, `_`, and `-` if it may have some.
    fn word(&mut self, hyphens: bool) -> &'a str {
        let rest = self.rest();
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || (hyphens && *byte == b'-'))
            .count();
        self.at += length;
        &rest[..length]
    }

    fn root(&mut self) -> Result<Root, Mistake> {
        let word = self.word(false);
        match word {
            "steps" => {
                let id = self.name("steps", "${steps.<id>.output.<path>}")?;
                if self.take(".output") {
                    return Ok(Root::Step(id));
                }
                if self.take(".error") {
                    return Ok(Root::StepError(id));
                }
                Err(Mistake::new(
                    format!("steps.{id} must be followed by .output or .error"),
                    format!("Write ${{steps.{id}.output}} or ${{steps.{id}.output.<path>}}."),
                ))
            }
            "variables" => Ok(Root::Variable(self.name("variables", "${variables.<name>}")?)),
            "env" => Ok(Root::Env(self.name("env", "${env.<NAME>}")?)),
            "secrets" => Ok(Root::Secret(self.name("secrets", "${secrets.<NAME>}")?)),
            "inputs" => Err(Mistake::new(
                "inputs is not a name expressions know",
                "Inputs are variables: write ${variables.<name>}.",
            )),
            local if LOCALS.contains(&local) => Ok(Root::Local(local.into())),
            "" => Err(self.unexpected()),
            other => Err(Mistake::new(
                format!("{other} is not a name expressions know"),
                format!(
                    "Begin with steps, variables, env, secrets, or where they exist {}.",
                    LOCALS.join(", ")
                ),
            )),
        }
    }

    fn name(&mut self, of: &str, form: &str) -> Result<Arc<str>, Mistake> {
        let dot = self.take(".");
        let name = if dot { self.word(true) } else { "" };
        if name.is_empty() {
            return Err(Mistake::new(format!("{of} must be followed by a name"), format!("Write {form}.")));
        }
        harmless(name)?;
        Ok(name.into())
    }

    fn path(&mut self, root: &Root) -> Result<Vec<Part>, Mistake> {
        let mut path = Vec::new();
        loop {
            if self.take(".") {
                let name = self.word(false);
                if name.is_empty() {
                    return Err(self.unexpected());
                }
                harmless(name)?;
                path.push(Part::Field(name.into()));
            } else if self.take("[") {
                path.push(Part::Index(self.index()?));
            } else {
                break;
            }
            if path.len() > limits::PATH_DEPTH {
                return Err(Mistake::new(
                    format!("the path is deeper than {} levels", limits::PATH_DEPTH),
                    "Reshape the value in a step of its own, then refer to that.",
                ));
            }
        }
        match root {
            Root::Env(name) | Root::Secret(name) if !path.is_empty() => Err(Mistake::new(
                format!("{name} is a text and has nothing inside"),
                format!("Write ${{{root}}}."),
            )),
            Root::Env(_)
            | Root::Secret(_)
            | Root::Step(_)
            | Root::StepError(_)
            | Root::Variable(_)
            | Root::Local(_) => Ok(path),
        }
    }

    /// The digits of `[n]` and its closing bracket. One text for one number: no leading zeros.
    fn index(&mut self) -> Result<usize, Mistake> {
        let digits = self.word(false);
        let plain = digits == "0" || !digits.starts_with('0');
        match digits.parse::<u32>() {
            Ok(index) if plain && self.take("]") => Ok(usize::try_from(index).unwrap_or(usize::MAX)),
            Ok(_) | Err(_) => Err(Mistake::new(
                "brackets in a path hold a number, counted from 0",
                "Write items[0]; a field is written with a dot: items.name.",
            )),
        }
    }

    fn default(&mut self) -> Result<Literal, Mistake> {
        self.skip_space();
        let from = self.at;
        let value = match self.rest().bytes().next() {
            Some(b'"' | b'\'') => Value::String(self.quoted()?),
            Some(b'{' | b'[') => self.nested()?,
            Some(_) | None => self.bare()?,
        };
        let text = self.text[from..self.at].trim_end_matches(SPACE);
        bounded(text)?;
        Ok(Literal { value, text: text.into() })
    }

    /// A JSON array or object.
    fn nested(&mut self) -> Result<Value, Mistake> {
        let mut depth = 0_usize;
        let mut in_text = false;
        let mut escaped = false;
        let rest = self.rest();
        for (offset, byte) in rest.bytes().enumerate().take(self.longest) {
            match (in_text, byte) {
                (true, _) if escaped => escaped = false,
                (true, b'\\') => escaped = true,
                (_, b'"') => in_text = !in_text,
                (false, b'{' | b'[') => depth += 1,
                (false, b'}' | b']') => depth = depth.saturating_sub(1),
                (true | false, _) => {}
            }
            if depth == 0 {
                let literal = &rest[..=offset];
                self.at += literal.len();
                return serde_json::from_str(literal).map_err(|_| {
                    Mistake::new(
                        format!("{literal} is not JSON"),
                        "Write a JSON literal, or put the text in quotes.",
                    )
                });
            }
        }
        Err(self.open("a JSON literal is not closed", "Close every [ and { of it."))
    }

    /// A literal that does not end where it should.
    fn open(&self, message: &str, hint: &str) -> Mistake {
        if self.rest().len() > self.longest { too_long() } else { Mistake::new(message, hint) }
    }

    /// Text in double or single quotes, with the escapes of JSON.
    fn quoted(&mut self) -> Result<String, Mistake> {
        let quote = self.rest().bytes().next();
        let from = self.at;
        let mut json = String::from("\"");
        let mut letters = self.rest().char_indices().skip(1).take_while(|(offset, _)| *offset < self.longest);
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some((_, '\'')) => json.push('\''),
                    Some((_, other)) => json.extend(['\\', other]),
                    None => break,
                },
                letter if u32::from(letter) < 0x80 && quote == Some(letter as u8) => {
                    self.at = from + offset + 1;
                    json.push('"');
                    return serde_json::from_str(&json).map_err(|_| {
                        Mistake::new(
                            "a quoted text is not well formed",
                            "Escape as in JSON: \\\" \\\\ \\n \\t \\u0041.",
                        )
                    });
                }
                '"' => json.push_str("\\\""),
                other => json.push(other),
            }
        }
        Err(self.open("a quoted text is not closed", "Close it with the quote it begins with."))
    }

    /// What stands between `??` and `}` without quotes: a JSON literal if it is one, else the text.
    fn bare(&mut self) -> Result<Value, Mistake> {
        let rest = self.rest();
        let length = rest.find('}').unwrap_or(rest.len());
        let text = rest[..length].trim_end_matches(SPACE);
        self.at += length;
        if text.is_empty() {
            return Err(Mistake::new(
                "the default is missing",
                "Write a value after ??, for example ?? \"\".",
            ));
        }
        let first = text.split(['.', '[']).next().unwrap_or_default();
        let like_a_reference =
            text.contains('.') && ["steps", "variables", "env", "secrets"].contains(&first);
        if like_a_reference || text.contains("${") || text.contains("??") {
            return Err(Mistake::new(
                format!("the default {text} is not a literal"),
                "A default cannot refer to something else; put it in quotes if the text itself is meant.",
            ));
        }
        Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
    }

    fn unexpected(&self) -> Mistake {
        match self.rest().chars().next() {
            Some(letter) => Mistake::new(
                format!("{letter:?} is not expected in an expression"),
                "Write ${steps.<id>.output.<path>}, ${variables.<name>} or ${env.<NAME>}, with ?? before a default.",
            ),
            None => Mistake::new(
                "the expression is not closed",
                "Close it with }, or write $${ for the text ${ itself.",
            ),
        }
    }
}

fn harmless(name: &str) -> Result<(), Mistake> {
    if DANGEROUS.contains(&name) {
        return Err(Mistake::new(
            format!("Dangerous property access: {name}"),
            "This name is refused everywhere; use another one.",
        ));
    }
    Ok(())
}

/// Keeps a default short and printable (WF-19.5).
fn bounded(text: &str) -> Result<(), Mistake> {
    let quotes = if text.starts_with(['"', '\'']) { 2 } else { 0 };
    if text.len() > limits::DEFAULT_BYTES + quotes {
        return Err(too_long());
    }
    if let Some(letter) = text.chars().find(|letter| !(' '..='~').contains(letter)) {
        return Err(Mistake::new(
            format!("the default has {letter:?}, which is not printable ASCII"),
            "Write it as \\uXXXX in a quoted text.",
        ));
    }
    Ok(())
}

fn too_long() -> Mistake {
    Mistake::new(
        format!("the default is longer than {} characters", limits::DEFAULT_BYTES),
        "Put it into a variable and refer to that.",
    )
}
