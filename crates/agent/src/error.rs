//! What can go wrong in the agent: always an operation, an object and a reason.

use rustix::io::Errno;
use std::fmt;

/// A failed step, told in one sentence that names what was tried on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentError {
    message: String,
}

impl AgentError {
    /// An error with `message` as it is.
    pub fn new(message: impl Into<String>) -> AgentError {
        AgentError {
            message: message.into(),
        }
    }

    /// `operation object: reason`, where the system gave the reason.
    pub fn system(operation: &str, object: impl fmt::Display, errno: Errno) -> AgentError {
        AgentError::new(format!("{operation} {object}: {}", explain(errno)))
    }

    /// `operation object: reason`, where the standard library gave the reason.
    pub fn io(operation: &str, object: impl fmt::Display, error: &std::io::Error) -> AgentError {
        match Errno::from_io_error(error) {
            Some(errno) => AgentError::system(operation, object, errno),
            None => AgentError::new(format!("{operation} {object}: {error}")),
        }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AgentError {}

/// The system's text of `errno` with its number; the ones a user can act on, by name.
fn explain(errno: Errno) -> String {
    let name = match errno {
        Errno::NOSPC => "ENOSPC: the filesystem is full: ",
        Errno::IO => "EIO: ",
        Errno::ROFS => "EROFS: ",
        Errno::NODEV => "ENODEV: the kernel does not have it: ",
        Errno::INVAL => "EINVAL: ",
        _ => "",
    };
    format!("{name}{errno}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_filesystem_is_named_clearly() {
        let text = AgentError::system("write", "/mnt/t/a", Errno::NOSPC).to_string();
        assert!(
            text.starts_with("write /mnt/t/a: ENOSPC: the filesystem is full"),
            "{text}"
        );
    }
}
