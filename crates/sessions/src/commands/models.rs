//! Which model a session uses, and how hard it thinks.

use std::sync::Arc;

use orchestr8_contract::Fault;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use orchestr8_models::{Model, Thinking};
use serde_json::{Value, json};

use super::{answer, session};
use crate::hub::{Hub, model_info};
use crate::record::Body;
use crate::session::{Draft, Session};

pub async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    session(&hub, &args, &context)?;
    let models: Vec<Value> = hub.catalog().all().iter().map(|model| model_info(model.about())).collect();
    answer(json!({"models": models}))
}

pub async fn set(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (provider, id) =
        (args.text("provider").unwrap_or_default(), args.text("modelId").unwrap_or_default());
    let model = hub.model_named(provider, id)?;
    Ok(change(&hub, &session, &model, json!({"model": model_info(model.about())})))
}

pub async fn cycle(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let header = session.header();
    if hub.catalog().all().len() < 2 {
        return answer(Value::Null);
    }
    let model = match args.text("direction") {
        Some("backward") => hub.catalog().previous(&header.provider, &header.model),
        Some(_) | None => hub.catalog().next(&header.provider, &header.model),
    };
    let told =
        json!({"model": model_info(model.about()), "thinkingLevel": header.thinking, "isScoped": false});
    Ok(change(&hub, &session, &model, told))
}

fn change(hub: &Hub, session: &Arc<Session>, model: &Arc<dyn Model>, told: Value) -> Reply {
    let (provider, model_id) = (model.about().provider.clone(), model.about().id.clone());
    let mut draft = Draft::new(session, hub.now_ms());
    (draft.header.provider, draft.header.model) = (provider.clone(), model_id.clone());
    draft.append(Body::ModelChange { provider, model_id });
    draft.into_reply(told, hub.kernel())
}

pub async fn set_thinking(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let level: Thinking = args
        .text("level")
        .unwrap_or_default()
        .parse()
        .map_err(|_| Fault::invalid("level: is no level of thinking").with("path", "/level"))?;
    Ok(think(&hub, &session, level, json!({})))
}

pub async fn cycle_thinking(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let header = session.header();
    if !hub.model(&header)?.about().thinking {
        return answer(Value::Null);
    }
    let level = header.thinking.next();
    Ok(think(&hub, &session, level, json!({"level": level})))
}

fn think(hub: &Hub, session: &Arc<Session>, level: Thinking, told: Value) -> Reply {
    let mut draft = Draft::new(session, hub.now_ms());
    draft.header.thinking = level;
    draft.append(Body::ThinkingLevelChange { thinking_level: level });
    draft.into_reply(told, hub.kernel())
}
