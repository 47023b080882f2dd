//! The supervisor of one server: starts it, learns its tools, hears of changes, starts it again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::action::Shown;
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use orchestr8_kernel::{Kernel, Log, schema};
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::address_mask::mask_addresses;
use super::child::Child;
use super::connect::{self, Session};
use super::desk::{Desk, Line, Phase};
use super::incoming::IncomingText;
use super::lift::{forget_support, malformed_tools};
use super::offer::{Offer, breaker_key, is_of, offer};
use super::pins::Standing;
use super::{Link, Settings, limits, pins};
use crate::listing;

/// What all supervisors share.
pub struct Surroundings {
    pub kernel: Kernel,
    pub base_env: BTreeMap<String, String>,
    pub client_name: String,
    pub client_version: String,
    search_above: usize,
}

impl Surroundings {
    pub fn new(kernel: Kernel, settings: &Settings) -> Self {
        Self {
            kernel,
            base_env: settings.base_env.clone(),
            client_name: settings.client_name.clone(),
            client_version: settings.client_version.clone(),
            search_above: settings.search_above,
        }
    }

    async fn pause(&self, ms: u64) {
        self.kernel.ports().clock.sleep(Duration::from_millis(ms)).await;
    }
}

/// Why the tools of a server could not be learned.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("its tools could not be listed: {0}")]
    List(#[from] ServiceError),
    #[error("it answered tools/list with something else")]
    Answer,
    #[error("the pinned definitions could not be read or written: {0}")]
    Pins(#[from] orchestr8_kernel::ports::store::Error),
    #[error("its tools could not be registered: {0}")]
    Register(#[from] schema::Error),
}

/// The tools of a server, as they were last registered.
#[derive(Default, PartialEq)]
struct Catalogue {
    /// With whether they may be used.
    tools: Vec<(Tool, Standing)>,
    /// Tools that could not be read, with the reason.
    malformed: Vec<(String, String)>,
}

/// Keeps a server running until it is told to stop.
pub async fn supervise(around: Arc<Surroundings>, desk: Arc<Desk>, stop: CancellationToken) {
    let log = around.kernel.log().child(json!({"server": desk.server.name}));
    let clock = &around.kernel.ports().clock;
    let (mut failures, mut known) = (0, Catalogue::default());
    let incoming = IncomingText::of(&desk.server.link);
    loop {
        let began_us = clock.elapsed_us();
        let problem = life(&around, &desk, &log, &mut known, &stop).await;
        desk.see(|seen| seen.pid = None);
        desk.has_tried();
        // It is shown to all who may read, and logged.
        let Some(problem) = problem.map(|problem| mask_addresses(&incoming.mask(&problem))) else { break };
        let ran_us = clock.elapsed_us().saturating_sub(began_us);
        failures = if ran_us >= limits::STABLE_MS * 1000 { 1 } else { failures + 1 };
        let wait_ms = restart_ms(&around, failures);
        log.warn("an MCP server is not there", json!({"problem": problem, "nextTryMs": wait_ms}));
        desk.note_error(&problem);
        let next_at_ms = clock.now_ms().saturating_add_unsigned(wait_ms);
        desk.see(|seen| {
            (seen.phase, seen.problem, seen.next_attempt_at_ms) =
                (Phase::Waiting, Some(problem), Some(next_at_ms));
        });
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = next_attempt(&around, &desk, wait_ms) => {}
        }
    }
    desk.see(|seen| seen.phase = Phase::Stopped);
}

/// Waits for the next attempt. A server that somebody else runs may be back at any time: a call that wants it is reason enough to
/// look, though not more often than after a first failure.
async fn next_attempt(around: &Surroundings, desk: &Desk, wait_ms: u64) {
    let soon_ms = wait_ms.min(limits::RESTART_MS);
    around.pause(soon_ms).await;
    let rest = around.pause(wait_ms - soon_ms);
    match &desk.server.link {
        Link::Stdio { .. } => rest.await,
        Link::Http { .. } => tokio::select! {
            () = desk.wanted() => {}
            () = rest => {}
        },
    }
}

/// Doubles with every failure, up to a limit, with some randomness: servers that fail together should not start together.
fn restart_ms(around: &Surroundings, failures: u32) -> u64 {
    let factor = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let ceiling_ms = limits::RESTART_MS.saturating_mul(factor).min(limits::RESTART_MAX_MS);
    delay_ms(Jitter::Equal, ceiling_ms, around.kernel.ports().random.unit())
}

/// One life of a server, from its start to its end. Tells what ended it, or nothing when it was told to stop.
async fn life(
    around: &Surroundings,
    desk: &Arc<Desk>,
    log: &Log,
    known: &mut Catalogue,
    stop: &CancellationToken,
) -> Option<String> {
    desk.see(|seen| (seen.phase, seen.next_attempt_at_ms) = (Phase::Starting, None));
    let limit_ms = desk.server.start_timeout_ms;
    // What was opened so far is dropped when it takes too long, which kills it.
    let opened = tokio::select! {
        biased;
        () = stop.cancelled() => return None,
        opened = connect::open(around, desk, log) => opened,
        () = around.pause(limit_ms) => return Some(format!("it did not start within {limit_ms} ms")),
    };
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => {
            desk.see(|seen| seen.exit_code = error.exit_code());
            return Some(error.to_string());
        }
    };
    desk.see(|seen| seen.pid = session.child.as_ref().and_then(Child::id));
    let problem = serve(around, desk, log, known, &mut session, stop).await;
    desk.disconnect();
    session.end(around).await;
    problem
}

