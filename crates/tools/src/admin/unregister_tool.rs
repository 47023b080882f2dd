//! `admin.unregisterTool`: takes away a tool that was registered at run time, and no other.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::json;

use crate::admin::Desk;
use crate::listing;

pub fn action(desk: Arc<Desk>) -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": false
    });
    let work = move |args: Args, context: Context| std::future::ready(unregister(&desk, &args, &context));
    let about =
        "Takes away a tool that admin.registerTool added. Calls of it that run already go to their end.";
    let policy = Policy { destructive: true, ..Policy::stored() };
    Ok(Action::tool("admin.unregisterTool", about, input, policy, work)?
        .titled("Unregister a tool")
        .also_called("admin/unregisterTool"))
}

fn unregister(desk: &Desk, args: &Args, context: &Context) -> Result<Reply, Halt> {
    let name = args.text("name").unwrap_or_default();
    let _changing = desk.changing.lock();
    let registry = context.kernel.registry();
    if !registry.unregister_owned(&context.principal.tenant, name) {
        const SHOWN_CHARACTERS: usize = 128;
        let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
        let what = format!("no tool named '{shown}' was registered at run time");
        return Err(Fault::new(Code::NotFound, what).with("name", shown).into());
    }
    listing::changed(&context.kernel, desk.settings.search_above).map_err(Fault::from)?;
    Ok(Output::json(json!({"name": name, "unregistered": true})).into())
}
