//! Conditions: expressions and JSON literals, compared and joined by `!`, `&&`, `||` and parentheses.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use orchestr8_contract::json::kind;
use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::equality::{is_equal_within, order};
use super::look_up::look_up;
use super::reader::{self, Mistake};
use super::reference::Reference;
use super::text::{self, Piece};
use super::{EvaluationCost, Fuel, Scope};
use crate::definition::{Place, Problem};
use crate::limits;

/// Parsed once, tested as often as needed. Clones share it.
#[derive(Debug, Clone)]
pub struct Condition(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    source: String,
    place: String,
    references: Vec<Reference>,
    node: Node,
    cost: EvaluationCost,
}

#[derive(Debug)]
enum Node {
    Constant(Value),
    Reference(usize),
    /// A quoted text with expressions in it.
    Text(Vec<Piece>),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Compare(Box<(Node, Comparison, Node)>),
}

#[derive(Debug, Clone, Copy)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Longer ones first, so that `<=` is not read as `<`.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Condition {
    /// Reads a condition. What is wrong is added to the problems; such a condition must not be used.
    pub fn parse(text: &str, at: &Place<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut parser = Parser { text, at: 0, references: Vec::new() };
        let node = parser.whole().unwrap_or_else(|mistake| {
            problems.push(Problem::new(at, Code::ExprInvalidSyntax, mistake.message, mistake.hint));
            Node::Constant(Value::Null)
        });
        let references = parser.references;
        let mut cost = EvaluationCost::default();
        add_cost(&node, &references, &mut cost);
        Self(Arc::new(Parsed { source: text.to_owned(), place: at.to_string(), references, node, cost }))
    }

    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.references.iter()
    }

    /// The references with the JSON path of the condition.
    pub fn located(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.0.references.iter().map(|reference| (self.0.place.as_str(), reference))
    }

    /// Whether it holds. The right side of `&&` and `||` is only looked at when it matters.
    pub fn test(&self, scope: &dyn Scope, fuel: &mut Fuel) -> Result<bool, Fault> {
        self.0.test(&self.0.node, scope, fuel)
    }

    /// What testing it costs at most.
    pub fn cost(&self) -> &EvaluationCost {
        &self.0.cost
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.0.source
    }
}

impl Parsed {
    fn test(&self, node: &Node, scope: &dyn Scope, fuel: &mut Fuel) -> Result<bool, Fault> {
        Ok(is_truthy(&*self.value(node, scope, fuel)?))
    }

    fn value<'a>(
        &'a self,
        node: &'a Node,
        scope: &'a dyn Scope,
        fuel: &mut Fuel,
    ) -> Result<Cow<'a, Value>, Fault> {
        fuel.spend(1).map_err(|_| fuel.fault())?;
        let holds = match node {
            Node::Constant(value) => return Ok(Cow::Borrowed(value)),
            Node::Reference(number) => {
                return match self.references.get(*number) {
                    Some(reference) => look_up(reference, scope, fuel),
                    None => Ok(Cow::Owned(Value::Null)),
                };
            }
            Node::Text(pieces) => {
                let text = text::join(pieces, &self.references, scope, fuel)?;
                return Ok(Cow::Owned(Value::String(text)));
            }
            Node::Not(inner) => !self.test(inner, scope, fuel)?,
            Node::All(nodes) => {
                let mut all = true;
                for node in nodes {
                    all = self.test(node, scope, fuel)?;
                    if !all {
                        break;
                    }
                }
                all
            }
            Node::Any(nodes) => {
                let mut any = false;
                for node in nodes {
                    any = self.test(node, scope, fuel)?;
                    if any {
                        break;
                    }
                }
                any
            }
            Node::Compare(sides) => {
                let (left, comparison, right) = &**sides;
                let (left, right) = (self.value(left, scope, fuel)?, self.value(right, scope, fuel)?);
                self.compare(&left, *comparison, &right, fuel)?
            }
        };
        Ok(Cow::Owned(Value::Bool(holds)))
    }

    fn compare(
        &self,
        left: &Value,
        comparison: Comparison,
        right: &Value,
        fuel: &mut Fuel,
    ) -> Result<bool, Fault> {
        let mut is_equal = || is_equal_within(left, right, fuel).map_err(|_| fuel.fault());
        let holds: fn(Ordering) -> bool = match comparison {
            Comparison::Equal => return is_equal(),
            Comparison::NotEqual => return is_equal().map(|equal| !equal),
            Comparison::Less => Ordering::is_lt,
            Comparison::AtMost => Ordering::is_le,
            Comparison::Greater => Ordering::is_gt,
            Comparison::AtLeast => Ordering::is_ge,
        };
        let order = match (left, right) {
            (Value::Number(a), Value::Number(b)) => order(a, b),
            (Value::String(a), Value::String(b)) => {
                fuel.spend_text(a.len().min(b.len())).map_err(|_| fuel.fault())?;
                Some(a.cmp(b))
            }
            _ => None,
        };
        order.map(holds).ok_or_else(|| {
            let message = format!(
                "{} and {} have no order in the condition {}; only two numbers or two texts have one",
                kind(left),
                kind(right),
                self.source
            );
            Fault::new(Code::InvalidArgument, message).with("condition", self.source.as_str())
        })
    }
}

