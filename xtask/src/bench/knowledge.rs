//! How fast knowledge is written, indexed and found, beside a Qdrant server on the same vectors: those of real
//! texts if a folder of collections is named.
use super::lines;
use crate::{Request, vectors};
use anyhow::{Context, Result};

pub fn run(request: &Request) -> Result<()> {
    let mut variables = vec![(vectors::VARIABLE, vectors::server(request.verbose)?.into_os_string())];
    if request.quick {
        variables.push(("O8_QUICK", "1".into()));
    }
    if let Some(folder) = request.words.get(2) {
        let folder = std::fs::canonicalize(folder).with_context(|| format!("cannot read {folder}"))?;
        variables.push(("O8_COLLECTIONS", folder.into_os_string()));
    }
    lines::run_with("knowledge", "orchestr8-knowledge", &variables, request)
}
