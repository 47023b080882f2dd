//! What a durable write costs here at least: without it a figure from another disk says nothing.
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const WRITES: usize = 300;
const BYTES: usize = 4096;

/// Appends and flushes again and again; half of the flushes took at most this many microseconds.
pub fn flush_us(folder: &Path) -> Result<f64> {
    let path = folder.join("flushes");
    let mut file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut took = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let began = Instant::now();
        file.write_all(&[7; BYTES])?;
        file.sync_data()?;
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(&path)?;
    took.sort_unstable_by(f64::total_cmp);
    Ok(took[WRITES / 2])
}

#[cfg(test)]
mod tests {
    use super::flush_us;

    #[test]
    fn a_flush_takes_time_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(flush_us(folder.path()).unwrap() > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
