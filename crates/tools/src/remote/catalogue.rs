//! Learning the tools of a server from an instance, and offering them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use orchestr8_kernel::action::Shown;
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::store::{self, Batch};
use orchestr8_kernel::{Log, schema};
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::json;

use super::desk::{Desk, InstanceTool};
use super::lift::{forget_support, malformed_tools, support};
use super::limits;
use super::offer::{Offer, is_of, offer};
use super::pins::{self, PinKind, Standing};
use super::served_server::{Catalogue, ServedServer};
use super::supervise::Surroundings;
use crate::listing;

/// Why the tools of a server could not be learned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("its tools could not be listed: {0}")]
    List(#[from] ServiceError),
    #[error("it answered tools/list with something else")]
    Answer,
    #[error("the pinned definitions could not be read or written: {0}")]
    Pins(#[from] store::Error),
    #[error("its tools could not be registered: {0}")]
    Register(#[from] schema::Error),
}

/// The tools of an instance, as it last listed them.
#[derive(Default, PartialEq)]
pub struct Listed {
    /// With whether they may be used.
    tools: Vec<(Tool, Standing)>,
    /// Tools that could not be read, with the reason.
    malformed: Vec<(String, String)>,
}

/// Asks an instance for its tools and judges them by what was accepted. If it is the one that says which tools its server has, they are
/// offered if anything has changed.
pub async fn learn(
    around: &Arc<Surroundings>,
    desk: &Arc<Desk>,
    log: &Log,
    known: &mut Listed,
    peer: &Peer<RoleClient>,
) -> Result<(), Error> {
    let (mut tools, malformed) = list(peer).await?;
    tools.retain(|tool| desk.server.takes(&tool.name));
    let (ports, home, server) = (around.kernel.ports(), desk.served.home(), &desk.server.name);
    let is_home = desk.tenant == home;
    let compared = match is_home {
        true => None,
        false => pins::judge_guest(ports, &home, server, PinKind::Tool, &tools).await?,
    };
    let is_guest = compared.is_some();
    let standings = match compared {
        Some(standings) => standings,
        None => pins::judge(ports, &home, server, PinKind::Tool, &tools).await?,
    };
    let judged = Listed { tools: tools.into_iter().zip(standings).collect(), malformed };
    let is_offered = desk.served.catalogue.lock().is_learned;
    if judged == *known && (is_guest || is_offered) {
        return Ok(());
    }
    let entry = |(tool, standing): &(Tool, Standing)| {
        (tool.name.to_string(), InstanceTool { standing: standing.clone(), support: support(tool) })
    };
    let of_instance: HashMap<String, InstanceTool> = judged.tools.iter().map(entry).collect();
    let (quarantined, mut refused) = match is_guest {
        true => compare_guest(around, desk, known, &judged).await?,
        false => {
            let Offer { quarantined, refused, .. } = register(around, &desk.served, &judged.tools, true)?;
            (quarantined, refused)
        }
    };
    desk.set_tools(of_instance);
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
    Ok(())
}

type Verdict = (Vec<String>, Vec<(String, String)>);

/// The tools in quarantine and those left out, at the instance of a tenant that does not decide about its server. New ones in
/// quarantine are put on record.
async fn compare_guest(
    around: &Surroundings,
    desk: &Desk,
    known: &Listed,
    judged: &Listed,
) -> Result<Verdict, Error> {
    let (mut quarantined, mut refused) = (Vec::new(), Vec::new());
    let mut batch = Batch::new();
    for (tool, standing) in &judged.tools {
        match standing {
            Standing::Accepted => {}
            Standing::Refused(why) => refused.push((tool.name.to_string(), why.clone())),
            Standing::Quarantined => {
                quarantined.push(tool.name.to_string());
                if !known.tools.iter().any(|(other, was)| other.name == tool.name && was == standing) {
                    let name = format!("{}/{}", desk.server.name, tool.name);
                    let change =
                        StateChange::by_server("tools.quarantine", desk.tenant.as_str(), Some(&name));
                    batch.link(change.link(around.kernel.ports().clock.now_ms()));
                }
            }
        }
    }
    if !batch.is_empty() {
        around.kernel.ports().store.commit(batch).await?;
    }
    Ok((quarantined, refused))
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

/// Offers the tools of a server as they were last accepted, unless an instance has told them already: they are there before a slow
/// server has started.
pub async fn offer_pinned(around: &Arc<Surroundings>, served: &Arc<ServedServer>) -> Result<(), Error> {
    let mut tools = pins::pinned_tools(around.kernel.ports(), &served.home(), &served.server.name).await?;
    tools.retain(|(tool, _)| served.server.takes(&tool.name));
    if !tools.is_empty() {
        register(around, served, &tools, false)?;
    }
    Ok(())
}

/// Puts the tools in place of those the server had before. Gives back the rest of the offer.
fn register(
    around: &Arc<Surroundings>,
    served: &Arc<ServedServer>,
    tools: &[(Tool, Standing)],
    is_learned: bool,
) -> Result<Offer, Error> {
    /// Another server may take a name in between.
    const TRIES: usize = 3;
    let mut catalogue = served.catalogue.lock();
    if served.stop.is_cancelled() || (catalogue.is_learned && !is_learned) {
        return Ok(Offer::default());
    }
    let registry = around.kernel.registry();
    let mut tries = 0;
    let offered = loop {
        tries += 1;
        let table = registry.table();
        let home = served.home();
        let is_taken =
            |name: &str| table.find_for(&home, name).is_some_and(|action| !is_of(action, &served.key));
        let mut offered = offer(around, served, tools, is_taken);
        let actions = std::mem::take(&mut offered.actions);
        let listed = actions.iter().filter(|action| matches!(action.shown, Shown::Tool));
        let names: Vec<String> = listed.map(|action| action.name.to_string()).collect();
        match registry.replace(|action| is_of(action, &served.key), actions) {
            Ok(()) => {
                served.set_listed_names(names);
                break offered;
            }
            Err(schema::Error::Taken(_)) if tries < TRIES => {}
            Err(error) => return Err(error.into()),
        }
    };
    *catalogue = Catalogue { is_learned };
    drop(catalogue);
    listing::changed(&around.kernel, around.search_above)?;
    Ok(offered)
}

/// Takes the tools of a server away, for good.
pub fn withdraw(around: &Surroundings, served: &ServedServer) -> Result<(), schema::Error> {
    let catalogue = served.catalogue.lock();
    around.kernel.registry().replace(|action| is_of(action, &served.key), Vec::new())?;
    served.set_listed_names(Vec::new());
    drop(catalogue);
    listing::changed(&around.kernel, around.search_above)
}
