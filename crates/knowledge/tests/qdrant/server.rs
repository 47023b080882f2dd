//! A Qdrant server of our own, on a free port of this machine, with its data in a folder that goes with it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Url;
use tempfile::TempDir;

pub struct Server {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    pub async fn start() -> Self {
        let mut server = Self { folder: tempfile::tempdir().unwrap(), port: free_port(), child: None };
        server.start_again().await;
        server
    }

    pub fn url(&self) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}", self.port)).unwrap()
    }

    #[allow(clippy::disallowed_methods, reason = "tests are told by the environment where the server is")]
    pub async fn start_again(&mut self) {
        let program = std::env::var_os("O8_QDRANT");
        let program =
            PathBuf::from(program.expect("O8_QDRANT names the server; run `cargo xtask test vectors`"));
        let folder = self.folder.path();
        let child = Command::new(program)
            .current_dir(folder)
            .env("QDRANT__SERVICE__HOST", "127.0.0.1")
            .env("QDRANT__SERVICE__HTTP_PORT", self.port.to_string())
            .env("QDRANT__SERVICE__GRPC_PORT", free_port().to_string())
            .env("QDRANT__STORAGE__STORAGE_PATH", folder.join("storage"))
            .env("QDRANT__STORAGE__SNAPSHOTS_PATH", folder.join("snapshots"))
            .env("QDRANT__TELEMETRY_DISABLED", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        self.child = Some(child);
        let ready = self.url().join("readyz").unwrap();
        orchestr8_testing::within(async {
            while !reqwest::get(ready.clone()).await.is_ok_and(|answer| answer.status().is_success()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn lose_everything(&self) {
        for name in ["storage", "snapshots"] {
            let _ = std::fs::remove_dir_all(self.folder.path().join(name));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
