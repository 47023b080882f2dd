//! Any JSON value whose texts may hold expressions.

use std::sync::Arc;

use orchestr8_contract::limits::JSON_DEPTH;
use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::look_up::{look_up, too_large};
use super::reference::Reference;
use super::text::{self, Piece};
use super::{EvaluationCost, Fuel, OutOfFuel, Scope};
use crate::definition::problems::LISTED;
use crate::definition::{Place, Problem};
use crate::limits;

/// Parsed once, resolved as often as needed. Clones share it.
#[derive(Debug, Clone)]
pub struct Template(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    source: Value,
    node: Node,
    references: Vec<Reference>,
    /// Where each reference is written.
    places: Vec<Arc<str>>,
    cost: EvaluationCost,
}

#[derive(Debug)]
enum Node {
    /// Nothing to look up in it. Copying it takes so many units.
    Constant(Value, usize),
    /// A text that is one expression: it keeps the type of what it finds.
    Whole(usize),
    Text(Vec<Piece>),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Template {
    /// Reads a value. What is wrong is added to the problems; such a template must not be used.
    pub fn parse(value: &Value, at: &Place<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut parser = Parser { references: Vec::new(), places: Vec::new(), problems };
        let node = parser.node(value, at, JSON_DEPTH);
        let Parser { references, places, .. } = parser;
        let mut cost = EvaluationCost::default();
        add_cost(&node, &references, &mut cost);
        Self(Arc::new(Parsed { source: value.clone(), node, references, places, cost }))
    }

    /// A value in which nothing is an expression, whatever it looks like.
    pub fn literal(value: Value) -> Self {
        let node = leaf(value.clone());
        let mut cost = EvaluationCost::default();
        add_cost(&node, &[], &mut cost);
        Self(Arc::new(Parsed { source: value, node, references: Vec::new(), places: Vec::new(), cost }))
    }

    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.references.iter()
    }

    /// The references with the JSON path of the text each is written in.
    pub fn located(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.0.places.iter().map(|place| &**place).zip(&self.0.references)
    }

    /// The value with every expression replaced by what it finds.
    pub fn resolve(&self, scope: &dyn Scope, fuel: &mut Fuel) -> Result<Value, Fault> {
        let mut room = limits::RESOLVED_BYTES;
        self.0.resolve(&self.0.node, scope, &mut room, fuel)
    }

    /// What resolving it costs at most.
    pub fn cost(&self) -> &EvaluationCost {
        &self.0.cost
    }

    /// What it always resolves to, if nothing in it is looked up.
    pub fn constant(&self) -> Option<&Value> {
        match &self.0.node {
            Node::Constant(value, _) => Some(value),
            Node::Whole(_) | Node::Text(_) | Node::List(_) | Node::Object(_) => None,
        }
    }

    /// As it was written.
    pub fn source(&self) -> &Value {
        &self.0.source
    }

    pub fn is_literal(&self) -> bool {
        self.0.references.is_empty()
    }
}

impl Parsed {
    fn resolve(
        &self,
        node: &Node,
        scope: &dyn Scope,
        room: &mut usize,
        fuel: &mut Fuel,
    ) -> Result<Value, Fault> {
        match node {
            Node::Constant(value, units) => {
                fuel.spend(*units).map_err(|_| fuel.fault())?;
                Ok(value.clone())
            }
            Node::Whole(number) => match self.references.get(*number) {
                Some(reference) => whole(reference, scope, room, fuel),
                None => Ok(Value::Null),
            },
            Node::Text(pieces) => {
                let text = text::join(pieces, &self.references, scope, fuel)?;
                take(room, text.len())?;
                Ok(Value::String(text))
            }
            Node::List(items) => items.iter().map(|item| self.resolve(item, scope, room, fuel)).collect(),
            Node::Object(fields) => fields
                .iter()
                .map(|(name, field)| Ok((name.clone(), self.resolve(field, scope, room, fuel)?)))
                .collect::<Result<_, Fault>>()
                .map(Value::Object),
        }
    }
}

fn whole(
    reference: &Reference,
    scope: &dyn Scope,
    room: &mut usize,
    fuel: &mut Fuel,
) -> Result<Value, Fault> {
    let value = look_up(reference, scope, fuel)?;
    if let Value::String(text) = &*value
        && text.len() > limits::EXPANSION_BYTES
    {
        return Err(too_large().with("expression", reference.to_string()));
    }
    fuel.spend_value(&value).map_err(|_| fuel.fault())?;
    take(room, weight(&value))?;
    Ok(value.into_owned())
}

