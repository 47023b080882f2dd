//! Puts knowledge together: its documents, their search, the face over them, and the bus it takes envelopes from.

use std::sync::Arc;

use orchestr8_broker::Embedded;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::action::Allow;
use orchestr8_kernel::{Kernel, Principal, Transport};
use orchestr8_knowledge::retrieval::dense::{Dense, Embedder};
use orchestr8_knowledge::{Hub, Meaning, actions, vectors};
use orchestr8_knowledge_face::{self as face, Envelopes, PubSub};

use super::Runtime;
use crate::failure::Failure;
use crate::settings::{Settings, UnsignedAccess, Vectors};
use orchestr8_secrets::SecretVault;

/// Every action of knowledge. Without an embedder there is no search by meaning.
pub fn register(
    kernel: &Kernel,
    settings: &Settings,
    embedder: Option<Arc<dyn Embedder>>,
    vault: &SecretVault,
) -> Result<Hub, Failure> {
    let vault = Some(vault.clone());
    let domain = orchestr8_knowledge::Settings { vault, ..settings.knowledge.domain.clone() };
    let hub = match embedder {
        Some(embedder) => {
            let dense = index(kernel, &settings.vectors, embedder.as_ref());
            Hub::with_meaning(kernel.clone(), domain, Meaning { embedder, dense })
        }
        None => Hub::new(kernel.clone(), domain),
    };
    let broken = |error| Failure::new(Code::Internal, format!("an action is wrong: {error}"));
    let guard = signature_guard(settings);
    for action in actions::all(&hub).map_err(broken)? {
        let action = match &guard {
            Some(guard) => action.allowing(guard.clone()),
            None => action,
        };
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(hub)
}

/// With the profile `external` documents are for signed requests, whichever face an unsigned one comes through; the settings name
/// the exceptions.
fn signature_guard(settings: &Settings) -> Option<Allow> {
    match settings.knowledge.security {
        face::Security::External => {}
        face::Security::Local | face::Security::Basic(_) => return None,
    }
    let unsigned = settings.knowledge.unsigned.clone();
    Some(Arc::new(move |principal: &Principal, transport: Transport| {
        let exception = match transport {
            Transport::Stdio | Transport::Http | Transport::WebSocket => UnsignedAccess::Mcp,
            Transport::Internal => UnsignedAccess::Workflows,
        };
        if principal.document_proof || unsigned.contains(&exception) {
            return Ok(());
        }
        Err(Fault::new(Code::Unauthorized, "this server takes signed requests only for its documents")
            .with("reason", "signature_required")
            .with("hint", "sign it with orchestr8 sign, or let the server take it with knowledge.security.allowUnsigned")
            .with("setting", "knowledge.security.allowUnsigned"))
    }))
}

/// The index over the vectors of an embedder, empty until somebody follows the changes.
fn index(kernel: &Kernel, place: &Vectors, embedder: &dyn Embedder) -> Arc<dyn Dense> {
    match place {
        Vectors::Embedded { memory_bytes } => {
            Arc::new(vectors::Embedded::new(embedder.dimensions(), *memory_bytes))
        }
        Vectors::Qdrant(settings) => Arc::new(vectors::Qdrant::new(kernel, settings, embedder)),
    }
}

/// The face over this kernel, as the settings have it. Takes up the messages that are in the store.
pub async fn face_settings(runtime: &Runtime) -> Result<face::Settings, Failure> {
    let (http, own) = (&runtime.settings.http, &runtime.settings.knowledge);
    let pubsub = match &own.pubsub {
        Some(settings) => Some(bus(&runtime.kernel, settings).await?),
        None => None,
    };
    Ok(face::Settings {
        security: own.security.clone(),
        vault: Some(runtime.vault.clone()),
        body_limit_bytes: http.body_limit_bytes,
        body_timeout_ms: http.body_timeout_ms,
        ack_ms: own.ack_ms,
        rate_per_minute: own.rate_per_minute,
        heartbeat_ms: own.heartbeat_ms,
        artifact_hosts: own.artifact_hosts.clone(),
        artifact_bytes: own.artifact_bytes,
        public_url: own.public_url.clone(),
        pubsub,
        shutdown: runtime.stop.clone(),
        ..face::Settings::default()
    })
}

/// The face for a command of this process: whoever runs it owns the store, and nobody needs to be held up.
pub async fn own_router(runtime: &Runtime) -> Result<axum::Router, Failure> {
    let settings = face_settings(runtime).await?;
    let own = face::Settings { security: face::Security::Local, rate_per_minute: None, ..settings };
    Ok(face::router(runtime.kernel.clone(), own))
}

/// The face of a server, and what it does by itself: it ends with the server, when what is in hand is done.
pub async fn serve(
    runtime: &Runtime,
) -> Result<(axum::Router, impl Future<Output = ()> + Send + use<>), Failure> {
    let settings = face_settings(runtime).await?;
    let envelopes = Envelopes::new(runtime.kernel.clone(), settings.clone());
    let (router, kernel) = (envelopes.router(), runtime.kernel.clone());
    let tending = async move {
        tokio::join!(face::tend(kernel, settings), face::consume(envelopes));
    };
    Ok((router, tending))
}

async fn bus(kernel: &Kernel, settings: &orchestr8_broker::Settings) -> Result<PubSub, Failure> {
    let ports = kernel.ports();
    let (store, clock, random) = (ports.store.clone(), ports.clock.clone(), ports.random.clone());
    let broker = Embedded::open(store, clock, random, settings.clone()).await?;
    Ok(PubSub { broker: Arc::new(broker), settings: settings.clone() })
}
