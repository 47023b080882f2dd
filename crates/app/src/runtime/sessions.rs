//! Puts sessions together: the models they think with, the hub that holds them, their commands.

use orchestr8_contract::Code;
use orchestr8_kernel::Kernel;
use orchestr8_models::{Catalog, Ports};
use orchestr8_process::sandbox::Sandbox;
use orchestr8_sessions::Hub;
use orchestr8_sessions_face::Face;
use orchestr8_tokens::ApiTokens;
use serde_json::json;

use super::Runtime;
use crate::failure::Failure;
use crate::settings::Settings;

/// The face of sessions over this kernel.
pub fn face(runtime: &Runtime) -> Face {
    Face::new(runtime.kernel.clone(), runtime.settings.sessions_face.clone())
}

/// Every action of sessions. Nothing is taken up before the hub is started.
pub fn register(
    kernel: &Kernel,
    settings: &Settings,
    tokens: &ApiTokens,
    sandbox: &Sandbox,
) -> Result<Hub, Failure> {
    let catalog = Catalog::new(settings.models.clone(), Ports::of(kernel)).map_err(Failure::from)?;
    for provider in catalog.unready() {
        kernel.log().warn("a provider of models has no key", json!({"provider": provider}));
    }
    if let Some((provider, id)) = &settings.knowledge.domain.answers
        && catalog.find(provider, id).is_none()
    {
        let model = json!({"models.answers": format!("{provider}/{id}")});
        kernel
            .log()
            .warn("the model that is to write answers is not there; they are made of sentences", model);
    }
    let mut own =
        orchestr8_sessions::Settings { sandbox: Some(sandbox.clone()), ..settings.sessions.clone() };
    own.roots.sharing.tokens = Some(tokens.table());
    let hub = Hub::new(kernel.clone(), catalog, own);
    let broken = |error| Failure::new(Code::Internal, format!("an action is wrong: {error}"));
    for action in orchestr8_sessions::all(&hub).map_err(broken)? {
        kernel.registry().register(action).map_err(broken)?;
    }
    Ok(hub)
}
