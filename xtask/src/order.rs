//! `cargo xtask order`: which functions start-up and a first call run, for the linker to put side by side.
//!
//! The program runs under valgrind, which writes down every function that was entered. It takes a release build that still has
//! its symbols. See `crates/app/build.rs` for what the list is good for.
use crate::process::{self, Group};
use crate::{Request, release, workspace};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIST: &str = "crates/app/startup.order";
const HEAD: &str =
    "# Functions that start-up and a first call run. Written by `cargo xtask order`; see build.rs.\n";
const LIMIT: Duration = Duration::from_secs(300);
/// What valgrind calls the file of functions that lie outside `.text`, as those do that an earlier list has put side by side.
const UNKNOWN: &str = "???";
/// What a first call runs on a processor that has instructions for it; the one that valgrind plays has none.
const UNSEEN: [&str; 1] = ["_RNvNtNtCs*_4sha26sha2563x8613digest_blocks*"];
const PAUSE: Duration = Duration::from_millis(200);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"order","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"x"}}}"#;

pub fn run(request: &Request) -> Result<bool> {
    let binary = workspace::given_or(request, || release::build(request, &["-Cstrip=none"]))?;
    let folder = tempfile::tempdir()?;
    let mut entered = over_stdio(&binary, folder.path())?;
    entered.extend(over_http(&binary, folder.path())?);
    let mut names: BTreeSet<String> = UNSEEN.map(str::to_owned).into();
    for name in with_aliases(&entered, &symbols(&binary)?) {
        names.extend(is_symbol(name).then(|| pattern(name)));
    }
    if names.len() == UNSEEN.len() {
        bail!("{} has no symbols; build it with `cargo rustc … -- -Cstrip=none`", binary.display());
    }
    let list: String = names.iter().map(|name| format!("{name}\n")).collect();
    std::fs::write(workspace::root().join(LIST), format!("{HEAD}{list}"))?;
    println!("{} functions in {LIST}", names.len());
    Ok(true)
}

/// The functions entered by a conversation over stdio, from start to end.
fn over_stdio(binary: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let said = folder.join("said");
    std::fs::write(&said, [INITIALIZE, INITIALIZED, LIST_TOOLS, CALL, ""].join("\n"))?;
    let mut watched = Watched::new(binary, folder, "stdio");
    watched.command.args(["mcp", "--data-dir"]).arg(folder.join("stdio.data"));
    watched.command.stdin(std::fs::File::open(said)?);
    watched.entered(|_| Ok(()))
}

/// The functions entered by a server that is called and then told to stop.
fn over_http(binary: &Path, folder: &Path) -> Result<BTreeSet<String>> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut watched = Watched::new(binary, folder, "http");
    watched.command.args(["serve", "--listen", &address.to_string(), "--data-dir"]);
    watched.command.arg(folder.join("http.data")).stdin(Stdio::null());
    watched.entered(|group| {
        let head = post(address, "", INITIALIZE)?;
        let session = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        let session = format!("Mcp-Session-Id: {}\r\n", session.context("no session")?);
        post(address, &session, INITIALIZED)?;
        post(address, &session, CALL)?;
        group.ask_to_end();
        Ok(())
    })
}

/// Posts until the server is there, and gives its answer.
fn post(address: SocketAddr, headers: &str, body: &str) -> Result<String> {
    let began = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) if began.elapsed() > LIMIT => return Err(error).context("the server did not come up"),
            Err(_) => std::thread::sleep(PAUSE),
        }
    };
    stream.set_read_timeout(Some(LIMIT))?;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The program under valgrind, which leaves a file of what it saw.
struct Watched {
    command: Command,
    binary: PathBuf,
    seen: PathBuf,
}

impl Watched {
    fn new(binary: &Path, folder: &Path, name: &str) -> Watched {
        let seen = folder.join(format!("{name}.callgrind"));
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--demangle=no"]);
        command.arg(format!("--callgrind-out-file={}", seen.display())).arg(binary);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Watched { command, binary: binary.to_owned(), seen }
    }

    fn entered(mut self, drive: impl FnOnce(&Group) -> Result<()>) -> Result<BTreeSet<String>> {
        let mut group =
            Group::spawn(&mut self.command).context("valgrind is needed: apt install valgrind")?;
        drive(&group)?;
        let began = Instant::now();
        while !group.has_ended() {
            if began.elapsed() > LIMIT {
                bail!("the program did not end");
            }
            std::thread::sleep(PAUSE);
        }
        let seen = std::fs::read_to_string(&self.seen).context("what valgrind saw")?;
        Ok(functions(&seen, &self.binary.to_string_lossy()))
    }
}

