//! One expression as data: what it refers to, the path into it, and what to take instead.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// `${root.path ?? default}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub root: Root,
    pub path: Vec<Part>,
    /// Taken when the value is missing or null, as `??` does in JavaScript.
    pub default: Option<Literal>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Root {
    /// `steps.<id>.output`
    Step(Arc<str>),
    /// `steps.<id>.error`
    StepError(Arc<str>),
    /// `variables.<name>`
    Variable(Arc<str>),
    /// `env.<NAME>`
    Env(Arc<str>),
    /// `secrets.<NAME>`
    Secret(Arc<str>),
    /// `item`, `index`, `iteration`, `last`, `output`, `input`, `execution`, `failure`, `schedule`
    Local(Arc<str>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    Field(Arc<str>),
    Index(usize),
}

/// A default, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    pub value: Value,
    pub text: Arc<str>,
}

impl Reference {
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }
}

/// As it is written in a definition; reading it again gives the same reference.
impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "${{{}", self.root)?;
        for part in &self.path {
            match part {
                Part::Field(name) => write!(out, ".{name}")?,
                Part::Index(index) => write!(out, "[{index}]")?,
            }
        }
        if let Some(default) = &self.default {
            write!(out, " ?? {}", default.text)?;
        }
        out.write_str("}")
    }
}

impl fmt::Display for Root {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Root::Step(id) => write!(out, "steps.{id}.output"),
            Root::StepError(id) => write!(out, "steps.{id}.error"),
            Root::Variable(name) => write!(out, "variables.{name}"),
            Root::Env(name) => write!(out, "env.{name}"),
            Root::Secret(name) => write!(out, "secrets.{name}"),
            Root::Local(name) => out.write_str(name),
        }
    }
}