/// Everything but null, false, 0, and what is empty.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// What a condition costs at most. Only two values that are both looked up cost what the data is large.
fn add_cost(node: &Node, references: &[Reference], cost: &mut EvaluationCost) {
    cost.add_terms(1);
    match node {
        Node::Constant(value) => cost.add_literal(value),
        Node::Reference(number) => {
            references.get(*number).into_iter().for_each(|one| cost.add_reference(one))
        }
        Node::Text(pieces) => text::add_cost(pieces, references, cost),
        Node::Not(inner) => add_cost(inner, references, cost),
        Node::All(nodes) | Node::Any(nodes) => {
            nodes.iter().for_each(|node| add_cost(node, references, cost));
        }
        Node::Compare(sides) => {
            let (left, _, right) = &**sides;
            add_cost(left, references, cost);
            add_cost(right, references, cost);
            if !matches!(left, Node::Constant(_)) && !matches!(right, Node::Constant(_)) {
                cost.add_whole();
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    references: Vec<Reference>,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Result<Node, Mistake> {
        let node = self.any(limits::CONDITION_DEPTH)?;
        self.skip_space();
        if self.rest().is_empty() { Ok(node) } else { Err(self.unexpected()) }
    }

    /// `depth` is how many more parentheses and `!` may follow each other inward.
    fn any(&mut self, depth: usize) -> Result<Node, Mistake> {
        let mut nodes = vec![self.all(depth)?];
        while self.take("||") {
            nodes.push(self.all(depth)?);
        }
        Ok(single(nodes, Node::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Node, Mistake> {
        let mut nodes = vec![self.comparison(depth)?];
        while self.take("&&") {
            nodes.push(self.comparison(depth)?);
        }
        Ok(single(nodes, Node::All))
    }

    fn comparison(&mut self, depth: usize) -> Result<Node, Mistake> {
        let left = self.operand(depth)?;
        let Some(comparison) = self.comparison_sign() else { return Ok(left) };
        let right = self.operand(depth)?;
        if self.comparison_sign().is_some() {
            return Err(Mistake::new(
                "two comparisons follow each other",
                "Join them with && or ||, or use parentheses.",
            ));
        }
        Ok(Node::Compare(Box::new((left, comparison, right))))
    }

    fn comparison_sign(&mut self) -> Option<Comparison> {
        COMPARISONS.iter().find(|(sign, _)| self.take(sign)).map(|(_, comparison)| *comparison)
    }

    fn operand(&mut self, depth: usize) -> Result<Node, Mistake> {
        let Some(inner) = depth.checked_sub(1) else {
            return Err(Mistake::new(
                format!("the condition is nested deeper than {} levels", limits::CONDITION_DEPTH),
                "Split it over two steps.",
            ));
        };
        if self.take("!") {
            return Ok(Node::Not(Box::new(self.operand(inner)?)));
        }
        if self.take("(") {
            let node = self.any(inner)?;
            return if self.take(")") { Ok(node) } else { Err(self.unexpected()) };
        }
        if self.take("${") {
            let (reference, end) = reader::read(self.text, self.at)?;
            self.at = end;
            self.references.push(reference);
            return Ok(Node::Reference(self.references.len() - 1));
        }
        match self.rest().bytes().next() {
            Some(b'"' | b'\'') => self.quoted(),
            Some(b'{' | b'[') => {
                let (value, end) = reader::read_nested(self.text, self.at)?;
                self.at = end;
                Ok(Node::Constant(value))
            }
            Some(_) | None => self.word(),
        }
    }

    fn quoted(&mut self) -> Result<Node, Mistake> {
        let (text, end) = reader::read_quoted(self.text, self.at)?;
        self.at = end;
        let mut mistake = None;
        let pieces = text::cut(&text, &mut self.references, |found| mistake = Some(found));
        match (mistake, pieces.as_slice()) {
            (Some(mistake), _) => Err(mistake),
            (None, []) => Ok(Node::Constant(Value::from(""))),
            (None, [Piece::Plain(plain)]) => Ok(Node::Constant(Value::from(plain.as_str()))),
            (None, _) => Ok(Node::Text(pieces)),
        }
    }

    /// A number, true, false or null.
    fn word(&mut self) -> Result<Node, Mistake> {
        let rest = self.rest();
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'_'))
            .count();
        let word = &rest[..length];
        if word.is_empty() {
            return Err(self.unexpected());
        }
        let value = serde_json::from_str(word).map_err(|_| {
            Mistake::new(
                format!("{word} is neither an expression nor a JSON literal"),
                format!("Write \"{word}\" for the text, or ${{...}} for an expression."),
            )
        })?;
        self.at += length;
        Ok(Node::Constant(value))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().bytes().take_while(u8::is_ascii_whitespace).count();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn unexpected(&self) -> Mistake {
        let message = match self.rest().chars().next() {
            Some(letter) => format!("{letter:?} is not expected in a condition"),
            None => String::from("the condition ends too early"),
        };
        Mistake::new(
            message,
            "Write ${...} alone, or compare with == != < <= > >= and join with && || ! and parentheses.",
        )
    }
}

fn single(mut nodes: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match (nodes.len(), nodes.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            nodes.push(last);
            join(nodes)
        }
        (_, None) => Node::Constant(Value::Null),
    }
}
