//! Puts workflows together: their agents, the hub that runs them, their actions, and the face over them.

use orchestr8_contract::Code;
use orchestr8_kernel::Kernel;
use orchestr8_process::sandbox::Sandbox;
use orchestr8_secrets::SecretVault;
use orchestr8_tokens::ApiTokens;
use orchestr8_workflows::agents::{Agents, Parts, Workers, builtin};
use orchestr8_workflows::{Hub, all};
use orchestr8_workflows_face as face;

use super::Runtime;
use crate::failure::Failure;
use crate::settings::Settings;

/// Every action of workflows. Nothing runs before the hub is started.
pub fn register(
    kernel: &Kernel,
    settings: &Settings,
    vault: &SecretVault,
    sandbox: &Sandbox,
    tokens: &ApiTokens,
) -> Result<Hub, Failure> {
    let own = &settings.workflows;
    let workers = Workers::new(kernel.ports().clock.clone(), kernel.ports().ids.clone());
    let parts = Parts { kernel: kernel.clone(), workers: workers.clone() };
    let mut agents = own.agents.clone();
    if let Some(exec) = &mut agents.exec {
        exec.sandbox = Some(sandbox.clone());
        exec.sharing.tokens = Some(tokens.table());
    }
    let hub = Hub::new(
        kernel.clone(),
        Agents::new(builtin(&agents, &parts)).allowing(&agents.allowed),
        vault.clone(),
        orchestr8_workflows::Settings {
            running_steps: own.running_steps,
            executions_per_tenant: own.executions_per_tenant,
            executions_per_tree_level: own.executions_per_tree_level,
            executions_per_tree: own.executions_per_tree,
            queue_wait_ms: own.queue_wait_ms,
            grace_ms: own.grace_ms,
            env: own.env.clone(),
            http: agents.http.clone(),
            ..orchestr8_workflows::Settings::default()
        },
    );
    let broken = |error| Failure::new(Code::Internal, format!("an action is wrong: {error}"));
    for action in all(&hub, &workers).map_err(broken)? {
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(hub)
}

/// The face, with the limits the edge keeps.
pub fn router(runtime: &Runtime) -> axum::Router {
    let (settings, http) = (&runtime.settings, &runtime.settings.http);
    face::router(
        runtime.kernel.clone(),
        face::Settings {
            body_limit_bytes: http.body_limit_bytes,
            body_timeout_ms: http.body_timeout_ms,
            shutdown: runtime.stop.clone(),
            ..face::Settings::new(&settings.server_version)
        },
    )
}
