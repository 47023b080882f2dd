//! Lanes: work in one lane runs one at a time in order of arrival (SES-7.3); and who waits for whom, so that no wait is endless.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use orchestr8_contract::id::{Lane, SubmissionId, Tenant};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

/// Distinguishes those who wait; never used twice.
pub type Number = u64;

/// A submission that others may wait for: where it stands and whom it waits for itself.
struct Entry {
    tenant: Tenant,
    id: Option<Name>,
    lane: Option<Own<Lane>>,
    depends_on: Vec<Name>,
    ended: watch::Sender<Option<Told>>,
}

/// Whether it succeeded; if not, why.
pub type Told = Result<(), Arc<str>>;

/// Tenants never meet: neither wait for each other nor learn of each other's ids.
type Own<T> = (Tenant, T);

/// Ids of different scopes never meet either.
type Name = Own<(Arc<str>, SubmissionId)>;

struct Waiter {
    number: Number,
    turn: Option<oneshot::Sender<()>>,
}

#[derive(Default)]
struct State {
    next: Number,
    entries: HashMap<Number, Entry>,
    by_id: HashMap<Name, Number>,
    lanes: HashMap<Own<Lane>, VecDeque<Waiter>>,
}

/// Who is in flight, in which lane and in what order.
#[derive(Clone, Default)]
pub struct Lanes(Arc<Mutex<State>>);

/// A place in the order of arrival, held from admission to the end of the work. Dropped, it is given up.
pub struct Place {
    lanes: Lanes,
    number: Number,
    turn: Option<oneshot::Receiver<()>>,
}

/// What is known of a submission that somebody wants to wait for.
pub enum Known {
    /// It is on its way; the receiver tells whether it succeeded.
    InFlight(watch::Receiver<Option<Told>>),
    /// It stands behind the asker in the same lane: waiting would never end (SES-9.2).
    BehindMe,
    /// It waits, itself or through others, for the asker.
    WaitsForMe,
    Unknown,
}

/// How a submission joins.
pub struct Joining {
    pub tenant: Tenant,
    pub scope: Arc<str>,
    pub id: Option<SubmissionId>,
    pub lane: Option<Lane>,
    pub depends_on: Vec<SubmissionId>,
}

impl Lanes {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next place. The order of these calls is the order of the lane.
    pub fn join(&self, joining: Joining) -> Place {
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        let Joining { tenant, scope, id, lane, depends_on } = joining;
        let scoped = |id: SubmissionId| (tenant.clone(), (scope.clone(), id));
        let id = id.map(scoped);
        let depends_on = depends_on.into_iter().map(scoped).collect();
        let lane = lane.map(|lane| (tenant.clone(), lane));
        if let Some(id) = &id {
            // A repeat of an id in flight joins its first run; the first stays the one to wait for.
            state.by_id.entry(id.clone()).or_insert(number);
        }
        let turn = lane.as_ref().and_then(|lane| {
            let queue = state.lanes.entry(lane.clone()).or_default();
            let (sender, receiver) = oneshot::channel();
            let first = queue.is_empty();
            queue.push_back(Waiter { number, turn: (!first).then_some(sender) });
            (!first).then_some(receiver)
        });
        let ended = watch::Sender::new(None);
        state.entries.insert(number, Entry { tenant, id, lane, depends_on, ended });
        drop(state);
        Place { lanes: self.clone(), number, turn }
    }

    /// Tells those who wait for it how it ended. The lane itself is held until the place is dropped.
    pub fn announce(&self, number: Number, told: Told) {
        if let Some(entry) = self.0.lock().entries.get(&number) {
            entry.ended.send_replace(Some(told));
        }
    }
}

impl Place {
    /// Ends when everything before it in its lane has ended.
    pub async fn turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            // The one before gives up its place by handing on the turn; it cannot vanish without doing so.
            let _ = turn.await;
        }
    }

    /// What is known of a submission this one depends on, checked against endless waits.
    pub fn look_up(&self, scope: &Arc<str>, id: &SubmissionId) -> Known {
        let state = self.lanes.0.lock();
        let Some(mine) = state.entries.get(&self.number) else { return Known::Unknown };
        let name = (mine.tenant.clone(), (scope.clone(), id.clone()));
        let Some(&target) = state.by_id.get(&name) else { return Known::Unknown };
        let Some(theirs) = state.entries.get(&target) else { return Known::Unknown };
        if mine.lane.is_some() && mine.lane == theirs.lane && target >= self.number {
            return Known::BehindMe;
        }
        if state.reaches(target, self.number) {
            return Known::WaitsForMe;
        }
        Known::InFlight(theirs.ended.subscribe())
    }

    pub fn number(&self) -> Number {
        self.number
    }
}