/// The functions of one file that a callgrind file tells of. A name is written out once, with a number that stands for it
/// from then on: `fn=(12) name`, later `fn=(12)`.
fn functions(seen: &str, file: &str) -> BTreeSet<String> {
    let (mut files, mut names) = (BTreeMap::new(), BTreeMap::new());
    let (mut here, mut found) = (false, BTreeSet::new());
    for line in seen.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        match key {
            "ob" => here = resolve(&mut files, value).is_some_and(|name| [file, UNKNOWN].contains(&name)),
            "cob" => drop(resolve(&mut files, value)),
            "cfn" => drop(resolve(&mut names, value)),
            "fn" => {
                let name = resolve(&mut names, value);
                found.extend(name.filter(|_| here).map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

fn resolve<'a, 'b>(known: &'a mut BTreeMap<&'b str, &'b str>, value: &'b str) -> Option<&'a str> {
    let (number, name) = value.split_once(' ').unwrap_or((value, ""));
    if !name.is_empty() {
        known.insert(number, name);
    }
    known.get(number).copied()
}

/// Every name of the program, by its address.
fn symbols(binary: &Path) -> Result<String> {
    let mut command = Command::new("nm");
    command.arg("--defined-only").arg(binary);
    Ok(process::run(&mut command, LIMIT, false)?.require("nm, of binutils")?.stdout)
}

/// The names with all others of the same functions. The compiler makes one function of several that are alike; its section has
/// the name of one of them, and valgrind may tell another.
fn with_aliases<'a>(names: &'a BTreeSet<String>, symbols: &'a str) -> BTreeSet<&'a str> {
    let rows = symbols.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.nth(1)?))
    });
    let mut at: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (address, name) in rows {
        at.entry(address).or_default().push(name);
    }
    let is_entered = |alike: &&Vec<&str>| alike.iter().any(|name| names.contains(*name));
    let alike = at.values().filter(is_entered).flatten().copied();
    // A call of itself has a name of its own.
    alike.chain(names.iter().map(|name| name.split('\'').next().unwrap_or(name))).collect()
}

/// What has no symbol is called by its address, or by what valgrind thinks it is.
fn is_symbol(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    name.bytes().all(fits) && !name.starts_with("0x")
}

/// The name of a function without what changes from build to build: hashes, and the numbers of copies.
fn pattern(name: &str) -> String {
    let (name, copy) =
        match [".llvm.", ".constprop.", ".isra.", ".part."].iter().filter_map(|mark| name.find(mark)).min() {
            Some(at) => (&name[..at], "*"),
            None => (name, ""),
        };
    let is_hash = |text: &str| {
        text.len() == 17 && text.ends_with('E') && text[..16].bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match name.rsplit_once("17h") {
        Some((before, hash)) if is_hash(hash) => format!("{before}17h*E{copy}"),
        Some(_) | None => format!("{}{copy}", without_crate_numbers(name)),
    }
}

/// In names of the newer form a crate is `Cs`, its number in letters and digits, and `_`.
fn without_crate_numbers(name: &str) -> String {
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    let mut parts = name.split("Cs");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('_') {
            Some((number, rest))
                if number.len() > 8 && number.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                text.push_str("Cs*_");
                text.push_str(rest);
            }
            Some(_) | None => {
                text.push_str("Cs");
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{functions, is_symbol, pattern, with_aliases};

    #[test]
    fn names_lose_what_changes_from_build_to_build() {
        assert_eq!(pattern("_ZN6kernel4path17h0123456789abcdefE"), "_ZN6kernel4path17h*E");
        assert_eq!(pattern("_ZN6kernel4path17h0123456789abcdefE.llvm.42"), "_ZN6kernel4path17h*E*");
        assert_eq!(pattern("_RNvCsfLfy6EI15iL_7___rustc11___rdl_alloc"), "_RNvCs*_7___rustc11___rdl_alloc");
        assert_eq!(pattern("yy_reduce.constprop.0"), "yy_reduce*");
        assert_eq!(pattern("sqlite3VdbeExec"), "sqlite3VdbeExec");
        assert_eq!(["sqlite3VdbeExec", "(below main)", "0x8e0a30"].map(is_symbol), [true, false, false]);
    }

    #[test]
    fn functions_that_became_one_are_named_by_all_their_names() {
        let symbols = "0010 t one\n0010 t other\n0020 T never\n0030 t self\n";
        let entered = ["other", "self'2", "gone"].map(str::to_owned).into();
        let found: Vec<&str> = with_aliases(&entered, symbols).into_iter().collect();
        assert_eq!(found, ["gone", "one", "other", "self"]);
    }

    #[test]
    fn only_functions_of_the_program_that_were_entered_count() {
        let seen = "ob=(1) /bin/o8\nfn=(1) main\n+3 4\ncob=(2) /lib/libc.so\ncfn=(2) malloc\ncalls=1\nfn=(3) work\n\
                    ob=(2)\nfn=(2)\nob=(1)\nfn=(4) rest\ncfn=(5) never\nob=(3) ???\nfn=(6) first\n";
        let found: Vec<String> = functions(seen, "/bin/o8").into_iter().collect();
        assert_eq!(found, ["first", "main", "rest", "work"]);
    }
}
