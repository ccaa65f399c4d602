//! Every command line in the documents is one that this program takes.
#![allow(clippy::unwrap_used)]

use super::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use whichfs_testkit::documents::{calls, documents, words};

#[test]
fn every_call_in_the_documents_is_taken() {
    let mut wrong = Vec::new();
    let mut found = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for call in calls(&text) {
            found += 1;
            let arguments = [vec!["whichfs".to_owned()], words(&call)].concat();
            let Err(error) = Cli::try_parse_from(arguments) else {
                continue;
            };
            // A command that is only named, without what it needs, and a list of them.
            let named = [
                ErrorKind::MissingRequiredArgument,
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                ErrorKind::MissingSubcommand,
                ErrorKind::DisplayHelp,
                ErrorKind::DisplayVersion,
            ];
            if !named.contains(&error.kind()) {
                let name = path.file_name().unwrap().to_string_lossy();
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default().to_owned();
                wrong.push(format!("{name}: whichfs {call}: {why}"));
            }
        }
    }
    assert!(found > 300, "only {found} calls were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
