//! The state of a probe in a file, from which an interrupted one goes on.

use crate::error::{Error, Outcome};
use std::path::Path;
use whichfs_probe::{ProbeEvidence, ProbeOptions};

/// Where a probe of the device `identity` begins: anew, or where the one ended whose state `path`
/// has, if it is there.
///
/// # Errors
/// The file is no state of a probe, or that of another device.
pub fn begin(path: Option<&Path>, identity: &str, options: ProbeOptions) -> Outcome<ProbeEvidence> {
    let Some(path) = path.filter(|path| path.exists()) else {
        return Ok(ProbeEvidence::begin(identity, options));
    };
    let wrong = |error: &dyn std::fmt::Display| {
        let path = path.display();
        Error::input(format!(
            "{path}: {error}; it is no state of a probe: remove it or name another file"
        ))
    };
    let text = crate::input::read_text(path).map_err(|error| wrong(&error))?;
    let kept: ProbeEvidence = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    kept.check().map_err(|error| wrong(&error))?;
    if kept.identity != identity {
        return Err(Error::input(format!(
            "{} is the state of another device ({}; this one is {identity}); name another file",
            path.display(),
            kept.identity
        )));
    }
    Ok(kept.go_on(options))
}
