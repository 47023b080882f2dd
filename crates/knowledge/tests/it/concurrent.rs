//! Random operations at once, against a model that knows only one at a time: what was done, in the order it was committed,
//! must be what the model allows, and must leave what the model is left with.

use std::collections::{BTreeMap, HashSet};

use orchestr8_contract::Code;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, document, id};

const DOCUMENTS: usize = 7;
const TENANTS: [&str; 2] = ["acme", "globex"];

#[derive(Debug, Clone)]
enum Op {
    Create(usize, usize),
    Update(usize, Option<i64>),
    Move(usize, usize, Option<usize>),
    Delete(usize),
    Restore(usize),
}

fn ops() -> impl Strategy<Value = Vec<(usize, Op)>> {
    let n = 1..=DOCUMENTS;
    let parent = 0..=DOCUMENTS;
    let op = prop_oneof![
        4 => (n.clone(), parent.clone()).prop_map(|(n, p)| Op::Create(n, p)),
        2 => (n.clone(), proptest::option::of(1..4i64)).prop_map(|(n, r)| Op::Update(n, r)),
        5 => (n.clone(), parent, proptest::option::of(n.clone())).prop_map(|(n, p, b)| Op::Move(n, p, b)),
        1 => n.clone().prop_map(Op::Delete),
        1 => n.prop_map(Op::Restore),
    ];
    proptest::collection::vec((0..TENANTS.len(), op), 1..40)
}

fn parent(n: usize) -> String {
    if n == 0 { "root".into() } else { id(n) }
}

fn call(op: &Op) -> (&'static str, Value) {
    match op {
        Op::Create(n, p) => {
            ("knowledge.create_document", document(*n, &parent(*p), &format!("T{n}"), "some text"))
        }
        Op::Update(n, known) => {
            let mut args = json!({"document_id": id(*n), "update_mask": ["content.body"], "patch": {"content": {"body": "other"}}});
            if let Some(known) = known {
                args["last_known_revision"] = json!(known);
            }
            ("knowledge.update_document", args)
        }
        Op::Move(n, p, before) => {
            let mut args = json!({"document_id": id(*n), "new_parent_id": parent(*p)});
            if let Some(before) = before {
                args["position"] = json!({"before": id(*before)});
            }
            ("knowledge.move_document", args)
        }
        Op::Delete(n) => ("knowledge.delete_document", json!({"document_id": id(*n)})),
        Op::Restore(n) => ("knowledge.restore_document", json!({"document_id": id(*n)})),
    }
}

/// One document of the model.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    parent: String,
    revision: i64,
    hidden_by: Option<String>,
}

type Model = BTreeMap<(String, String), Node>;

fn seen<'a>(model: &'a Model, tenant: &str, id: &str) -> Option<&'a Node> {
    model.get(&(tenant.to_owned(), id.to_owned())).filter(|node| node.hidden_by.is_none())
}

fn above(model: &Model, tenant: &str, from: &str) -> Vec<String> {
    let (mut chain, mut at) = (Vec::new(), from.to_owned());
    while at != "root" {
        assert!(chain.len() <= DOCUMENTS, "a cycle at {at}");
        chain.push(at.clone());
        at = model.get(&(tenant.to_owned(), at.clone())).expect("no orphans").parent.clone();
    }
    chain
}

/// One step of what the store says happened.
fn step(model: &mut Model, tenant: &str, id: &str, revision: i64, op: &str, new_parent: &str) {
    let key = (tenant.to_owned(), id.to_owned());
    let open = |model: &Model, parent: &str| parent == "root" || seen(model, tenant, parent).is_some();
    if op == "create" {
        assert!(!model.contains_key(&key) && open(model, new_parent), "created twice or below nothing");
        assert_eq!(revision, 1);
        model.insert(key, Node { parent: new_parent.to_owned(), revision: 1, hidden_by: None });
        return;
    }
    let node = model.get(&key).expect("changed before it was created").clone();
    assert_eq!(revision, node.revision + 1, "a gap in the revisions");
    match op {
        "update" => assert!(node.hidden_by.is_none()),
        "move" => {
            assert!(node.hidden_by.is_none() && open(model, new_parent));
            assert!(!above(model, tenant, new_parent).contains(&id.to_owned()), "moved below itself");
            model.get_mut(&key).unwrap().parent = new_parent.to_owned();
        }
        "delete" => {
            assert!(node.hidden_by.is_none());
            let keys: Vec<_> = model.keys().filter(|(owner, _)| owner == tenant).cloned().collect();
            for other in keys {
                if model[&other].hidden_by.is_none()
                    && above(model, tenant, &other.1).contains(&id.to_owned())
                {
                    model.get_mut(&other).unwrap().hidden_by = Some(id.to_owned());
                }
            }
        }
        "restore" => {
            assert!(node.hidden_by.as_deref() == Some(id) && open(model, &node.parent));
            for (key, other) in model.iter_mut() {
                if key.0 == tenant && other.hidden_by.as_deref() == Some(id) {
                    other.hidden_by = None;
                }
            }
        }
        other => panic!("{other}"),
    }
    model.get_mut(&key).unwrap().revision = revision;
}

