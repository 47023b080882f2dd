//! Puts governed workspaces together. Only connections of a planner or an executor see their tools.

use orchestr8_contract::Code;
use orchestr8_kernel::Kernel;
use orchestr8_process::sandbox::Sandbox;
use orchestr8_workspace::{Hub, Settings, all};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::settings;

/// Every governed action. The secret of this installation gives the key that signs attestations.
pub fn register(
    kernel: &Kernel,
    settings: &settings::Settings,
    sandbox: &Sandbox,
    secret: &[u8; 32],
) -> Result<(), Failure> {
    let signing_key = Sha256::new().chain_update(b"attestation").chain_update(secret).finalize().into();
    let own = Settings {
        roots: settings.workspace.roots.clone(),
        bootstrap_secret: settings.workspace.bootstrap_secret.clone(),
        base_env: settings.upstreams.base_env.clone(),
        sandbox: Some(sandbox.clone()),
        debug_stack: settings.debug_stack,
        conformance: settings.mode.conformance,
        ..Settings::new(signing_key)
    };
    let broken = |error| Failure::new(Code::Internal, format!("an action is wrong: {error}"));
    let hub = Hub::new(kernel.ports().clone(), own);
    for action in all(&hub).map_err(broken)? {
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(())
}
