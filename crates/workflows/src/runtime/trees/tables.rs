//! Statements over trees of executions.

use orchestr8_kernel::ports::store::Statement;

/// The root and the level of an execution that another one started; null for roots and for those of earlier versions. The second
/// index is that of a start: it has only those that have not ended.
pub const MIGRATION: (&str, &str) = (
    "workflows-trees",
    "ALTER TABLE wf_executions ADD COLUMN tree_root INTEGER;
     ALTER TABLE wf_executions ADD COLUMN tree_level INTEGER;
     CREATE INDEX wf_executions_tree ON wf_executions (tree_root) WHERE tree_root IS NOT NULL;
     CREATE INDEX wf_executions_tree_live ON wf_executions (num) WHERE tree_root IS NOT NULL AND ended_ms IS NULL;",
);

/// Children that have not ended. Columns: number, number of the root, level.
pub fn live_children() -> Statement {
    Statement::new(
        "SELECT num, tree_root, tree_level FROM wf_executions WHERE tree_root IS NOT NULL AND ended_ms IS NULL
         ORDER BY num",
        Vec::new(),
    )
}

/// Column: how many executions a root has started, with those that they started, ended ones included.
pub fn tree_size(root: i64) -> Statement {
    Statement::new("SELECT COUNT(*) FROM wf_executions WHERE tree_root = ?1", vec![root.into()])
}
