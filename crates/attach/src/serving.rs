//! The thread that stands between the kernel and the card until the kernel lets go.

use crate::error::AttachError;
use std::io;
use std::thread::JoinHandle;

/// A thread that serves one device.
pub(crate) struct Serving {
    thread: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// A thread called `name` that does `body`, which returns when the kernel has let go.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn begin(
        name: &str,
        body: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<Serving, AttachError> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(body);
        let thread = thread.map_err(|error| AttachError::io("start a thread", error))?;
        Ok(Serving { thread })
    }

    /// Whether the kernel has let go.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the kernel lets go.
    ///
    /// # Errors
    /// Why the device could not be served to its end.
    pub fn join(self) -> io::Result<()> {
        let panicked = |_| io::Error::other("the thread that serves the device panicked");
        self.thread.join().map_err(panicked)?
    }
}