impl State {
    /// Whether `from` waits for `to`: over declared dependencies, and over whoever stands before it in its lane.
    fn reaches(&self, from: Number, to: Number) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![from];
        while let Some(number) = open.pop() {
            if number == to {
                return true;
            }
            if !seen.insert(number) {
                continue;
            }
            let Some(entry) = self.entries.get(&number) else { continue };
            open.extend(entry.depends_on.iter().filter_map(|id| self.by_id.get(id)));
            if let Some(queue) = entry.lane.as_ref().and_then(|lane| self.lanes.get(lane)) {
                let before =
                    place_in(queue, number).and_then(|at| at.checked_sub(1)).and_then(|at| queue.get(at));
                open.extend(before.map(|waiter| waiter.number));
            }
        }
        false
    }
}

/// Numbers grow along a queue, so a place is found by halving.
fn place_in(queue: &VecDeque<Waiter>, number: Number) -> Option<usize> {
    queue.binary_search_by_key(&number, |waiter| waiter.number).ok()
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.lanes.0.lock();
        let Some(entry) = state.entries.remove(&self.number) else { return };
        if let Some(id) = entry.id
            && state.by_id.get(&id) == Some(&self.number)
        {
            state.by_id.remove(&id);
        }
        let Some(lane) = entry.lane else { return };
        let Some(queue) = state.lanes.get_mut(&lane) else { return };
        let at = place_in(queue, self.number);
        if let Some(at) = at {
            queue.remove(at);
        }
        if at == Some(0)
            && let Some(turn) = queue.front_mut().and_then(|next| next.turn.take())
        {
            let _ = turn.send(());
        }
        if queue.is_empty() {
            state.lanes.remove(&lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(lanes: &Lanes, id: &str, lane: &str, depends_on: &[&str]) -> Place {
        join_of(lanes, Tenant::local(), id, lane, depends_on)
    }

    fn join_of(lanes: &Lanes, tenant: Tenant, id: &str, lane: &str, depends_on: &[&str]) -> Place {
        lanes.join(Joining {
            tenant,
            scope: "s".into(),
            id: Some(SubmissionId::parse(id).unwrap()),
            lane: Some(Lane::parse(lane).unwrap()),
            depends_on: depends_on.iter().map(|id| SubmissionId::parse(id).unwrap()).collect(),
        })
    }

    fn look(place: &Place, id: &str) -> &'static str {
        match place.look_up(&"s".into(), &SubmissionId::parse(id).unwrap()) {
            Known::InFlight(_) => "in flight",
            Known::BehindMe => "behind me",
            Known::WaitsForMe => "waits for me",
            Known::Unknown => "unknown",
        }
    }

    #[tokio::test]
    async fn turns_come_in_order_of_arrival() {
        let lanes = Lanes::new();
        let (mut a, mut b, mut c) =
            (join(&lanes, "a", "x", &[]), join(&lanes, "b", "x", &[]), join(&lanes, "c", "x", &[]));
        a.turn().await;
        assert!(b.turn.as_mut().is_some_and(|turn| turn.try_recv().is_err()));
        drop(b);
        drop(a);
        c.turn().await;
        drop(c);
        let state = lanes.0.lock();
        assert!(state.entries.is_empty() && state.by_id.is_empty() && state.lanes.is_empty());
    }

    #[test]
    fn lanes_do_not_wait_for_each_other() {
        let lanes = Lanes::new();
        let (a, b) = (join(&lanes, "a", "x", &[]), join(&lanes, "b", "y", &[]));
        assert!(a.turn.is_none() && b.turn.is_none());
    }

    #[test]
    fn tenants_do_not_meet() {
        let lanes = Lanes::new();
        let other = Tenant::parse("other").unwrap();
        let (a, b) = (join(&lanes, "a", "x", &[]), join_of(&lanes, other, "b", "x", &[]));
        assert!(a.turn.is_none() && b.turn.is_none(), "a lane of one is no lane of the other");
        assert_eq!((look(&b, "a"), look(&a, "b")), ("unknown", "unknown"));
    }

    #[test]
    fn waiting_for_one_behind_in_the_lane_is_seen() {
        let lanes = Lanes::new();
        let (a, b) = (join(&lanes, "a", "x", &[]), join(&lanes, "b", "x", &[]));
        assert_eq!(look(&a, "b"), "behind me");
        assert_eq!(look(&b, "a"), "in flight");
        assert_eq!(look(&a, "a"), "behind me");
        assert_eq!(look(&a, "z"), "unknown");
    }

    #[test]
    fn cycles_across_lanes_are_seen() {
        let lanes = Lanes::new();
        let a = join(&lanes, "a", "x", &["d"]);
        let _b = join(&lanes, "b", "x", &[]);
        let c = join(&lanes, "c", "y", &["b"]);
        let _d = join(&lanes, "d", "y", &[]);
        // d stands behind c, c depends on b, b stands behind a.
        assert_eq!(look(&a, "d"), "waits for me");
        assert_eq!(look(&c, "b"), "waits for me");
    }
}
