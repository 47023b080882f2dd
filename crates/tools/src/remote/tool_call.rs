//! A tool of another server as an action of ours: finds the instance of the caller's tenant and makes the call there.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::action::Work;
use orchestr8_kernel::{Args, Context, Halt, Reply};

use super::call::Call;
use super::call_hold::CallHold;
use super::served_server::ServedServer;
use super::supervise::Surroundings;

#[derive(Clone)]
pub struct ToolCall {
    /// Weak, since it is a part of the registry that the surroundings hold.
    pub around: Weak<Surroundings>,
    pub served: Arc<ServedServer>,
    /// Its own name there.
    pub tool: String,
    pub repeatable: bool,
    /// See `Call::insists`.
    pub insists: Arc<AtomicBool>,
    pub timeout_ms: u64,
}

impl Work for ToolCall {
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>> {
        let call = self.clone();
        async move { call.make(args, context).await }.boxed()
    }
}

impl ToolCall {
    async fn make(self, args: Args, context: Context) -> Result<Reply, Halt> {
        let around = self.around.upgrade();
        let around = around.ok_or_else(|| Fault::new(Code::ShuttingDown, "the server is shutting down"))?;
        let in_use = around.instance(&self.served, &context.principal.tenant)?;
        // The registry of instances need not outlive its calls.
        drop(around);
        let desk = in_use.desk().clone();
        let call = Call {
            hold: CallHold::new(&desk, in_use, &context)?,
            desk,
            tool: self.tool,
            repeatable: self.repeatable,
            insists: self.insists,
            timeout_ms: self.timeout_ms,
        };
        call.make(args, context).await.map(Reply::from)
    }
}
