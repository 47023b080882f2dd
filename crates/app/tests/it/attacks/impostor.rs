//! A hostile server: it takes every request, says that it is orchestr8, and remembers what it was sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct Impostor {
    pub address: SocketAddr,
    heard: Arc<Mutex<String>>,
}

/// Whatever a client may want to hear.
const ANSWER: &str = r#"{"status":"ok","name":"orchestr8","healthy":true,"pid":1,"proof":"00","executions":[],"documents":[]}"#;

impl Impostor {
    pub fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// On the address of a server that is gone.
    pub fn start_at(address: SocketAddr) -> Self {
        loop {
            // The system may need a moment to give the address away.
            if let Ok(listener) = TcpListener::bind(address) {
                return Self::on(listener);
            }
            std::thread::yield_now();
        }
    }

    fn on(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(String::new()));
        let ears = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ears = ears.clone();
                std::thread::spawn(move || answer(stream, &ears));
            }
        });
        Self { address, heard }
    }

    /// Everything it was sent, head and body.
    pub fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn answer(mut stream: TcpStream, heard: &Mutex<String>) {
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        heard.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
        let length = ANSWER.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        if stream.write_all([head.as_str(), ANSWER].concat().as_bytes()).is_err() {
            return;
        }
    }
}
