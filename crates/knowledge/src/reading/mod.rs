//! Reads documents as their tenant may see them: what is hidden or another's does not exist.

pub mod tables;

use std::collections::{HashMap, HashSet};

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::store::{Row, Statement};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hub::Hub;
use crate::limits;
use crate::record::{Document, ROOT, read};
use crate::tables::Whose;

impl Hub {
    pub(crate) async fn rows(&self, statement: Statement) -> Result<Vec<Row>, Fault> {
        self.store().query(statement).await.map_err(read)
    }

    pub(crate) async fn row(&self, statement: Statement) -> Result<Option<Row>, Fault> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// The document, hidden or not.
    pub(crate) async fn any_document(&self, whose: Whose<'_>) -> Result<Option<Document>, Fault> {
        let row = self.row(tables::document(whose)).await?;
        row.map(|row| Document::of(&row)).transpose().map_err(read)
    }

    /// The document, or it does not exist for this tenant.
    pub(crate) async fn document(&self, whose: Whose<'_>) -> Result<Document, Fault> {
        let found = self.any_document(whose).await?;
        found.filter(Document::visible).ok_or_else(|| missing("document", whose.id))
    }

    pub(crate) async fn body(&self, whose: Whose<'_>, content_revision: i64) -> Result<String, Fault> {
        let row = self.row(tables::body(whose, content_revision)).await?;
        let row = row.ok_or_else(|| Fault::new(Code::StoreCorrupt, "a document has lost its text"))?;
        Ok(row.text(0).map_err(read)?.to_owned())
    }

    pub(crate) async fn body_start(
        &self,
        whose: Whose<'_>,
        content_revision: i64,
        chars: usize,
    ) -> Result<String, Fault> {
        let row = self.row(tables::body_start(whose, content_revision, crate::write::number(chars))).await?;
        let row = row.ok_or_else(|| Fault::new(Code::StoreCorrupt, "a document has lost its text"))?;
        Ok(row.text(0).map_err(read)?.to_owned())
    }

    /// The ids and titles of a parent and of all above it, the nearest first; nothing for the root. A parent that is not
    /// there is NOT_FOUND.
    pub(crate) async fn lineage(&self, tenant: &str, parent: &str) -> Result<Vec<(String, String)>, Fault> {
        if parent == ROOT {
            return Ok(Vec::new());
        }
        let whose = Whose { tenant, id: parent };
        let rows = self.rows(tables::ancestors(whose, crate::write::number(limits::DEPTH))).await?;
        let hidden = match rows.first() {
            Some(first) => first.optional_text(3).map_err(read)?.is_some(),
            None => true,
        };
        if hidden {
            return Err(missing("parent", parent));
        }
        let pair = |row: &Row| Ok((row.text(0)?.to_owned(), row.text(2)?.to_owned()));
        rows.iter().map(pair).collect::<Result<_, _>>().map_err(read)
    }

    /// The titles from the top down to a document: `/Handbook/Setup`.
    pub(crate) async fn path(&self, tenant: &str, document: &Document) -> Result<String, Fault> {
        let above = self.lineage(tenant, &document.parent).await?;
        let titles = above.iter().rev().map(|(_, title)| title.as_str()).chain([document.title.as_str()]);
        Ok(titles.map(segment).collect())
    }

    /// The same for many at once, by id.
    pub(crate) async fn paths(
        &self,
        tenant: &str,
        documents: &[&Document],
    ) -> Result<HashMap<String, String>, Fault> {
        let parents: HashSet<&str> = documents.iter().map(|document| document.parent.as_str()).collect();
        let rows = self.rows(tables::lineages(tenant, json!(parents).to_string())).await?;
        let mut above: HashMap<&str, (&str, &str)> = HashMap::with_capacity(rows.len());
        for row in &rows {
            above
                .insert(row.text(0).map_err(read)?, (row.text(1).map_err(read)?, row.text(2).map_err(read)?));
        }
        let path = |document: &&Document| {
            let (mut titles, mut at) = (vec![document.title.as_str()], document.parent.as_str());
            // A tree has a bottom; what is deeper is none.
            while let Some((parent, title)) = above.get(at).filter(|_| titles.len() <= limits::DEPTH) {
                titles.push(title);
                at = parent;
            }
            (document.id.clone(), titles.into_iter().rev().map(segment).collect())
        };
        Ok(documents.iter().map(path).collect())
    }
}

fn segment(title: &str) -> String {
    format!("/{}", title.replace('/', "%2F"))
}

/// What is not there, or not for this tenant to see.
pub fn missing(what: &str, id: &str) -> Fault {
    let shown: String = id.chars().take(100).collect();
    Fault::new(Code::NotFound, format!("there is no {what} `{shown}`")).with("id", shown)
}

/// Ids are compared in one spelling.
pub fn plain_id(id: &str) -> String {
    Uuid::try_parse(id).map_or_else(|_| id.to_owned(), |id| id.hyphenated().to_string())
}

/// A place in a list, as a text that says nothing to whoever keeps it.
pub fn cursor(first: &str, second: &str) -> String {
    json!([first, second]).to_string()
}

pub fn read_cursor(text: Option<&str>) -> Result<(String, String), Fault> {
    let Some(text) = text else { return Ok((String::new(), String::new())) };
    let wrong = || Fault::invalid("`cursor` is not one that was given out").with("path", "cursor");
    let value: Value = serde_json::from_str(text).map_err(|_| wrong())?;
    match (value.get(0).and_then(Value::as_str), value.get(1).and_then(Value::as_str)) {
        (Some(first), Some(second)) => Ok((first.to_owned(), second.to_owned())),
        _ => Err(wrong()),
    }
}