async fn check(world: &World) {
    let mut model = Model::new();
    let history = world
        .rows("SELECT tenant, document, revision, op, parent FROM knowledge_revision ORDER BY rowid")
        .await;
    for row in &history {
        let text = |at| row.text(at).unwrap();
        step(&mut model, text(0), text(1), row.int(2).unwrap(), text(3), text(4));
    }
    let rows = world.rows("SELECT tenant, id, parent, revision, hidden_by FROM knowledge_document").await;
    let kept: Model = rows
        .iter()
        .map(|row| {
            let text = |at| row.text(at).unwrap().to_owned();
            let node = Node {
                parent: text(2),
                revision: row.int(3).unwrap(),
                hidden_by: row.optional_text(4).unwrap().map(str::to_owned),
            };
            ((text(0), text(1)), node)
        })
        .collect();
    assert_eq!(kept, model);
    for (tenant, id) in model.keys() {
        above(&model, tenant, id);
    }
    let places = world.rows("SELECT tenant, parent, place, id FROM knowledge_document").await;
    let unique: HashSet<_> = places
        .iter()
        .map(|row| (0..4).map(|at| row.text(at).unwrap().to_owned()).collect::<Vec<_>>())
        .collect();
    assert_eq!(unique.len(), places.len(), "the order is total");
    // Whoever may be seen is found, and nobody else, by each tenant for itself.
    for tenant in TENANTS {
        let args = json!({"query": "text other", "top_k": 20});
        let found = orchestr8_testing::settled::value(
            world.settle_as(tenant, "owner", "knowledge.query_knowledge", args).await,
        );
        let found: HashSet<String> = found["context"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["document_id"].as_str().unwrap().to_owned())
            .collect();
        let wanted: HashSet<String> = model
            .iter()
            .filter(|((owner, _), node)| owner == tenant && node.hidden_by.is_none())
            .map(|((_, id), _)| id.clone())
            .collect();
        assert_eq!(found, wanted, "what {tenant} finds");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_at_once_could_have_happened_one_after_the_other(ops in ops()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            let mut running = Vec::new();
            for (tenant, op) in ops {
                let (world, (name, args)) = (world.clone(), call(&op));
                running.push(tokio::spawn(async move { world.settle_as(TENANTS[tenant], "owner", name, args).await }));
            }
            for ended in running {
                let ended = ended.await.unwrap();
                let fine = [None, Some(Code::NotFound), Some(Code::StateConflict), Some(Code::VersionMismatch), Some(Code::InvalidArgument)];
                assert!(fine.contains(&ended.code()), "{:?}", ended.result);
            }
            check(&world).await;
        });
    }
}

/// A tree as its lists of children, with nothing but one move at a time.
type Lists = BTreeMap<String, Vec<String>>;

/// Puts a document where a move wanted it, or says that it could not go there.
fn relocate(lists: &mut Lists, id: &str, parent: &str, before: Option<&str>) -> Result<usize, Code> {
    let mut below = vec![id.to_owned()];
    while let Some(at) = below.pop() {
        if at == parent {
            return Err(Code::StateConflict);
        }
        below.extend(lists.get(&at).into_iter().flatten().cloned());
    }
    let at = |list: &[String], id: &str| list.iter().position(|one| one == id);
    if let Some(before) = before {
        let is_there = lists.get(parent).is_some_and(|list| at(list, before).is_some());
        if before == id || !is_there {
            return Err(Code::InvalidArgument);
        }
    }
    lists.values_mut().for_each(|list| list.retain(|one| one != id));
    let list = lists.entry(parent.to_owned()).or_default();
    let place = before.and_then(|before| at(list, before)).unwrap_or(list.len());
    list.insert(place, id.to_owned());
    Ok(place)
}

