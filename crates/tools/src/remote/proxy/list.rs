//! `upstream.list`: what other servers offer, as faces list it.

use orchestr8_contract::Output;
use orchestr8_kernel::action::{Action, Policy, Slotting};
use orchestr8_kernel::{Args, Context, schema};
use serde_json::{Value, json};

use super::Upstreams;
use super::prompts::named;

pub const LIST: &str = "upstream.list";

pub fn action(upstreams: Upstreams) -> Result<Action, schema::Error> {
    let kinds = ["resources", "resourceTemplates", "prompts"];
    let input = json!({"type": "object", "properties": {"list": {"enum": kinds}}, "required": ["list"]});
    let policy = Policy { slotting: Slotting::Free, ..Policy::quick_read() };
    let about = "Lists the resources, templates or prompts of other MCP servers.";
    Action::tool(LIST, about, input, policy, move |args, context| {
        std::future::ready(Ok(Output::json(listed(&upstreams, &args, &context)).into()))
    })
    .map(Action::hidden)
}

fn listed(upstreams: &Upstreams, args: &Args, context: &Context) -> Value {
    let desks = upstreams.all(&context.principal.tenant);
    match args.text("list").unwrap_or_default() {
        "prompts" => {
            let prompts = named(upstreams, context).into_iter().filter(|prompt| !prompt.quarantined);
            let listed = prompts.map(|mut prompt| {
                prompt.listed.insert("name".into(), prompt.name.into());
                Value::Object(prompt.listed)
            });
            listed.collect()
        }
        "resources" => desks.iter().flat_map(|desk| desk.catalog.get().resources.clone()).collect(),
        _ => desks.iter().flat_map(|desk| desk.catalog.get().templates.clone()).collect(),
    }
}
