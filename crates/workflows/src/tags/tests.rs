//! Tags are read within their limits, and searched along the index that the fewest executions are in.

use orchestr8_kernel::ports::store::{Batch, Statement};
use orchestr8_stores::Sqlite;
use orchestr8_testing::memory;
use serde_json::{Value, json};

use super::tables::{SearchIndex, candidates, executions_page};
use super::*;
use crate::tables::MIGRATIONS;

fn read(value: Value) -> Result<ExecutionTags, Fault> {
    ExecutionTags::read(Some(&value), "/tags")
}

#[test]
fn tags_hold_at_their_limits_and_are_refused_one_beyond() {
    let key = "k".repeat(TAG_KEY_CHARACTERS);
    let value = "v".repeat(TAG_VALUE_BYTES);
    assert!(read(json!({&key: &value})).is_ok());
    for wrong in [
        json!({format!("{key}k"): "v"}),
        json!({"": "v"}),
        json!({"a=b": "v"}),
        json!({"k": format!("{value}v")}),
        json!({"k": ""}),
        json!({"k": "a\nb"}),
        json!({"k": null}),
        json!(["k"]),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
    let many = |count: usize| (0..count).map(|at| (format!("k{at}"), json!("v"))).collect::<Map<_, _>>();
    assert!(read(Value::Object(many(TAGS))).is_ok());
    assert!(read(Value::Object(many(TAGS + 1))).is_err());
    let full = |prefix: &str| {
        read(Value::Object((0..TAGS).map(|at| (format!("{prefix}{at}"), json!("v"))).collect())).unwrap()
    };
    let sources = TagSources { inherited: full("a"), given: full("a") };
    assert!(resolve(None, sources, || unreachable!("nothing to look up")).is_ok());
    let sources = TagSources { inherited: full("a"), given: full("b") };
    assert!(resolve(None, sources, || unreachable!("nothing to look up")).is_err());
}

/// A hundred thousand executions of one tenant: all in production, every tenth of customer 7, few of customer 42, few failed.
const EXECUTIONS: i64 = 100_000;

async fn skewed() -> Sqlite {
    let store = memory(&[MIGRATIONS]);
    let mut batch = Batch::new();
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    let statement = |sql: String| Statement { sql: sql.into(), cells: vec![EXECUTIONS.into()] };
    batch.then(statement(format!(
        "{numbers} INSERT INTO wf_executions (num, tenant, id, workflow, name, version, hash, status, awake, priority,
            correlation, given, created_ms, ended_ms)
         SELECT i, 't', 'e' || i, 'w', 'w', '1', 'h', iif(i % 9973 = 0, 'failed', 'completed'), 0, 0, 'c',
            json_object('principal', 'p', 'tags', json_object('env', 'prod', 'customer', iif(i % 10 = 0, '7', iif(i % 19997 = 1, '42', '1')))),
            i, i FROM n"
    )));
    batch.then(statement(
        "INSERT INTO wf_tags (tenant, key, value, execution)
         SELECT tenant, tag.key, tag.value, num FROM wf_executions, json_each(given, '$.tags') tag WHERE num <= ?1"
            .into(),
    ));
    store.commit(batch).await.unwrap();
    store
}

fn wanted<'a>(tags: &'a ExecutionTags, status: Option<&'a str>, workflow: Option<&'a str>) -> Wanted<'a> {
    Wanted {
        id_prefix: None,
        tenant: "t",
        status,
        workflow,
        correlation: None,
        tags,
        since_ms: None,
        until_ms: None,
        before: i64::MAX,
        limit: 50,
    }
}

async fn numbers(store: &Sqlite, wanted: &Wanted<'_>, along: SearchIndex) -> Vec<i64> {
    let rows = store.query(executions_page(wanted, along)).await.unwrap();
    rows.iter().map(|row| row.int(0).unwrap()).collect()
}

#[tokio::test]
async fn a_search_walks_along_the_rarest_filter_and_sorts_nothing() {
    let store = skewed().await;
    let tag = "SEARCH wf_tags USING PRIMARY KEY (tenant=? AND key=? AND value=? AND execution<?)";
    let status = "SEARCH wf_executions USING INDEX wf_executions_status (tenant=? AND status=? AND num<?)";
    let workflow =
        "SEARCH wf_executions USING INDEX wf_executions_workflow (tenant=? AND workflow=? AND num<?)";
    let row = "SEARCH wf_executions USING INTEGER PRIMARY KEY (rowid=?)";
    for (tags, of_status, of_workflow, along, first) in [
        (json!({"customer": "42"}), None, None, SearchIndex::Tag(0), tag),
        // By key: customer, then env.
        (json!({"env": "prod", "customer": "42"}), None, None, SearchIndex::Tag(0), tag),
        (json!({"env": "prod", "customer": "42"}), Some("completed"), Some("w"), SearchIndex::Tag(0), tag),
        (json!({"env": "prod", "customer": "7"}), Some("failed"), None, SearchIndex::Status, status),
        (json!({"env": "prod"}), None, Some("none"), SearchIndex::Workflow, workflow),
    ] {
        let tags = read(tags).unwrap();
        let wanted = wanted(&tags, of_status, of_workflow);
        let chosen = rarest_filter(&store, &wanted).await.unwrap();
        assert_eq!(chosen, along, "{tags:?}");
        let page = executions_page(&wanted, chosen);
        let plan = store.plan(&page.sql).await.unwrap();
        assert_eq!(plan[0], first, "{plan:#?}");
        assert!(
            !plan.iter().any(|step| step.contains("TEMP B-TREE") || step.starts_with("SCAN")),
            "{plan:#?}"
        );
        if let SearchIndex::Tag(_) = chosen {
            assert_eq!(plan[1], row, "{plan:#?}");
        }
        // Whichever index it walks along, it finds the same.
        let found = numbers(&store, &wanted, chosen).await;
        for other in candidates(&wanted) {
            assert_eq!(numbers(&store, &wanted, other).await, found, "{other:?}");
        }
        assert!(found.windows(2).all(|pair| pair[0] > pair[1]), "newest first");
    }
}

#[tokio::test]
async fn pages_join_without_gap_or_double_while_executions_come_and_go() {
    let store = skewed().await;
    let tags = read(json!({"customer": "7", "env": "prod"})).unwrap();
    let mut page = Wanted { limit: 4000, ..wanted(&tags, Some("completed"), None) };
    let mut found = Vec::new();
    loop {
        let along = rarest_filter(&store, &page).await.unwrap();
        let numbers = numbers(&store, &page, along).await;
        let Some(last) = numbers.last() else { break };
        page.before = *last;
        found.extend(numbers);
    }
    let all: Vec<i64> = (1..=EXECUTIONS).rev().filter(|num| num % 10 == 0 && num % 9973 != 0).collect();
    assert_eq!(found, all);
}

#[tokio::test]
async fn the_tags_of_an_execution_go_with_it() {
    let store = skewed().await;
    let count = async |num: i64| {
        let statement = Statement::new("SELECT COUNT(*) FROM wf_tags WHERE execution = ?1", vec![num.into()]);
        store.query(statement).await.unwrap()[0].int(0).unwrap()
    };
    assert_eq!((count(10).await, count(11).await), (2, 2));
    let delete = crate::merkle::tables::execution_delete(10);
    let plan = store.plan(&delete.sql).await.unwrap();
    assert!(!plan.iter().any(|step| step.starts_with("SCAN wf_")), "{plan:#?}");
    let mut batch = Batch::new();
    batch.then(delete);
    store.commit(batch).await.unwrap();
    assert_eq!((count(10).await, count(11).await), (0, 2));
}