/// Every list of children as callers read it, page after page.
async fn read_lists(world: &World) -> Lists {
    let mut lists = Lists::new();
    for parent in (0..=DOCUMENTS).map(parent) {
        let (mut ids, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut args = json!({"parent_id": parent, "limit": 3});
            if cursor.is_string() {
                args["cursor"] = cursor;
            }
            let page = world.ask("list_children", args).await;
            let children = page["children"].as_array().unwrap();
            ids.extend(children.iter().map(|one| one["id"].as_str().unwrap().to_owned()));
            cursor = page["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        if !ids.is_empty() {
            lists.insert(parent, ids);
        }
    }
    lists
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// KNO-8.4: the order of siblings is total and is the one that the moves ask for, in the order in which they are on record.
    #[test]
    fn kno_8_4_moves_at_once_leave_the_order_that_they_would_leave_one_after_the_other(
        moves in proptest::collection::vec((1..=DOCUMENTS, 0..=DOCUMENTS, proptest::option::of(1..=DOCUMENTS)), 1..30),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            for n in 1..=DOCUMENTS {
                world.put(n, "root", &format!("T{n}"), "").await;
            }
            let mut lists = Lists::from([("root".to_owned(), (1..=DOCUMENTS).map(id).collect())]);
            let running: Vec<_> = moves.iter().map(|(n, p, before)| {
                let (world, (name, args)) = (world.clone(), call(&Op::Move(*n, *p, *before)));
                tokio::spawn(async move { world.settle_as("acme", "owner", name, args).await })
            }).collect();
            // Which wish became which revision.
            let (mut wishes, mut refused) = (BTreeMap::new(), 0);
            for (wish, ended) in moves.iter().zip(futures::future::join_all(running).await) {
                let ended = ended.unwrap();
                match ended.code() {
                    None => {
                        let given = orchestr8_testing::settled::value(ended);
                        wishes.insert((id(wish.0), given["revision"].as_i64().unwrap()), (wish, given["ordering"].as_u64().unwrap()));
                    }
                    Some(code) => {
                        assert!([Code::StateConflict, Code::InvalidArgument].contains(&code), "{code}");
                        refused += 1;
                    }
                }
            }
            assert_eq!(wishes.len() + refused, moves.len());
            let rows = world.rows("SELECT document, revision FROM knowledge_revision WHERE op = 'move' ORDER BY rowid").await;
            assert_eq!(rows.len(), wishes.len());
            for row in &rows {
                let ((n, p, before), ordering) = &wishes[&(row.text(0).unwrap().to_owned(), row.int(1).unwrap())];
                let place = relocate(&mut lists, &id(*n), &parent(*p), before.map(id).as_deref());
                assert_eq!(place, Ok(usize::try_from(*ordering).unwrap()), "move {n} below {p} before {before:?}");
            }
            lists.retain(|_, list| !list.is_empty());
            assert_eq!(read_lists(&world).await, lists);
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_moves_into_each_other_never_make_a_cycle() {
    for _ in 0..100 {
        let world = World::new();
        world.put(1, "root", "A", "some text").await;
        world.put(2, "root", "B", "some text").await;
        let moves = [(1, 2), (2, 1)].map(|(n, p)| {
            let world = world.clone();
            tokio::spawn(async move {
                world.settle("move_document", json!({"document_id": id(n), "new_parent_id": id(p)})).await
            })
        });
        let ended = futures::future::join_all(moves).await;
        let won = ended.into_iter().filter(|ended| ended.as_ref().unwrap().result.is_ok()).count();
        assert_eq!(won, 1);
        check(&world).await;
    }
}

#[tokio::test]
async fn the_ids_of_another_tenant_do_not_exist() {
    let world = World::new();
    world.put(1, "root", "Secret", "treasure").await;
    let calls = [
        ("get_document", json!({"document_id": id(1)})),
        ("update_document", json!({"document_id": id(1), "patch": {}, "update_mask": ["metadata.source"]})),
        ("delete_document", json!({"document_id": id(1)})),
        ("move_document", json!({"document_id": id(1), "new_parent_id": "root"})),
        ("restore_document", json!({"document_id": id(1)})),
        ("edit", json!({"document_id": id(1), "old_str": "treasure", "new_str": "x"})),
        ("document_history", json!({"document_id": id(1)})),
        ("list_children", json!({"parent_id": id(1)})),
        ("query_knowledge", json!({"query": "treasure", "filters": {"subtree": id(1)}})),
        ("create_document", document(2, &id(1), "x", "")),
    ];
    for (name, args) in calls {
        let ended = world.settle_as("globex", "owner", &format!("knowledge.{name}"), args).await;
        assert_eq!(ended.code(), Some(Code::NotFound), "{name}");
    }
    let found =
        world.settle_as("globex", "owner", "knowledge.query_knowledge", json!({"query": "treasure"})).await;
    assert_eq!(orchestr8_testing::settled::value(found)["context"], json!([]));
    let theirs = json!({"query": "treasure", "filters": {"tenant_id": "acme"}});
    let ended = world.settle_as("globex", "owner", "knowledge.query_knowledge", theirs).await;
    assert_eq!(ended.code(), Some(Code::Unauthorized));
    // The same id is free for them: ids are unique within a tenant (KNO-8.1).
    let ended =
        world.settle_as("globex", "owner", "knowledge.create_document", document(1, "root", "Own", "")).await;
    assert!(ended.result.is_ok());
}
