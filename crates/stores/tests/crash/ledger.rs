//! The ledger of acknowledgements, and what must hold of a database whatever happened to the process that wrote it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus};

use orchestr8_kernel::ports::store::{Statement, Store};
use orchestr8_stores::sqlite;

use crate::child::options;

#[derive(Default)]
pub struct Ledger {
    acknowledged: BTreeSet<i64>,
}

impl Ledger {
    /// Writes down what a child tells; kills it once it has acknowledged this many, or lets it end by itself.
    pub fn follow(&mut self, mut child: Child, kill_after: Option<usize>) -> ExitStatus {
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let (mut line, mut count, mut killed) = (Vec::new(), 0, false);
        loop {
            if kill_after.is_some_and(|after| count >= after) && !killed {
                child.kill().unwrap();
                killed = true;
            }
            line.clear();
            if lines.read_until(b'\n', &mut line).unwrap() == 0 {
                return child.wait().unwrap();
            }
            if let Some(n) = acknowledged(&line) {
                assert!(self.acknowledged.insert(n), "{n} was acknowledged twice");
                count += 1;
            }
        }
    }

    pub fn len(&self) -> usize {
        self.acknowledged.len()
    }

    /// What must hold: all that was acknowledged is there, nothing is half there, nothing is damaged. Gives what is there.
    pub fn verify(&self, path: &Path) -> BTreeSet<i64> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = sqlite::open(options(path)).unwrap();
            let one = numbers(&store, "SELECT n FROM one").await;
            let lost: Vec<_> = self.acknowledged.difference(&one).collect();
            assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
            assert_eq!(one, numbers(&store, "SELECT n FROM two").await, "half a batch");
            assert_eq!(
                one,
                numbers(&store, "SELECT CAST(body AS INTEGER) FROM chain WHERE name = 'all'").await
            );
            let total = numbers(&store, "SELECT n FROM total").await;
            assert_eq!(total, BTreeSet::from([i64::try_from(one.len()).unwrap()]), "done twice or half");
            let report = store.check().await.unwrap();
            assert!(report.is_sound(), "{report:?}");
            one
        })
    }
}

async fn numbers(store: &dyn Store, sql: &'static str) -> BTreeSet<i64> {
    let rows = store.query(Statement::new(sql, vec![])).await.unwrap();
    rows.iter().map(|row| row.int(0).unwrap()).collect()
}

/// Only whole lines count: the last one may be cut.
fn acknowledged(line: &[u8]) -> Option<i64> {
    let line = std::str::from_utf8(line).unwrap().strip_suffix('\n')?;
    line.strip_prefix("ack ").map(|n| n.parse().unwrap())
}