/// Serves calls until the server is gone.
async fn serve(
    around: &Surroundings,
    desk: &Arc<Desk>,
    log: &Log,
    known: &mut Catalogue,
    session: &mut Session,
    stop: &CancellationToken,
) -> Option<String> {
    let mut accepted = around.kernel.ports().store.watch(pins::ACCEPTED);
    let (peer, changed) = (session.peer.clone(), session.changed.clone());
    let limit_ms = desk.server.start_timeout_ms;
    // What failed before failed with another process or connection.
    around.kernel.breakers().reset(&breaker_key(&desk.server));
    loop {
        accepted.mark_unchanged();
        let learned = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            (problem, exit_code) = session.over(around) => {
                desk.see(|seen| seen.exit_code = exit_code);
                return Some(problem);
            }
            learned = learn(around, desk, log, known, &peer) => learned.map_err(|error| error.to_string()),
            () = around.pause(limit_ms) => Err(format!("it did not tell its tools within {limit_ms} ms")),
        };
        if let Err(problem) = learned {
            return Some(problem);
        }
        desk.connect(Line { peer: peer.clone(), calls: session.calls.clone(), modern: session.modern });
        session.serves();
        desk.see(|seen| (seen.phase, seen.problem) = (Phase::Running, None));
        desk.has_tried();
        tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            (problem, exit_code) = session.over(around) => {
                desk.see(|seen| seen.exit_code = exit_code);
                return Some(problem);
            }
            () = changed.notified() => {}
            () = desk.check_requested() => {}
            _ = accepted.changed() => {}
            () = around.pause(limits::REFRESH_MS) => {}
        }
        around.pause(limits::REFRESH_PAUSE_MS).await;
    }
}

/// Asks for the tools, judges them by their pins, and offers them if anything has changed.
async fn learn(
    around: &Surroundings,
    desk: &Arc<Desk>,
    log: &Log,
    known: &mut Catalogue,
    peer: &Peer<RoleClient>,
) -> Result<(), Error> {
    let (mut tools, malformed) = list(peer).await?;
    tools.retain(|tool| desk.server.takes(&tool.name));
    let standings = pins::judge(around.kernel.ports(), &desk.server.name, &tools).await?;
    let judged = Catalogue { tools: tools.into_iter().zip(standings).collect(), malformed };
    if judged == *known {
        return Ok(());
    }
    let Offer { quarantined, mut refused, .. } = register(around, desk, &judged)?;
    refused.extend(judged.malformed.iter().cloned());
    *known = judged;
    if !quarantined.is_empty() {
        log.warn(
            "tools have changed and are quarantined until they are accepted",
            json!({"tools": quarantined}),
        );
    }
    if !refused.is_empty() {
        log.warn("tools were not taken", json!({"tools": refused}));
    }
    desk.see(|seen| (seen.quarantined, seen.refused) = (quarantined, refused));
    listing::changed(&around.kernel, around.search_above)?;
    Ok(())
}

/// All tools of the server, as many as are taken of one, and those that could not be read.
async fn list(peer: &Peer<RoleClient>) -> Result<(Vec<Tool>, Vec<(String, String)>), Error> {
    let (mut tools, mut names, mut cursor) = (Vec::new(), HashSet::new(), None);
    let mut malformed = Vec::new();
    for _ in 0..limits::PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        // Not through the library's cache: what is wanted is what there is now.
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let ServerResult::ListToolsResult(page) = peer.send_request(request).await? else {
            return Err(Error::Answer);
        };
        let meta = serde_json::to_value(&page.meta).unwrap_or_default();
        malformed.extend(malformed_tools(&meta));
        // A name that comes twice means the first one.
        tools.extend(page.tools.into_iter().filter(|tool| names.insert(tool.name.clone())));
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= limits::TOOLS {
            break;
        }
    }
    tools.truncate(limits::TOOLS);
    malformed.truncate(limits::TOOLS);
    // By the rules of the protocol, what tools say about tasks counts only if the server says that it has them.
    if !peer.peer_info().is_some_and(|info| info.capabilities.supports_tasks()) {
        tools.iter_mut().for_each(forget_support);
    }
    Ok((tools, malformed))
}

/// Puts the tools in place of those the server had before. Gives back the rest of the offer.
fn register(around: &Surroundings, desk: &Arc<Desk>, catalogue: &Catalogue) -> Result<Offer, Error> {
    /// Another server may take a name in between.
    const TRIES: usize = 3;
    let (registry, server) = (around.kernel.registry(), desk.server.name.as_str());
    let mut tries = 0;
    loop {
        tries += 1;
        let table = registry.table();
        let is_taken = |name: &str| table.find(name).is_some_and(|action| !is_of(action, server));
        let mut offered = offer(desk, &catalogue.tools, around.kernel.limits().timeout_ms, is_taken);
        let actions = std::mem::take(&mut offered.actions);
        let listed = actions.iter().filter(|action| matches!(action.shown, Shown::Tool));
        let names: Vec<String> = listed.map(|action| action.name.to_string()).collect();
        match registry.replace(|action| is_of(action, server), actions) {
            Ok(()) => {
                desk.see(|seen| seen.tools = names);
                return Ok(offered);
            }
            Err(schema::Error::Taken(_)) if tries < TRIES => {}
            Err(error) => return Err(error.into()),
        }
    }
}
