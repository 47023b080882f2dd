//! Hash chains hold together whoever appends, however many at once.

use futures::future::join_all;
use orchestr8_kernel::ports::store::{Batch, Link};

use super::{Shared, batch, insert_item, rows};
use crate::chain::{Entry, GENESIS, Verified, Verifier};

fn link(chain: &'static str, body: impl Into<String>) -> Link {
    Link { chain: chain.into(), at_ms: 1_767_225_600_000, body: body.into() }
}

fn links(all: impl IntoIterator<Item = Link>) -> Batch {
    Batch { links: all.into_iter().collect(), ..Batch::new() }
}

async fn verify(store: &Shared, chain: &'static str) -> Verified {
    let sql = "SELECT seq, at_ms, body, prev_hash, entry_hash FROM chain WHERE name = ?1 ORDER BY seq";
    let mut verifier = Verifier::new();
    for row in rows(store, sql, vec![chain.into()]).await {
        let entry = Entry {
            seq: row.int(0).unwrap(),
            at_ms: row.int(1).unwrap(),
            body: row.text(2).unwrap().as_bytes(),
            prev_hash: row.text(3).unwrap().as_bytes(),
            entry_hash: row.text(4).unwrap().as_bytes(),
        };
        verifier.take(entry).unwrap();
    }
    verifier.finish()
}

async fn bodies(store: &Shared, chain: &'static str) -> Vec<String> {
    let found = rows(store, "SELECT body FROM chain WHERE name = ?1 ORDER BY seq", vec![chain.into()]).await;
    found.iter().map(|row| row.text(0).unwrap().to_owned()).collect()
}

pub async fn a_chain_counts_from_one_and_holds_together(store: Shared) {
    assert_eq!(verify(&store, "audit").await, Verified { entries: 0, pruned: 0, head: GENESIS.to_owned() });
    store.commit(links([link("audit", "a"), link("audit", "b")])).await.unwrap();
    store.commit(links([link("audit", "{\"text\":\"Grüße\\n\"}")])).await.unwrap();
    assert_eq!(verify(&store, "audit").await.entries, 3);
    assert_eq!(bodies(&store, "audit").await, ["a", "b", "{\"text\":\"Grüße\\n\"}"]);
}

pub async fn chains_do_not_mix(store: Shared) {
    store.commit(links([link("one", "1"), link("two", "1"), link("one", "2"), link("", "1")])).await.unwrap();
    for (chain, entries) in [("one", 2), ("two", 1), ("", 1), ("three", 0)] {
        assert_eq!(verify(&store, chain).await.entries, entries, "{chain}");
    }
}

pub async fn an_undone_batch_leaves_no_gap(store: Shared) {
    store.commit(batch([insert_item(1)])).await.unwrap();
    let commits = (0..60).map(|n| {
        let mut batch = links([link("audit", n.to_string())]);
        if n % 2 == 1 {
            batch.then_one(insert_item(1));
        }
        store.commit(batch)
    });
    let answers = join_all(commits).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 30);
    assert_eq!(verify(&store, "audit").await.entries, 30);
    assert!(bodies(&store, "audit").await.iter().all(|body| body.parse::<u32>().unwrap() % 2 == 0));
}

pub async fn many_append_at_once_without_a_gap(store: Shared) {
    let tasks = (0..64).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..10 {
                let chain = if n % 2 == 0 { "even" } else { "odd" };
                store.commit(links([link(chain, format!("{task}/{n}"))])).await.unwrap();
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    assert_eq!(verify(&store, "even").await.entries, 320);
    assert_eq!(verify(&store, "odd").await.entries, 320);
}
