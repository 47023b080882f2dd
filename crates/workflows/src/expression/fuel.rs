//! Fuel: what the evaluation of an expression costs. It depends on the definition and the data only, never on time, so that the same
//! events always fold to the same state; an evaluation that needs more than its limit fails.

use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::reference::{Reference, Root};
use crate::limits::{self, EVALUATION_FUEL, EXECUTION_FUEL};

/// Bytes of text that are compared or copied for one unit.
const BYTES_COPIED: usize = 32;

/// Bytes that are written as JSON for one unit: writing takes longer than copying.
const BYTES_WRITTEN: usize = 8;

/// The fuel of one evaluation. One unit pays for a term, for a value that is compared, copied or written, and for some of its bytes.
#[derive(Debug, Clone)]
pub struct Fuel {
    left: u64,
    given: u64,
    limit: FuelLimit,
}

/// What bounds an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FuelLimit {
    Evaluation,
    /// All that the engine evaluates for one execution.
    Execution,
    /// What is evaluated while a request or another tenant waits: filters of triggers, tags, keys.
    Inline,
}

/// There is no fuel left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfFuel;

impl Fuel {
    /// For an evaluation that runs where it may take some time.
    pub fn evaluation() -> Self {
        Self { left: EVALUATION_FUEL, given: EVALUATION_FUEL, limit: FuelLimit::Evaluation }
    }

    /// For an evaluation that runs beside requests.
    pub fn inline() -> Self {
        Self { left: limits::INLINE_FUEL, given: limits::INLINE_FUEL, limit: FuelLimit::Inline }
    }

    /// For the next evaluation of an execution, which has used so much already.
    pub fn of_execution(used: u64) -> Self {
        match EXECUTION_FUEL.saturating_sub(used) {
            left if left < EVALUATION_FUEL => Self { left, given: left, limit: FuelLimit::Execution },
            _ => Self::evaluation(),
        }
    }

    pub fn used(&self) -> u64 {
        self.given - self.left
    }

    /// Uses so many units. Once it is empty it stays so.
    pub fn spend(&mut self, units: usize) -> Result<(), OutOfFuel> {
        match u64::try_from(units).ok().and_then(|units| self.left.checked_sub(units)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(OutOfFuel)
            }
        }
    }

    /// Pays for a text that is compared or copied.
    pub fn spend_text(&mut self, bytes: usize) -> Result<(), OutOfFuel> {
        self.spend(1 + bytes / BYTES_COPIED)
    }

    /// Pays for bytes that were written as JSON.
    pub fn spend_written(&mut self, bytes: usize) -> Result<(), OutOfFuel> {
        self.spend(1 + bytes / BYTES_WRITTEN)
    }

    /// Pays for a value that is copied or was made, with all that it holds.
    pub fn spend_value(&mut self, value: &Value) -> Result<(), OutOfFuel> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.spend(1),
            Value::String(text) => self.spend_text(text.len()),
            Value::Array(items) => {
                self.spend(1)?;
                items.iter().try_for_each(|item| self.spend_value(item))
            }
            Value::Object(fields) => {
                self.spend(1)?;
                fields.iter().try_for_each(|(name, field)| {
                    self.spend_text(name.len())?;
                    self.spend_value(field)
                })
            }
        }
    }

    /// The failure of an evaluation that needs more.
    pub fn fault(&self) -> Fault {
        let (limit, what) = match self.limit {
            FuelLimit::Evaluation => (EVALUATION_FUEL, "an expression costs more to evaluate than"),
            FuelLimit::Execution => (
                EXECUTION_FUEL,
                "the conditions, switches and lists of this execution cost more to evaluate together than",
            ),
            FuelLimit::Inline => (limits::INLINE_FUEL, "a filter, tag or key costs more to evaluate than"),
        };
        let text = format!(
            "{what} {limit} units, one for each term and each value compared or copied; compare a length or an id instead of \
             whole lists, use fewer terms, or compute it in a step of its own"
        );
        Fault::new(Code::ExprTooCostly, text).with("limit", limit)
    }
}

/// What an evaluation may cost at most, known before it is done: what its terms cost, and what depends on the size of the data.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvaluationCost {
    /// Terms and literals.
    terms: u64,
    /// Values that are compared with each other or copied whole.
    wholes: u64,
    /// Texts that are put together.
    texts: u64,
}

impl EvaluationCost {
    pub fn add_terms(&mut self, count: usize) {
        self.terms = self.terms.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }

    /// A reference, without what is done with its value.
    pub fn add_reference(&mut self, reference: &Reference) {
        // Itself, each part of its path, and a small value that is made for it: an index, the id of the execution.
        self.add_terms(reference.path.len() + 16);
        let is_made = match &reference.root {
            Root::StepError(_) => true,
            Root::Local(name) => matches!(&**name, "failure" | "input"),
            Root::Step(_) | Root::Variable(_) | Root::Env(_) | Root::Secret(_) => false,
        };
        if is_made {
            self.add_whole();
        }
    }

    pub fn add_literal(&mut self, value: &Value) {
        let mut fuel = Fuel::evaluation();
        // A literal of a definition that costs more than an evaluation may counts as much as that.
        let _ = fuel.spend_value(value);
        self.terms = self.terms.saturating_add(fuel.used());
    }

    pub fn add_whole(&mut self) {
        self.wholes += 1;
    }

    pub fn add_text(&mut self) {
        self.texts += 1;
    }

    /// Whether it depends on the size of the data.
    pub fn is_sized(&self) -> bool {
        self.wholes > 0 || self.texts > 0
    }

    /// The most units that it takes over data of this size.
    pub fn bound(&self, data_bytes: usize) -> u64 {
        let bytes = u64::try_from(data_bytes).unwrap_or(u64::MAX);
        // The smallest value in a list takes two bytes, with its comma.
        let whole = (bytes / 2).saturating_add(1).min(EVALUATION_FUEL);
        let written = u64::try_from(limits::EXPANSION_BYTES / BYTES_WRITTEN).unwrap_or(u64::MAX);
        let text = (bytes / 2).saturating_add(1).min(written);
        let wholes = self.wholes.saturating_mul(whole);
        self.terms.saturating_add(wholes).saturating_add(self.texts.saturating_mul(text)).min(EVALUATION_FUEL)
    }
}
