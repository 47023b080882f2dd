//! The status `waiting`: an execution of which this process runs nothing. It is derived from the state, so that the engine knows `Running` only.

use super::event::{Status, Task};
use super::scope;
use super::state::{Phase, State};

/// The status that rows and resources show.
pub fn status(state: &State) -> Status {
    match state.status {
        Status::Running if only_waits(state) => Status::Waiting,
        status => status,
    }
}

fn only_waits(state: &State) -> bool {
    !state.work.is_empty() && state.work.iter().all(|(task, work)| waits(state, *task, &work.phase))
}

/// A step waits unless it has a slot of this process, or is to get one. A worker's task never has: it waits for the worker from the
/// moment it is ready, also while the worker holds its lease.
fn waits(state: &State, task: Task, phase: &Phase) -> bool {
    match phase {
        Phase::Retrying { .. }
        | Phase::Child { .. }
        | Phase::Waiting { .. }
        | Phase::Asking { .. }
        | Phase::Resting { .. }
        | Phase::Unknown => true,
        Phase::Ready | Phase::Running => scope::worker_queue(state, task).is_some(),
        Phase::Beginning => false,
    }
}
