//! The statements over tags.

use orchestr8_kernel::ports::store::{Cell, Statement};

use super::ExecutionTags;
use crate::tables::{EXECUTION, Wanted};

/// The index: the executions with a tag lie together, in their order. A tag goes with its execution; which tags it had is in the
/// execution's own row, so that no second index by execution is needed.
pub const MIGRATION: (&str, &str) = (
    "workflows-tags",
    "CREATE TABLE wf_tags (
        tenant TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, execution INTEGER NOT NULL,
        PRIMARY KEY (tenant, key, value, execution)) STRICT, WITHOUT ROWID;
     CREATE TRIGGER wf_executions_tags AFTER DELETE ON wf_executions
        WHEN json_type(old.given, '$.tags') = 'object'
        BEGIN DELETE FROM wf_tags WHERE execution = old.num AND (tenant, key, value) IN
            (SELECT old.tenant, tag.key, tag.value FROM json_each(old.given, '$.tags') tag); END;",
);

/// One statement for all tags of an execution.
pub fn insert(tenant: &str, execution: i64, tags: String) -> Statement {
    Statement::new(
        "INSERT INTO wf_tags (tenant, key, value, execution) SELECT ?1, key, value, ?2 FROM json_each(?3)",
        vec![tenant.into(), execution.into(), tags.into()],
    )
}

/// Removes an execution from the index.
pub fn delete(tenant: &str, execution: i64) -> Statement {
    Statement::new(
        "DELETE FROM wf_tags WHERE tenant = ?1 AND execution = ?2 AND (key, value) IN
            (SELECT tag.key, tag.value FROM wf_executions e, json_each(e.given, '$.tags') tag
             WHERE e.num = ?2 AND e.tenant = ?1)",
        vec![tenant.into(), execution.into()],
    )
}

/// The filter whose index a search for tags walks along; the others are looked up for each execution that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchIndex {
    /// That of the tag at this place among those that are wanted.
    Tag(usize),
    Status,
    Workflow,
}

/// The indexes that can serve a search.
pub fn candidates(wanted: &Wanted<'_>) -> Vec<SearchIndex> {
    let tags = (0..wanted.tags.iter().count()).map(SearchIndex::Tag);
    let status = wanted.status.map(|_| SearchIndex::Status);
    tags.chain(status).chain(wanted.workflow.map(|_| SearchIndex::Workflow)).collect()
}

/// Column: how many executions an index has before the cursor, counted up to a limit.
pub fn count_up_to(wanted: &Wanted<'_>, index: SearchIndex, limit: i64) -> Statement {
    let mut cells: Vec<Cell> = vec![wanted.tenant.into(), wanted.before.into(), limit.into()];
    let sql = match index {
        SearchIndex::Tag(place) => {
            let (key, value) = wanted.tags.iter().nth(place).unwrap_or_default();
            cells.extend([key.into(), value.into()]);
            "SELECT COUNT(*) FROM (SELECT 1 FROM wf_tags
             WHERE tenant = ?1 AND key = ?4 AND value = ?5 AND execution < ?2 LIMIT ?3)"
        }
        SearchIndex::Status => {
            cells.push(wanted.status.into());
            "SELECT COUNT(*) FROM (SELECT 1 FROM wf_executions
             WHERE tenant = ?1 AND status = ?4 AND num < ?2 LIMIT ?3)"
        }
        SearchIndex::Workflow => {
            cells.push(wanted.workflow.into());
            "SELECT COUNT(*) FROM (SELECT 1 FROM wf_executions
             WHERE tenant = ?1 AND workflow = ?4 AND num < ?2 LIMIT ?3)"
        }
    };
    Statement::new(sql, cells)
}

/// Executions with all wanted tags, newest first, along one index. Columns of `EXECUTION`.
pub fn executions_page(wanted: &Wanted<'_>, along: SearchIndex) -> Statement {
    let mut search = Search { sql: String::new(), cells: vec![wanted.tenant.into(), wanted.before.into()] };
    match along {
        SearchIndex::Tag(place) => search.along_tag(wanted.tags, place),
        SearchIndex::Status => search.along_index("wf_executions_status"),
        SearchIndex::Workflow => search.along_index("wf_executions_workflow"),
    }
    let driving = match along {
        SearchIndex::Tag(place) => Some(place),
        SearchIndex::Status | SearchIndex::Workflow => None,
    };
    for (place, (key, value)) in wanted.tags.iter().enumerate() {
        if Some(place) != driving {
            search.has_tag(key, value);
        }
    }
    search.narrow("id >=", wanted.id_prefix.map(Cell::from));
    search.narrow("id <", wanted.id_end());
    search.narrow("status =", wanted.status.map(Cell::from));
    search.narrow("workflow =", wanted.workflow.map(Cell::from));
    search.narrow("correlation =", wanted.correlation.map(Cell::from));
    search.narrow("created_ms >=", wanted.since_ms.map(Cell::from));
    search.narrow("created_ms <=", wanted.until_ms.map(Cell::from));
    let order = if driving.is_some() { "execution" } else { "num" };
    let limit = search.cell(wanted.limit.into());
    search.sql.push_str(&format!(" ORDER BY {order} DESC LIMIT {limit}"));
    Statement { sql: search.sql.into(), cells: search.cells }
}

/// A statement in the making. Its first cells are the tenant and the cursor.
struct Search {
    sql: String,
    cells: Vec<Cell>,
}

impl Search {
    fn cell(&mut self, cell: Cell) -> String {
        self.cells.push(cell);
        format!("?{}", self.cells.len())
    }

    /// The order of a cross join is the order in which it is carried out.
    fn along_tag(&mut self, tags: &ExecutionTags, place: usize) {
        let (key, value) = tags.iter().nth(place).unwrap_or_default();
        let (key, value) = (self.cell(key.into()), self.cell(value.into()));
        self.sql = format!(
            "SELECT {EXECUTION} FROM (SELECT execution FROM wf_tags
                WHERE tenant = ?1 AND key = {key} AND value = {value} AND execution < ?2)
             CROSS JOIN wf_executions ON num = execution WHERE tenant = ?1"
        );
    }

    fn along_index(&mut self, index: &str) {
        self.sql = format!(
            "SELECT {EXECUTION} FROM wf_executions INDEXED BY {index} WHERE tenant = ?1 AND num < ?2"
        );
    }

    fn has_tag(&mut self, key: &str, value: &str) {
        let (key, value) = (self.cell(key.into()), self.cell(value.into()));
        self.sql.push_str(&format!(
            " AND EXISTS (SELECT 1 FROM wf_tags tag
                WHERE tag.tenant = ?1 AND tag.key = {key} AND tag.value = {value} AND tag.execution = num)"
        ));
    }

    fn narrow(&mut self, column: &str, cell: Option<Cell>) {
        if let Some(cell) = cell {
            let place = self.cell(cell);
            self.sql.push_str(&format!(" AND {column} {place}"));
        }
    }
}
