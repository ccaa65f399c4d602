//! What is on a device before a probe overwrites it: filesystems, partition tables, parts of
//! arrays.
//!
//! `blkid -p` (util-linux) knows their signatures and looks at the device itself, past its cache. A
//! device with any of them is not overwritten unless the user names what the device says of itself.

use crate::error::{Error, Outcome};
use crate::tools;
use std::path::Path;
use std::process::{Command, Stdio};
use whichfs_units::shell_word;

/// blkid's exit status where it knows no signature.
const NOTHING: i32 = 2;
/// The same where several signatures contradict each other.
const AMBIVALENT: i32 = 8;

/// The signatures on `path`, in words; none of one without.
///
/// # Errors
/// blkid is missing or failed: then nothing is known, and nothing may be overwritten.
pub fn on(path: &Path) -> Outcome<Vec<String>> {
    let Some(blkid) = tools::find("blkid") else {
        return Err(Error::environment(
            "blkid is missing, which tells whether there are data: apt install util-linux",
        ));
    };
    let output = Command::new(blkid)
        .args(["--probe", "--output", "export"])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::environment(format!("blkid: {error}")))?;
    let told = String::from_utf8_lossy(&output.stdout);
    told_by(output.status.code(), &told).map_err(|status| {
        let error = String::from_utf8_lossy(&output.stderr);
        let error = error.trim();
        let path = path.display();
        Error::environment(format!(
            "blkid --probe {path} ended with {status} {error}: whether there are data is not known"
        ))
    })
}

/// What blkid's exit status and output say.
fn told_by(status: Option<i32>, output: &str) -> Result<Vec<String>, String> {
    match status {
        Some(NOTHING) => Ok(Vec::new()),
        Some(AMBIVALENT) => Ok(vec!["several signatures at once".into()]),
        Some(0) => Ok(signatures(output)),
        Some(other) => Err(format!("status {other}")),
        None => Err("a signal".into()),
    }
}

/// Signatures from lines of `KEY=value`: what each is, with its label.
fn signatures(output: &str) -> Vec<String> {
    let value = |wanted: &str| {
        let pairs = output.lines().filter_map(|line| line.split_once('='));
        let mut found = pairs.filter(|(key, _)| *key == wanted);
        // Spaces and the like come with a backslash.
        found.next().map(|(_, value)| value.replace('\\', ""))
    };
    let label = value("LABEL").map_or(String::new(), |label| format!(" \u{201c}{label}\u{201d}"));
    let kinds = [("TYPE", ""), ("PTTYPE", "a partition table of kind ")];
    let mut found: Vec<String> = kinds
        .into_iter()
        .filter_map(|(key, what)| Some(format!("{what}{}", value(key)?)))
        .collect();
    match found.first_mut() {
        Some(first) => *first += &label,
        // It knows something, whatever it is.
        None => found.push("a signature".into()),
    }
    found
}

/// Refuses to overwrite the device `name` unless it has no signature or `confirmed` is its
/// `identity`.
///
/// # Errors
/// What is there and how to confirm it, or that the confirmation is of another device.
pub fn permit(
    name: &str,
    identity: &str,
    confirmed: Option<&str>,
    found: impl FnOnce() -> Outcome<Vec<String>>,
) -> Outcome {
    match confirmed {
        Some(confirmed) if confirmed == identity => return Ok(()),
        Some(confirmed) => {
            return Err(Error::input(format!(
                "{} is not the ID of {name}, which is another device: {identity}",
                shell_word(confirmed)
            )));
        }
        None => {}
    }
    let found = found()?;
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "{name} holds {}, which this would overwrite; put the data back afterwards, or \
         confirm the loss by its ID: {}",
        found.join(" and "),
        shell_word(identity)
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_blkid_says_is_told_in_words() {
        let ext4 = "DEVNAME=card.img\nLABEL=my\\ card\nUUID=1-2\nTYPE=ext4\nUSAGE=filesystem\n";
        assert_eq!(
            told_by(Some(0), ext4).unwrap(),
            ["ext4 \u{201c}my card\u{201d}"]
        );
        let table = "DEVNAME=/dev/sdx\nPTUUID=1\nPTTYPE=dos\n";
        let told = told_by(Some(0), table).unwrap();
        assert_eq!(told, ["a partition table of kind dos"]);
        assert_eq!(told_by(Some(NOTHING), "").unwrap(), [""; 0]);
        assert!(told_by(Some(AMBIVALENT), "").unwrap()[0].contains("several"));
        assert_eq!(told_by(Some(0), "USAGE=other").unwrap(), ["a signature"]);
        assert!(told_by(Some(4), "").is_err() && told_by(None, "").is_err());
    }

    #[test]
    fn data_are_lost_only_by_the_name_of_their_device() {
        let there = || Ok(vec!["ext4".to_owned()]);
        let nothing = || Ok(Vec::new());
        let permit = |confirmed, found: fn() -> Outcome<Vec<String>>| {
            permit("/dev/sdx", "serial A, 9 sectors", confirmed, found)
        };
        assert!(permit(None, nothing).is_ok());
        assert!(permit(Some("serial A, 9 sectors"), there).is_ok());
        let refused = permit(None, there).unwrap_err().message;
        assert!(refused.contains("ext4") && refused.contains("ID: 'serial A, 9 sectors'"));
        // Another device does not become this one by being empty.
        let other = permit(Some("serial B, 9 sectors"), nothing).unwrap_err();
        assert!(
            other.message.contains("another device: serial A"),
            "{other}"
        );
        // What is not known is not overwritten.
        assert!(permit(None, || Err(Error::environment("no blkid"))).is_err());
    }
}