/// Uses up some of what a template may grow to.
fn take(room: &mut usize, bytes: usize) -> Result<(), Fault> {
    match room.checked_sub(bytes) {
        Some(left) => {
            *room = left;
            Ok(())
        }
        None => Err(Fault::new(
            Code::PayloadTooLarge,
            format!("the expressions grow beyond {} bytes together", limits::RESOLVED_BYTES),
        )
        .with("limit", limits::RESOLVED_BYTES)),
    }
}

/// About how many bytes a value takes as JSON.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| weight(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, field)| name.len() + 4 + weight(field)).sum::<usize>()
        }
    }
}

struct Parser<'p> {
    references: Vec<Reference>,
    places: Vec<Arc<str>>,
    problems: &'p mut Vec<Problem>,
}

impl Parser<'_> {
    /// `depth` is how much deeper it may go.
    fn node(&mut self, value: &Value, at: &Place<'_>, depth: usize) -> Node {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => leaf(value.clone()),
            Value::String(text) => self.text(text, at),
            Value::Array(_) | Value::Object(_) if depth == 0 => {
                self.problems.push(Problem::new(
                    at,
                    Code::InvalidWorkflow,
                    format!("it is nested deeper than {JSON_DEPTH} levels"),
                    "Flatten the value.",
                ));
                leaf(Value::Null)
            }
            Value::Array(items) => {
                let nodes = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.node(item, &at.item(index), depth - 1))
                    .collect();
                list(nodes)
            }
            Value::Object(fields) => {
                let nodes = fields
                    .iter()
                    .map(|(name, field)| (name.clone(), self.node(field, &at.field(name), depth - 1)))
                    .collect();
                object(nodes)
            }
        }
    }

    fn text(&mut self, text: &str, at: &Place<'_>) -> Node {
        if !text.contains("${") {
            return leaf(Value::from(text));
        }
        let first = self.references.len();
        let pieces = text::cut(text, &mut self.references, |mistake| {
            if self.problems.len() < LISTED {
                self.problems.push(Problem::new(at, Code::ExprInvalidSyntax, mistake.message, mistake.hint));
            }
        });
        if self.references.len() > first {
            let place: Arc<str> = at.to_string().into();
            self.places.resize(self.references.len(), place);
        }
        match pieces.as_slice() {
            [] => leaf(Value::from("")),
            [Piece::Plain(plain)] => leaf(Value::from(plain.as_str())),
            [Piece::Reference(number)] => Node::Whole(*number),
            _ => Node::Text(pieces),
        }
    }
}

/// A list without anything to look up is a constant as a whole.
fn list(nodes: Vec<Node>) -> Node {
    match units(&nodes) {
        Some(units) => Node::Constant(nodes.into_iter().map(constant).collect(), units),
        None => Node::List(nodes),
    }
}

fn object(nodes: Vec<(String, Node)>) -> Node {
    match units(nodes.iter().map(|(_, node)| node)) {
        Some(units) => {
            let names = nodes.len();
            let fields = nodes.into_iter().map(|(name, node)| (name, constant(node))).collect();
            Node::Constant(Value::Object(fields), units + names)
        }
        None => Node::Object(nodes),
    }
}

fn leaf(value: Value) -> Node {
    let mut fuel = Fuel::evaluation();
    // One that costs more than an evaluation may is refused when it is copied.
    let units = match fuel.spend_value(&value) {
        Ok(()) => usize::try_from(fuel.used()).unwrap_or(usize::MAX),
        Err(OutOfFuel) => usize::MAX,
    };
    Node::Constant(value, units)
}

/// What copying a list or object of these costs, if all of them are constants.
fn units<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Option<usize> {
    nodes.into_iter().try_fold(1_usize, |sum, node| match node {
        Node::Constant(_, units) => Some(sum.saturating_add(*units)),
        Node::Whole(_) | Node::Text(_) | Node::List(_) | Node::Object(_) => None,
    })
}

fn constant(node: Node) -> Value {
    match node {
        Node::Constant(value, _) => value,
        Node::Whole(_) | Node::Text(_) | Node::List(_) | Node::Object(_) => Value::Null,
    }
}

fn add_cost(node: &Node, references: &[Reference], cost: &mut EvaluationCost) {
    match node {
        Node::Constant(_, units) => cost.add_terms(*units),
        Node::Whole(number) => {
            references.get(*number).into_iter().for_each(|one| cost.add_reference(one));
            cost.add_whole();
        }
        Node::Text(pieces) => text::add_cost(pieces, references, cost),
        Node::List(items) => items.iter().for_each(|item| add_cost(item, references, cost)),
        Node::Object(fields) => fields.iter().for_each(|(_, field)| add_cost(field, references, cost)),
    }
}
