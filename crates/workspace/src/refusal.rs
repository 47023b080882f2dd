//! Why a call did not succeed, before it is known which call it was.

use orchestr8_contract::envelope::Thrown;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::peer::Ask;
use orchestr8_kernel::ports::store;
use rustix::io::Errno;
use serde_json::{Map, Value};

/// A failure of a step; the desk makes the canonical error of it.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub details: Map<String, Value>,
    /// The rule that would have been broken, if it is one that always holds.
    pub invariant: Option<&'static str>,
    pub thrown: Option<Box<Thrown>>,
    /// It came from a place that has no code of its own for it.
    pub unknown: bool,
    /// It kept something from beginning at all.
    pub startup: bool,
    /// It is no failure: the client is asked, and calls again with the answers.
    pub asks: Option<Vec<Ask>>,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
            invariant: None,
            thrown: None,
            unknown: false,
            startup: false,
            asks: None,
        }
    }

    pub fn invariant(id: &'static str, message: impl Into<String>) -> Self {
        Self { invariant: Some(id), ..Self::new(Code::InvariantViolation, message) }
    }

    pub fn startup(code: Code, message: impl Into<String>) -> Self {
        Self { startup: true, ..Self::new(code, message) }
    }

    /// The store did not answer, or did not keep what it was given.
    pub fn of_store(error: store::Error) -> Self {
        Self::of_fault(store_fault(error))
    }

    /// A failure of the kernel's.
    pub fn of_fault(fault: Fault) -> Self {
        let details = fault.details.as_deref().cloned().unwrap_or_default();
        Self { details, ..Self::new(fault.code, fault.message.into_owned()) }
    }

    /// A failure as requests outside of the governed tools are answered.
    pub fn into_fault(self) -> Fault {
        let fault = Fault::new(self.code, self.message);
        self.details.into_iter().fold(fault, |fault, (name, value)| fault.with(&name, value))
    }

    /// Whatever it was, it has no code here.
    pub fn unknown(thrown: Thrown) -> Self {
        Self { unknown: true, ..Self::new(Code::UnknownToolFailure, "").because(thrown) }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn because(mut self, thrown: Thrown) -> Self {
        self.thrown = Some(Box::new(thrown));
        self
    }

    /// A failure of the operating system, whose name for it is the code of the cause.
    #[must_use]
    pub fn because_of(self, error: Errno) -> Self {
        let io = std::io::Error::from(error);
        let name = errno_name(error);
        self.because(Thrown::error("SystemError", name.as_deref(), io.to_string()))
    }
}

/// What the operating system calls it, for those we meet.
fn errno_name(error: Errno) -> Option<String> {
    let known = [
        (Errno::NOENT, "ENOENT"),
        (Errno::NOTDIR, "ENOTDIR"),
        (Errno::ISDIR, "EISDIR"),
        (Errno::ACCESS, "EACCES"),
        (Errno::PERM, "EPERM"),
        (Errno::XDEV, "EXDEV"),
        (Errno::LOOP, "ELOOP"),
        (Errno::EXIST, "EEXIST"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::ROFS, "EROFS"),
        (Errno::IO, "EIO"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    ];
    let name = known.iter().find(|(errno, _)| *errno == error).map(|(_, name)| (*name).to_owned());
    name.or_else(|| Some(format!("E{}", error.raw_os_error())))
}

/// A failure of the standard library's files.
pub fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
