//! Reads, apart from the writer: each on a connection of its own that can only read.
//!
//! Waking a thread costs ten times what a lookup by key costs. So a read first runs where it was asked for, with a budget of
//! work; what exceeds it starts again on a thread and holds up nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use orchestr8_kernel::ports::store::{Error, Row, Statement};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::cells;
use super::limits;

type Answer = Result<Vec<Row>, Error>;

pub(super) struct Readers {
    connect: Connect,
    /// Opened when they are first needed: each holds the shape of the whole database in memory.
    short: Vec<Mutex<Option<Short>>>,
    /// `None` only while it is being dropped: without a sender the threads end.
    queue: Option<mpsc::Sender<Question>>,
    questions: Arc<Mutex<mpsc::Receiver<Question>>>,
    /// Started when the first long reads come, at most as many as there are short connections.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

type Connect = Box<dyn Fn() -> Result<Connection, Error> + Send + Sync>;

struct Question {
    statement: Statement,
    answer: oneshot::Sender<Answer>,
}

impl Readers {
    /// Half the connections are for short reads, half for threads.
    pub fn new(
        count: usize,
        connect: impl Fn() -> Result<Connection, Error> + Send + Sync + 'static,
    ) -> Self {
        let (queue, questions) = mpsc::channel(limits::QUEUE_READS_MAX);
        Self {
            connect: Box::new(connect),
            short: (0..count.max(1)).map(|_| Mutex::new(None)).collect(),
            queue: Some(queue),
            questions: Arc::new(Mutex::new(questions)),
            threads: Mutex::default(),
        }
    }

    pub async fn query(&self, statement: Statement) -> Answer {
        // Whoever reads in a loop lets others have their turn.
        tokio::task::coop::consume_budget().await;
        if let Some(answer) = self.read_now(&statement) {
            return answer;
        }
        self.one_more_thread()?;
        let (answer, receiver) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or(Error::Closed)?;
        queue.send(Question { statement, answer }).await.map_err(|_| Error::Closed)?;
        receiver.await.map_err(|_| Error::Closed)?
    }

    /// Nothing if the read is too much work or all connections are taken.
    fn read_now(&self, statement: &Statement) -> Option<Answer> {
        let mut free = self.short.iter().find_map(|short| short.try_lock())?;
        let short = match &mut *free {
            Some(short) => short,
            none => match (self.connect)().and_then(Short::of) {
                Ok(short) => none.insert(short),
                Err(error) => return Some(Err(error)),
            },
        };
        short.read(statement)
    }

    fn one_more_thread(&self) -> Result<(), Error> {
        let mut threads = self.threads.lock();
        if threads.len() == self.short.len() {
            return Ok(());
        }
        let (connection, questions) = ((self.connect)()?, self.questions.clone());
        let thread = std::thread::Builder::new().name(String::from("store-reader"));
        threads.push(thread.spawn(move || serve(&connection, &questions)).map_err(super::no_thread)?);
        Ok(())
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        drop(self.queue.take());
        for thread in self.threads.get_mut().drain(..) {
            // A thread that panicked has nothing left to give back.
            let _ = thread.join();
        }
    }
}

/// A connection that interrupts what takes longer than its budget.
struct Short {
    connection: Connection,
    spent: Arc<AtomicU32>,
}

impl Short {
    fn of(mut connection: Connection) -> Result<Self, Error> {
        let spent = Arc::new(AtomicU32::new(0));
        let counted = spent.clone();
        let over = move || counted.fetch_add(1, Ordering::Relaxed) >= limits::SHORT_READ_TICKS;
        connection.progress_handler(limits::TICK_STEPS, Some(over)).map_err(super::errors::store_error)?;
        Ok(Self { connection, spent })
    }

    fn read(&mut self, statement: &Statement) -> Option<Answer> {
        self.spent.store(0, Ordering::Relaxed);
        let answer = cells::read(&self.connection, statement);
        (self.spent.load(Ordering::Relaxed) <= limits::SHORT_READ_TICKS).then_some(answer)
    }
}

fn serve(connection: &Connection, questions: &Mutex<mpsc::Receiver<Question>>) {
    loop {
        // One thread waits for the next question while the others answer or wait for the lock.
        let Some(Question { statement, answer }) = questions.lock().blocking_recv() else { return };
        // A panic drops the answer, so that the one who asked finds the store closed; the thread goes on for others.
        let _ = catch_unwind(AssertUnwindSafe(|| answer.send(cells::read(connection, &statement))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: &str =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT COUNT(*) FROM n";

    #[test]
    fn a_short_connection_gives_up_what_takes_long_and_still_serves_the_next() {
        let mut short = Short::of(Connection::open_in_memory().unwrap()).unwrap();
        for _ in 0..100 {
            assert!(short.read(&Statement::new(COUNT, vec![1_000_000.into()])).is_none());
            let answer = short.read(&Statement::new(COUNT, vec![10.into()])).unwrap().unwrap();
            assert_eq!(answer[0].int(0).unwrap(), 10);
        }
    }

    #[tokio::test]
    async fn what_takes_long_is_answered_by_a_thread() {
        let connect = || Connection::open_in_memory().map_err(super::super::errors::store_error);
        let readers = Readers::new(1, connect);
        let answer = readers.query(Statement::new(COUNT, vec![100_000.into()])).await.unwrap();
        assert_eq!(answer[0].int(0).unwrap(), 100_000);
    }

    #[test]
    fn with_every_short_connection_taken_a_thread_answers() {
        let connect = || Connection::open_in_memory().map_err(super::super::errors::store_error);
        let readers = Readers::new(1, connect);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let held = readers.short[0].lock();
        assert!(readers.read_now(&Statement::new("SELECT 1", vec![])).is_none());
        let answer = runtime.block_on(readers.query(Statement::new("SELECT 7", vec![]))).unwrap();
        assert_eq!(answer[0].int(0).unwrap(), 7);
        drop(held);
        assert!(readers.read_now(&Statement::new("SELECT 1", vec![])).is_some());
    }

    #[tokio::test]
    async fn connections_and_threads_come_when_they_are_needed_and_no_more_than_that() {
        let opened = Arc::new(AtomicU32::new(0));
        let counted = opened.clone();
        let readers = Readers::new(2, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Connection::open_in_memory().map_err(super::super::errors::store_error)
        });
        let seen = |readers: &Readers| (opened.load(Ordering::Relaxed), readers.threads.lock().len());
        assert_eq!(seen(&readers), (0, 0));
        for _ in 0..3 {
            readers.query(Statement::new("SELECT 1", vec![])).await.unwrap();
        }
        assert_eq!(seen(&readers), (1, 0));
        for _ in 0..5 {
            readers.query(Statement::new(COUNT, vec![100_000.into()])).await.unwrap();
        }
        assert_eq!(seen(&readers), (3, 2));
    }

    #[tokio::test]
    async fn a_connection_that_cannot_be_opened_is_the_answer_and_tried_again_the_next_time() {
        let broken = Arc::new(AtomicU32::new(1));
        let left = broken.clone();
        let readers = Readers::new(1, move || match left.swap(0, Ordering::Relaxed) {
            0 => Connection::open_in_memory().map_err(super::super::errors::store_error),
            _ => Err(Error::Full(String::from("no more files"))),
        });
        assert!(matches!(readers.query(Statement::new("SELECT 1", vec![])).await, Err(Error::Full(_))));
        assert!(readers.query(Statement::new("SELECT 1", vec![])).await.is_ok());
    }
}
