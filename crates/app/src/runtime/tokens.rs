//! Puts API tokens together, and writes failed logins and refused scopes into the audit trail.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault};
use orchestr8_edge::settings::{OnLoginFailure, OnScopeRefusal};
use orchestr8_edge::{LoginFailure, ScopeRefusal};
use orchestr8_kernel::audit::SecurityEvent;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::refusals::RefusalSource;
use orchestr8_kernel::source::Origin;
use orchestr8_kernel::{Kernel, Source, Transport};
use orchestr8_tokens::{ApiTokens, ConfiguredPrincipal};
use serde_json::json;
use tokio::sync::mpsc;

use super::{broken, offer};
use crate::failure::Failure;
use crate::settings::Settings;

/// Failed logins on their way into the audit trail; beyond it they are only counted, so that a flood costs no memory.
const QUEUE: usize = 1024;

pub fn register(kernel: &Kernel, settings: &Settings) -> Result<ApiTokens, Failure> {
    let configured = settings.auth.tokens.iter().map(|token| ConfiguredPrincipal {
        tenant: token.tenant.clone(),
        name: token.name.clone(),
        reuse_name: token.reuse_name,
    });
    let tokens = ApiTokens::new(kernel.clone(), configured.collect());
    for action in tokens.actions().map_err(broken)? {
        offer(kernel, action)?;
    }
    Ok(tokens)
}

/// What the edge tells of failed logins. Ends with the edge.
pub fn watch_logins(kernel: &Kernel) -> OnLoginFailure {
    let (sender, mut failures) = mpsc::channel::<LoginFailure>(QUEUE);
    let kernel = kernel.clone();
    tokio::spawn(async move {
        while let Some(failure) = failures.recv().await {
            record(&kernel, &failure).await;
        }
    });
    Arc::new(move |failure| drop(sender.try_send(failure)))
}

/// What the edge tells of requests outside the scope of their token. Ends with the edge.
pub fn watch_scopes(kernel: &Kernel) -> OnScopeRefusal {
    let (sender, mut refusals) = mpsc::channel::<ScopeRefusal>(QUEUE);
    let kernel = kernel.clone();
    tokio::spawn(async move {
        while let Some(refusal) = refusals.recv().await {
            record_scope_refusal(&kernel, &refusal).await;
        }
    });
    Arc::new(move |refusal| drop(sender.try_send(refusal)))
}

async fn record_scope_refusal(kernel: &Kernel, refusal: &ScopeRefusal) {
    let Ok(Some(principal)) = refusal.caller.principal() else { return };
    let correlation = CorrelationId::from_uuid(kernel.ports().ids.fresh(For::Correlation));
    let message = format!("the scope of the token does not include face:{} ({})", refusal.face, refusal.path);
    let fault = Fault::new(Code::Unauthorized, message);
    let source = RefusalSource {
        transport: Transport::Http,
        source: Source { face: refusal.face, origin: Origin::Address(refusal.address) },
        correlation: &correlation,
    };
    kernel.record_refusal("auth.scope", &Arc::new(principal), source, &fault).await;
}

async fn record(kernel: &Kernel, failure: &LoginFailure) {
    let about = json!({
        "address": failure.address.to_string(), "token": failure.token, "path": failure.path, "limited": failure.limited,
    });
    let message = match failure.limited {
        true => "too many failed logins; further ones of this minute are refused without a word",
        false => "a login failed",
    };
    kernel.log().warn(message, about.clone());
    let event = SecurityEvent {
        action: "auth.login",
        tenant: Tenant::local(),
        principal: failure.token.clone(),
        source: failure.address.to_string(),
        code: if failure.limited { Code::ResourceExhausted } else { Code::Unauthenticated },
        detail: about,
    };
    if let Err(fault) = kernel.record_security_event(&event).await {
        kernel.log().error(
            "a failed login could not be written into the audit trail",
            json!({"cause": fault.message}),
        );
    }
}
