//! Somebody who reads a page of the documents and does what it says, at a shell of their own.
//!
//! Blocks marked `console` show commands behind `$ ` and what they say; blocks without a mark, and those marked `sh`, are typed in
//! as they are. `…` in an output stands for anything. Every command must succeed, unless its output is shown to be an error.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::program::{Place, Said};
use crate::server::Server;
use crate::workflows::root;

/// A block of commands may start a demo, a worker, or forty commands on a busy machine; one that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// The port the pages speak of; every reader has one of their own.
const PORT: &str = "8088";

/// What is not done here. Programs that build or measure everything begin in the repository, and would run the tests that run
/// them; `the_commands_that_build_are_there` looks at each. The embedder comes over the network, which
/// tests do without.
const ELSEWHERE: [&str; 3] = ["cargo ", "npm ", "orchestr8 models pull"];

/// The words by which an output shows that its command did not succeed, or not yet.
const FAILURES: [&str; 4] = ["error: ", "{\"error\":", " failed", "keeps until somebody acts"];

/// What a page writes, and what it stands for here.
pub type Meaning = (&'static str, fn(&Place) -> String);

pub struct Reader {
    pub place: Place,
    port: u16,
    pub server: Option<Server>,
    /// Groups of processes that go on in the background.
    groups: Vec<Pid>,
    commands: usize,
    /// Asked when a name is met, since what a page speaks of comes to be on the way.
    meanings: &'static [Meaning],
}

impl Reader {
    /// With the examples at hand, the program on the path, and a port that nobody else has.
    pub fn new(meanings: &'static [Meaning]) -> Self {
        let port = free_port();
        let place = Place::new().with("ORCHESTR8_HTTP_LISTEN", &format!("127.0.0.1:{port}"));
        let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", place.path().display());
        let place = place.with("PATH", &path);
        crate::workflows::copy(&root().join("examples"), &place.path().join("examples"));
        std::fs::create_dir(place.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_orchestr8"), place.path().join("bin/orchestr8"))
            .unwrap();
        Self { place, port, server: None, groups: Vec::new(), commands: 0, meanings }
    }

    /// Starts the server that the page takes for granted, or tells to start.
    pub fn serve(&mut self) {
        if self.server.is_none() {
            self.server = Some(Server::start_at(&self.place, self.port, &[]));
        }
    }

    /// Does everything the page says, in its order; gives how many commands that were.
    pub fn read(mut self, page: &str) -> usize {
        for (mark, block) in blocks(page) {
            match mark {
                "console" => self.compare(block),
                "" | "sh" => self.follow(block),
                _ => {}
            }
        }
        self.commands
    }

    /// Commands, each with what it says.
    fn compare(&mut self, block: &str) {
        for step in block.split("$ ").skip(1).collect::<Vec<_>>() {
            let (command, expected) = whole(step);
            if self.is_serving(&command) {
                continue;
            }
            let said = self.run(&command);
            let texts = [both(&said.err, &said.out), both(&said.out, &said.err)];
            let is_so = texts.iter().any(|text| is_like(expected.trim(), text));
            assert!(is_so, "$ {command}\n{}\nis not\n{expected}", texts[0]);
            let shows_failure = FAILURES.iter().any(|words| expected.contains(words));
            assert!(said.code == Some(0) || shows_failure, "$ {command}\n{said:?}");
            self.commands += 1;
        }
    }

    /// A block as it would be pasted.
    fn follow(&mut self, block: &str) {
        let mut lines = Vec::new();
        for line in block.lines() {
            if !self.is_serving(line) && !ELSEWHERE.iter().any(|program| line.starts_with(program)) {
                lines.push(line);
            }
        }
        let script = lines.join("\n");
        let count = lines.iter().filter(|line| is_command(line)).count();
        if count == 0 {
            return;
        }
        let said = self.run(&script);
        assert_eq!(said.code, Some(0), "{script}\n{}\n{}", said.out, said.err);
        self.commands += count;
    }

    /// Starts the server if that is what the command does: what follows comes when it is ready, as with a person.
    fn is_serving(&mut self, command: &str) -> bool {
        let is_it = matches!(command.trim_end_matches('&').trim(), "orchestr8 serve");
        if is_it {
            self.serve();
        }
        is_it
    }

    /// Runs a script to the end of its last command that is not in the background.
    fn run(&mut self, script: &str) -> Said {
        let mut script = script.replace(PORT, &self.port.to_string());
        for (written, meant) in self.meanings {
            if script.contains(written) {
                script = script.replace(written, &meant(&self.place));
            }
        }
        // An answer that says no is a failure of a command in a document.
        let script = format!("curl() {{ command curl --fail-with-body \"$@\"; }}\n{script}\n");
        let files = ["out", "err"].map(|name| self.place.path().join(format!("said.{name}")));
        let [out, err] = files.each_ref().map(|file| File::create(file).unwrap());
        let mut shell = Command::new("/bin/sh");
        let like = self.place.command(&[]);
        shell.args(["-e", "-c", &script]).env_clear().current_dir(self.place.path());
        shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if self.server.is_some() {
            shell.env("ORCHESTR8_SERVER", format!("http://127.0.0.1:{}", self.port));
        }
        shell.process_group(0).stdin(Stdio::null()).stdout(out).stderr(err);
        let child = shell.spawn().unwrap();
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
        let code = ended(child, group);
        if script.lines().any(|line| line.ends_with('&')) {
            self.groups.push(group);
        }
        let [out, err] = files.map(|file| std::fs::read_to_string(file).unwrap());
        Said { code, out, err: self.place.anonymous(&err) }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The end of a shell, or none in time.
fn ended(mut shell: Child, group: Pid) -> Option<i32> {
    let (done, heard) = channel();
    std::thread::spawn(move || done.send(shell.wait().unwrap().code()));
    heard.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let _ = kill_process_group(group, Signal::KILL);
        None
    })
}

/// The blocks of a page, each with its mark.
pub fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = page.split("\n```").skip(1).step_by(2);
    inside.filter_map(|block| block.split_once('\n'))
}

/// Whether a line of a block is something to do.
pub fn is_command(line: &str) -> bool {
    !line.is_empty() && !line.starts_with([' ', '#', '}'])
}

/// A command with the lines it goes on over, and the output below it: a quotation that is open, or a `\` at the end, goes on.
fn whole(step: &str) -> (String, &str) {
    let mut end = 0;
    for line in step.split_inclusive('\n') {
        end += line.len();
        let command = &step[..end];
        if command.matches('\'').count().is_multiple_of(2) && !command.trim_end().ends_with('\\') {
            break;
        }
    }
    (step[..end].trim().to_owned(), &step[end..])
}

/// On a terminal both come together: progress before its result, words of advice after it.
fn both(one: &str, other: &str) -> String {
    format!("{}\n{}", one.trim_end(), other.trim_end()).trim().to_owned()
}

/// Whether a text is as a page says: `…` stands for anything, over lines too.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn patterns_stand_for_anything_in_their_place() {
    assert!(is_like("a …\nb", "a xyz\nb") && is_like("…", "") && is_like("a…c…e", "abcde"));
    assert!(!is_like("a…b", "ac") && !is_like("a", "ab") && !is_like("a…b…a", "aba b"));
}

#[test]
fn commands_may_go_on_over_lines() {
    assert_eq!(whole("a 'b\nc' d\nout"), ("a 'b\nc' d".to_owned(), "out"));
    assert_eq!(whole("a \\\n b\nout\n"), ("a \\\n b".to_owned(), "out\n"));
    assert_eq!(whole("a"), ("a".to_owned(), ""));
    let page = "x\n```sh\na\n```\ny\n```\nb\n```\n";
    assert_eq!(blocks(page).collect::<Vec<_>>(), [("sh", "a"), ("", "b")]);
}

#[test]
#[should_panic(expected = "is not")]
fn a_page_that_tells_something_else_is_found_out() {
    Reader::new(&[]).read("\n```console\n$ orchestr8 errors NOT_FOUND --quiet\nsomething else\n```\n");
}

#[test]
#[should_panic(expected = "no-such-command")]
fn a_command_that_fails_is_found_out() {
    Reader::new(&[]).read("\n```\norchestr8 no-such-command\n```\n");
}
