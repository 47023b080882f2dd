//! Puts governed workspaces together. Only connections of a planner or an executor see their tools.

use orchestr8_contract::Code;
use orchestr8_kernel::Kernel;
use orchestr8_process::sandbox::Sandbox;
use orchestr8_tokens::ApiTokens;
use orchestr8_workspace::{Hub, ServerSigningKey, Settings, all};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::settings;

/// Every governed action, and what people ask of workspaces. Nothing is signed before the key is there.
pub fn register(
    kernel: &Kernel,
    settings: &settings::Settings,
    sandbox: &Sandbox,
    tokens: &ApiTokens,
) -> Result<ServerSigningKey, Failure> {
    let signing_key = ServerSigningKey::default();
    let mut roots = settings.workspace.roots.clone();
    roots.sharing.tokens = Some(tokens.table());
    let own = Settings {
        roots,
        self_approval: settings.workspace.self_approval,
        bootstrap_secret: settings.workspace.bootstrap_secret.clone(),
        base_env: settings.upstreams.base_env.clone(),
        sandbox: Some(sandbox.clone()),
        debug_stack: settings.debug_stack,
        conformance: settings.mode.conformance,
        ..Settings::new(signing_key.clone())
    };
    let broken = |error| Failure::new(Code::Internal, format!("an action is wrong: {error}"));
    let hub = Hub::new(kernel.ports().clone(), own);
    for action in all(&hub).map_err(broken)? {
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(signing_key)
}

/// The key that signs attestations, approvals and the ends of trails, from the secret of this installation.
pub fn signing_key(secret: &[u8; 32]) -> [u8; 32] {
    Sha256::new().chain_update(b"attestation").chain_update(secret).finalize().into()
}
