//! `@orchestr8/echo`: gives back what it gets.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::Fault;

use super::{Agent, Answer, Call};

pub const ID: &str = "@orchestr8/echo";

pub struct Echo;

impl Agent for Echo {
    fn id(&self) -> &str {
        ID
    }

    fn about(&self) -> &str {
        "Gives back its input, with all expressions in it resolved."
    }

    fn is_pure(&self) -> bool {
        true
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        std::future::ready(Ok(Answer::from(call.input))).boxed()
    }
}
