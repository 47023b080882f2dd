//! Tests of agents: the coordinator alone, and its actions on a kernel.

mod actions;
mod coordinator;
mod serialism;
mod world;
