//! The reference model of workflows: an interpreter written from the contract ("What a definition means"), the seed and the guide,
//! random definitions, and a script that plays the same world to the interpreter and to the system under test.
//!
//! The interpreter never looks at the engine. The script ends one piece of work at a time, kills the process, cancels, pauses,
//! retries and forks; after every act both must have the same things open under the same keys, and the same states.

mod closing_steps;
pub mod definition;
pub mod dice;
mod interpreter;
mod loops;
mod race;
mod rollback;
pub mod run;
pub mod script;
pub mod self_running;
mod stopping;
mod world;
