//! What must hold at the end of every seed.

use crate::life::{ATTEMPTS, World};

/// A promise that was not kept.
#[derive(Debug)]
pub struct Broken(pub String);

pub fn check(world: &mut World) -> Result<(), Broken> {
    // Order per pair, acknowledgements and gaps, two answers: noticed by the agents when it happens.
    if let Some(broken) = world.peers.iter().flat_map(|peer| &peer.broken).next() {
        return Err(Broken(broken.clone()));
    }
    for (id, (source, target)) in &world.requests {
        let executed = world.peers[*target].executed.get(id).copied().unwrap_or(0);
        let (status, swallowed) = (&world.statuses[id]["status"], world.swallowed.contains(id));
        let (wanted_times, wanted_status) = if swallowed { (0, "UNKNOWN") } else { (1, "COMPLETED") };
        if executed != wanted_times {
            return Err(Broken(format!("{id} was executed {executed} times, not {wanted_times}")));
        }
        if status != wanted_status {
            return Err(Broken(format!("{id} ended as {status}, not {wanted_status}")));
        }
        let attempts = world.statuses[id]["attempts"].as_u64().unwrap_or(0);
        let read = world.peers[*target].read_at.get(id).map_or(0, |places| places.len() as u64);
        if swallowed && !(read.max(1)..=u64::from(ATTEMPTS)).contains(&attempts) {
            return Err(Broken(format!("{id} was read at {read} places and counts {attempts} attempts")));
        }
        if world.peers[*source].memory.outcomes.contains_key(id) == swallowed {
            return Err(Broken(format!("the answer of {id} was lost, or made up")));
        }
    }
    Ok(())
}
