//! The dashboard face: pages for people, built from `dashboard/`, carried in the program and served at the root.
//!
//! ```text
//! GET a page or an asset -> files (built with Node, or a plain page that says how) ; anything else -> the other faces
//! ```
//!
//! It knows no action: the pages ask the public API like every other client. `/` is also where sessions listen, so a request
//! that asks for another protocol goes on to them.

mod files;
mod serve;

pub use files::is_built;
pub use serve::{is_page, over};
