//! Card and board files in the lines of a plan: their text goes along, so that a machine that does
//! not have the files can use them.

use crate::cards;
use crate::digest::sha256;
use crate::error::{Error, Outcome};
use crate::places;
use std::collections::BTreeMap;
use std::path::Path;
use whichfs_posterior::Knowledge;

/// The text of the card or board file at `path`.
///
/// # Errors
/// It cannot be read, or needs further files.
pub fn text_of(path: &str) -> Outcome<String> {
    let text = crate::input::read_text(path)
        .map_err(|e| Error::input(format!("{path}: {e}; name a file that can be read")))?;
    let logs = match Knowledge::is_meant(&text) {
        true => Knowledge::parse(path, &text).map_err(Error::input)?.logs,
        false => Vec::new(),
    };
    match logs.first() {
        Some(log) => Err(Error::input(format!(
            "{path}: it names the log {log}, which a line of a plan cannot hold: make a profile of \
             it (whichfs card fit) and name that; or run it on this machine"
        ))),
        None => Ok(text),
    }
}

/// `named`, a card or board as in a plan; if that is one of `files`, the file is put into the cache
/// and named there: in a directory of its digest, for a card is called as its file.
///
/// # Errors
/// It is a file and not one of `files`: it would be another one on each machine. The cache cannot
/// be written.
pub fn placed(named: &str, files: &BTreeMap<String, String>) -> Outcome<String> {
    let Some(name) = cards::file_of(named) else {
        return Ok(named.to_owned());
    };
    let Some((text, file)) = files.get(name).zip(Path::new(name).file_name()) else {
        return Err(Error::input(format!(
            "it names the file {name} and does not hold it; make the plan anew"
        )));
    };
    let directory = places::cache_directory("plans")?.join(sha256(text.as_bytes()));
    let path = directory.join(file);
    if !path.exists() {
        places::make(&directory)?;
        places::write_whole(&path, text.as_bytes())?;
    }
    // A card may have a port of its own behind its name.
    Ok(format!("{}{}", path.display(), &named[name.len()..]))
}
