//! `cargo xtask run`: builds everything and starts the server with example data, to look at.
use crate::dashboard::Dashboard;
use crate::{Request, process, server, workspace};
use anyhow::{Context, Result, bail};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PORT: u16 = 8088;

pub fn run(request: &Request) -> Result<bool> {
    eprintln!("Building the dashboard (1 of 2)");
    match Dashboard::prepare(request.verbose).and_then(|dashboard| dashboard.build(request.verbose)) {
        Ok(note) => eprintln!("    {note}"),
        // Everything but the dashboard works without Node.
        Err(error) => eprintln!("    skipped, so the server has no pages: {error:#}"),
    }
    eprintln!("Building orchestr8 (2 of 2); the first build takes five to ten minutes on two cores");
    let binary = workspace::orchestr8_in_sight(request)?;
    let port = if TcpListener::bind(("127.0.0.1", PORT)).is_ok() { PORT } else { server::free_port()? };
    let data = workspace::target()?.join("demo");
    pull(&binary, &data, request.verbose);
    let mut command = Command::new(&binary);
    command.args(["serve", "--demo", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]).arg(&data);
    // Warnings and errors only, between the lines below.
    command.current_dir(workspace::root()).env("ORCHESTR8_LOGGING_LEVEL", "warn");
    let mut running = process::Group::spawn(&mut command)?;
    server::wait(port, "/readyz", &mut running).context("the server did not start")?;
    let program = binary.display();
    let reach = if port == PORT { String::new() } else { format!(" --server http://127.0.0.1:{port}") };
    println!(
        "\norchestr8 is running with example data: http://127.0.0.1:{port}/\n\nNext, in another terminal:\n\
         \n  {program} run examples/hello-world.json{reach}      # run a workflow and watch it in the browser\
         \n  {program} chat --session first hello{reach}         # talk to an agent\
         \n  {program} demo                                      # kill -9 a run and see it resume\n\
         \nCtrl-C stops it. Its data is in {}.",
        data.display()
    );
    if !running.wait() {
        bail!("the server ended by itself");
    }
    Ok(true)
}

/// How long fetching the embedder may take.
const PULL_LIMIT: Duration = Duration::from_secs(300);

/// Fetches the embedding model. Without a network documents are found by full-text search alone.
fn pull(binary: &Path, data: &Path, show: bool) {
    let mut command = Command::new(binary);
    command.args(["models", "pull", "--data-dir"]).arg(data);
    match process::run(&mut command, PULL_LIMIT, show) {
        Ok(done) if done.success => {}
        Ok(_) | Err(_) => {
            eprintln!(
                "    no embedding model could be fetched: documents are found by full-text search alone"
            )
        }
    }
}
