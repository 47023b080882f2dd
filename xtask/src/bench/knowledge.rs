//! How fast knowledge is written, indexed and found, beside a Qdrant server on the same vectors.
use super::lines;
use crate::{Request, vectors};
use anyhow::Result;

pub fn run(request: &Request) -> Result<()> {
    let mut variables = vec![(vectors::VARIABLE, vectors::server(request.verbose)?.into_os_string())];
    if request.quick {
        variables.push(("O8_QUICK", "1".into()));
    }
    lines::run_with("knowledge", "orchestr8-knowledge", &variables, request)
}
