//! `orchestr8 chat`: a conversation with an agent at the terminal, or one question and its answer.

mod asking;
mod commands;
mod conversation;
mod lines;
mod once;
mod terminal;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use orchestr8_contract::Code;

use super::Shell;
use super::interrupts::Interrupts;
use super::reaching::{Intent, Reaching};
use crate::failure::Failure;
use crate::reach::Reach;
use crate::talk::Talk;
use conversation::{Conversation, Wanted};

#[derive(Args)]
#[command(
    after_help = "Without PROMPT on a terminal it is a conversation; /help lists what you can do in it.\n\
    With PROMPT, or when stdin is no terminal, it answers once; stdout is the answer and nothing else.\n\
    A word '-' in PROMPT stands for what is on stdin."
)]
pub struct Chat {
    /// Go on with this session, or begin one of this name. Without it, one answer is forgotten again.
    #[arg(long, short, value_name = "ID")]
    session: Option<String>,
    /// The model that answers [default: that of the session, or of the installation].
    #[arg(long, short, value_name = "PROVIDER/ID")]
    model: Option<String>,
    /// How hard it thinks.
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS)]
    thinking: Option<String>,
    /// What the model is told before everything else. Only for a new session.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The folder the session works in. Only for a new session.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What to say.
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
    #[command(flatten)]
    reaching: Reaching,
}

const LEVELS: [&str; 7] = ["off", "none", "minimal", "low", "medium", "high", "xhigh"];

/// More is not read from stdin; a prompt has fewer letters.
const STDIN_BYTES: u64 = 10 * 1024 * 1024;

impl Chat {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let wanted = self.wanted()?;
        let prompt = self.prompt()?;
        self.reaching.run(shell, Intent::Converse, async |reach| {
            let interrupts = Interrupts::watch()?;
            converse(shell, reach, interrupts, &wanted, prompt.as_deref()).await
        })
    }

    fn wanted(&self) -> Result<Wanted, Failure> {
        let model = match &self.model {
            None => None,
            Some(named) => Some(commands::model_of(named)?),
        };
        let cwd = match &self.cwd {
            None => None,
            // A server may be on another machine: it says whether the folder is there.
            Some(folder) => Some(std::path::absolute(folder).map_err(|cause| {
                Failure::new(Code::InvalidArgument, format!("--cwd {}: {cause}", folder.display()))
            })?),
        };
        Ok(Wanted {
            session: self.session.clone(),
            model,
            thinking: self.thinking.clone(),
            system: self.system.clone(),
            cwd: cwd.map(|cwd| cwd.display().to_string()),
        })
    }

    /// What to say once; none for a conversation.
    fn prompt(&self) -> Result<Option<String>, Failure> {
        let is_terminal = std::io::stdin().is_terminal();
        let said = match (self.prompt.is_empty(), is_terminal) {
            (true, true) => return Ok(None),
            (true, false) => stdin()?,
            (false, _) if self.prompt.iter().any(|word| word == "-") => {
                let piped = stdin()?;
                let words = self.prompt.iter().map(|word| if word == "-" { piped.as_str() } else { word });
                words.collect::<Vec<_>>().join(" ")
            }
            (false, _) => self.prompt.join(" "),
        };
        match said.trim().is_empty() {
            true => Err(Failure::new(Code::InvalidArgument, "there is nothing to say")
                .hinting("orchestr8 chat 'hello', or run it on a terminal")),
            false => Ok(Some(said)),
        }
    }
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES + 1).read_to_string(&mut text);
    read.map_err(|cause| Failure::new(Code::InvalidArgument, format!("stdin cannot be read: {cause}")))?;
    match u64::try_from(text.len()).is_ok_and(|bytes| bytes <= STDIN_BYTES) {
        true => Ok(text.trim_end_matches('\n').to_owned()),
        false => Err(Failure::new(Code::PayloadTooLarge, format!("stdin has more than {STDIN_BYTES} bytes"))),
    }
}

async fn converse(
    shell: &Shell,
    reach: &Reach,
    interrupts: Interrupts,
    wanted: &Wanted,
    prompt: Option<&str>,
) -> Result<u8, Failure> {
    let talk = Talk::open(reach).await?;
    let mut conversation = match Conversation::enter(shell, talk, interrupts, wanted).await {
        Ok(conversation) => conversation,
        Err((talk, failure)) => {
            talk.close().await;
            return Err(failure);
        }
    };
    conversation.say_if_offline();
    let done = match prompt {
        Some(prompt) => once::answer(&mut conversation, prompt, wanted.session.is_some()).await,
        None => terminal::hold(&mut conversation).await,
    };
    conversation.leave().await;
    done
}
