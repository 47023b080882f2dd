//! The tree of a session in memory, and what of it the model gets to see.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::Error;
use orchestr8_models::{Message, User};

use crate::hub::Hub;
use crate::limits;
use crate::record::{Body, Entry, Header, Place};
use crate::session::Session;
use crate::tables::{self, Whose};

/// The entries of a session from a place on: all of them, unless nothing before that place matters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    from: Place,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub label: Option<String>,
    pub entry: Entry,
}

impl Tree {
    /// What is true of a session, and its tree. The header is taken first: a leaf is in the store before it is in a header, so
    /// one that is known already stands in every tree that is read from then on.
    pub(crate) async fn of(hub: &Hub, session: &Session) -> Result<(Header, Self), Fault> {
        let header = session.header();
        let tree = Self::load(&*hub.kernel().ports().store, session.whose()).await?;
        Ok((header, tree))
    }

    /// Only for `of`: a header that is read after the tree may be ahead of it.
    async fn load(store: &dyn Store, whose: Whose<'_>) -> Result<Self, Fault> {
        let mut tree = Self::default();
        let mut page = limits::ENTRY_PAGE;
        loop {
            let rows = match store.query(tables::entries_from(whose, tree.next(), page)).await {
                Ok(rows) => rows,
                // Too much for one answer: entries may be large.
                Err(Error::Refused(_)) if page > 1 => {
                    page = (page / 8).max(1);
                    continue;
                }
                Err(error) => return Err(store_fault(error)),
            };
            let last = i64::try_from(rows.len()).unwrap_or(i64::MAX) < page;
            for row in rows {
                let place = row.int(0).map_err(store_fault)?;
                if u64::try_from(place).ok() != Some(tree.next()) {
                    return Err(damaged(whose, "an entry is missing"));
                }
                let entry = serde_json::from_str(row.text(2).map_err(store_fault)?)
                    .map_err(|error| damaged(whose, "an entry cannot be read").because(error))?;
                let label = row.optional_text(1).map_err(store_fault)?.map(str::to_owned);
                tree.push(Node { label, entry });
            }
            if last {
                return Ok(tree);
            }
        }
    }

    /// The tree of a conversation in which nothing has been said, whatever else its session holds.
    pub fn beginning(next: Place) -> Self {
        Self { from: next, nodes: Vec::new() }
    }

    /// The place the next entry gets.
    pub fn next(&self) -> Place {
        self.from.saturating_add(Place::try_from(self.nodes.len()).unwrap_or(Place::MAX))
    }

    pub fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    pub fn label(&mut self, place: Place, label: Option<String>) {
        if let Some(node) = self.index(place).and_then(|index| self.nodes.get_mut(index)) {
            node.label = label;
        }
    }

    pub fn get(&self, place: Place) -> Option<&Node> {
        self.nodes.get(self.index(place)?)
    }

    fn index(&self, place: Place) -> Option<usize> {
        usize::try_from(place.checked_sub(self.from)?).ok()
    }

    pub fn nodes(&self) -> impl Iterator<Item = (Place, &Node)> {
        (self.from..).zip(&self.nodes)
    }

    /// From the root to an entry, both included. A parent stands before its children, so this ends.
    pub fn path(&self, leaf: Option<Place>) -> Vec<Place> {
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(place) = next {
            let Some(node) = self.get(place) else { break };
            path.push(place);
            next = node.entry.parent.filter(|parent| *parent < place);
        }
        path.reverse();
        path
    }

    /// The messages from the root to an entry.
    pub fn messages(&self, leaf: Option<Place>) -> Vec<&Message> {
        self.path(leaf)
            .into_iter()
            .filter_map(|place| self.get(place).and_then(|node| node.entry.body.message()))
            .collect()
    }

    /// What the model is told of the way to an entry: summaries instead of what they sum up.
    pub fn context(&self, leaf: Option<Place>) -> Vec<Message> {
        let path = self.path(leaf);
        let compaction = path.iter().rev().find_map(|place| match &self.get(*place)?.entry.body {
            Body::Compaction { summary, first_kept, .. } => Some((*place, summary, *first_kept)),
            Body::Message { .. }
            | Body::ModelChange { .. }
            | Body::ThinkingLevelChange { .. }
            | Body::BranchSummary { .. } => None,
        });
        let mut context = Vec::new();
        let mut first_kept = 0;
        if let Some((place, summary, kept)) = compaction {
            let at_ms = self.get(place).map_or(0, |node| node.entry.at_ms);
            context.push(told(format!("The conversation so far, in short:\n\n{summary}"), at_ms));
            first_kept = kept;
        }
        for place in path.into_iter().filter(|place| *place >= first_kept) {
            let Some(node) = self.get(place) else { continue };
            match &node.entry.body {
                Body::Message { message } => context.push(message.clone()),
                Body::BranchSummary { summary, .. } => context.push(told(
                    format!("What was tried on another branch, in short:\n\n{summary}"),
                    node.entry.at_ms,
                )),
                Body::ModelChange { .. } | Body::ThinkingLevelChange { .. } | Body::Compaction { .. } => {}
            }
        }
        context
    }
}

fn told(text: String, at_ms: i64) -> Message {
    Message::User(User::text(text, at_ms))
}

fn damaged(whose: Whose<'_>, what: &str) -> Fault {
    Fault::new(Code::StoreCorrupt, format!("session {}: {what}", whose.session))
        .with("sessionId", whose.session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(bodies: Vec<(Option<Place>, Body)>) -> Tree {
        Tree {
            from: 0,
            nodes: bodies
                .into_iter()
                .map(|(parent, body)| Node { label: None, entry: Entry { parent, at_ms: 1, body } })
                .collect(),
        }
    }

    fn user(text: &str) -> Body {
        Body::Message { message: Message::User(User::text(text, 1)) }
    }

    fn texts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(Message::text).collect()
    }

    #[test]
    fn a_path_leads_from_the_root_to_the_leaf_and_past_no_other_branch() {
        let tree = tree(vec![
            (None, user("a")),
            (Some(0), user("b")),
            (Some(0), user("c")),
            (Some(2), user("d")),
            (None, user("other root")),
        ]);
        assert_eq!(tree.path(Some(3)), [0, 2, 3]);
        assert_eq!(tree.path(Some(4)), [4]);
        assert_eq!(tree.path(None), [0; 0]);
        assert_eq!(texts(&tree.context(Some(3))), ["a", "c", "d"]);
    }

    #[test]
    fn a_compaction_stands_for_what_came_before_what_it_keeps() {
        let compaction = Body::Compaction { summary: "short".into(), first_kept: 1, tokens_before: 9 };
        let tree =
            tree(vec![(None, user("a")), (Some(0), user("b")), (Some(1), compaction), (Some(2), user("c"))]);
        let context = texts(&tree.context(Some(3)));
        assert_eq!(context.len(), 3);
        assert!(context[0].contains("short"));
        assert_eq!(context[1..], ["b", "c"]);
        assert_eq!(tree.messages(Some(3)).len(), 3, "people still see everything");
    }
}
