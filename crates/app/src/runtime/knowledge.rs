//! Puts knowledge together: its documents, their search, and the face over them.

use orchestr8_contract::Code;
use orchestr8_kernel::Kernel;
use orchestr8_knowledge::{Hub, Settings, actions};
use orchestr8_knowledge_face as face;

use super::Runtime;
use crate::failure::Failure;

/// Every action of knowledge.
pub fn register(kernel: &Kernel) -> Result<Hub, Failure> {
    let hub = Hub::new(kernel.clone(), Settings::default());
    let broken = |error| Failure::new(Code::Internal, format!("an action is wrong: {error}"));
    for action in actions::all(&hub).map_err(broken)? {
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(hub)
}

/// The face over this kernel, for callers of this machine.
pub fn face_settings(runtime: &Runtime) -> face::Settings {
    let http = &runtime.settings.http;
    face::Settings {
        body_limit_bytes: http.body_limit_bytes,
        body_timeout_ms: http.body_timeout_ms,
        shutdown: runtime.stop.clone(),
        ..face::Settings::default()
    }
}
