//! The process that dies: this same binary, started again with a role. It writes numbered batches and tells of each once it
//! is acknowledged, on its standard error, because the test harness keeps standard output for itself.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use futures::future::join_all;
use orchestr8_kernel::ports::store::{Batch, Link, Statement, Store};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, EncryptionKey, FailPlan, Fault, NoFaults, Options, Place, Point};

pub const TABLES: &[Migration] = &[Migration {
    name: "crash/0001-tables",
    sql: "CREATE TABLE one (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
          CREATE TABLE two (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
          CREATE TABLE total (n INTEGER NOT NULL) STRICT;
          INSERT INTO total VALUES (0);",
}];

const ROLE: &str = "STORE_CRASH_ROLE";

/// What a child is to do.
pub struct Role {
    pub path: PathBuf,
    pub from: i64,
    pub tasks: usize,
    /// Abort at the n-th time this point is reached.
    pub abort: Option<(Point, usize)>,
}

impl Role {
    /// The command that starts it.
    pub fn command(&self) -> Command {
        let point = self.abort.map_or(String::from("none"), |(point, nth)| format!("{point:?}:{nth}"));
        let role = format!("{}|{}|{}|{}", self.path.display(), self.from, self.tasks, point);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child::plays_its_role", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    pub fn start(&self) -> Child {
        self.command().spawn().unwrap()
    }

    fn read() -> Option<Self> {
        #[allow(clippy::disallowed_methods, reason = "the one way to tell a test binary what to do")]
        let role = std::env::var(ROLE).ok()?;
        let parts: Vec<&str> = role.split('|').collect();
        let abort = Point::ALL.into_iter().find_map(|point| {
            let nth = parts[3].strip_prefix(&format!("{point:?}:"))?;
            Some((point, nth.parse().unwrap()))
        });
        Some(Self {
            path: PathBuf::from(parts[0]),
            from: parts[1].parse().unwrap(),
            tasks: parts[2].parse().unwrap(),
            abort,
        })
    }
}

/// How every process of the test opens the store: one with this ending is encrypted.
pub fn options(path: &Path) -> Options {
    let is_encrypted = path.extension().is_some_and(|ending| ending == "encrypted");
    let key = is_encrypted.then(|| EncryptionKey::parse(&"5a".repeat(32)).unwrap());
    Options { key, ..Options::new(Place::File(path.to_owned()), TABLES.to_vec()) }
}

struct AbortAt(Point, AtomicUsize);

impl FailPlan for AbortAt {
    fn at(&self, point: Point) -> Fault {
        if point == self.0 && self.1.fetch_sub(1, Ordering::SeqCst) == 1 { Fault::Crash } else { Fault::None }
    }
}

fn say(line: &str) {
    // One write for one line: a line is told whole or not at all.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Three tables and a chain, so that half a batch would show. The sizes vary, so that pages fill and split.
fn numbered(n: i64) -> Batch {
    let body = vec![n.to_le_bytes()[0]; usize::try_from(n * 7919 % 3000).unwrap()];
    let mut batch = Batch::new();
    batch.then_one(Statement::new(
        "INSERT INTO one (n, body) VALUES (?1, ?2)",
        vec![n.into(), body.clone().into()],
    ));
    batch.then_one(Statement::new("UPDATE total SET n = n + 1", vec![]));
    batch.then_one(Statement::new("INSERT INTO two (n, body) VALUES (?1, ?2)", vec![n.into(), body.into()]));
    batch.link(Link { chain: "all".into(), at_ms: n, body: n.to_string() });
    batch
}

/// Without a role there is nothing to play: then this only shows that the harness would find it.
#[test]
fn plays_its_role() {
    let Some(role) = Role::read() else { return };
    let faults: Arc<dyn FailPlan> = match role.abort {
        Some((point, nth)) => Arc::new(AbortAt(point, AtomicUsize::new(nth))),
        None => Arc::new(NoFaults),
    };
    let options = Options { faults, ..options(&role.path) };
    let store = match sqlite::open(options) {
        Ok(store) => store,
        Err(error) => return say(&format!("refused {error}")),
    };
    say("open");
    let next = Arc::new(AtomicI64::new(role.from));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let client = || {
        let (store, next) = (store.clone(), next.clone());
        async move {
            loop {
                let n = next.fetch_add(1, Ordering::SeqCst);
                match store.commit(numbered(n)).await {
                    Ok(()) => say(&format!("ack {n}")),
                    Err(error) => {
                        say(&format!("failed {error}"));
                        std::process::exit(1);
                    }
                }
            }
        }
    };
    runtime.block_on(async { join_all((0..role.tasks).map(|_| tokio::spawn(client()))).await });
}
