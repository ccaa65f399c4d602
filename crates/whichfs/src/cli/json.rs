//! Whether JSON is asked for, also where the arguments could not be parsed.

use clap::ArgMatches;
use std::ffi::OsString;

/// Whether the command that `matches` ends in has `--json`.
pub fn wants_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => wants_json(inner),
        None => matches!(matches.try_get_one::<bool>("json"), Ok(Some(true))),
    }
}

/// Whether arguments that could not be parsed have `--json`, before those of another program.
pub fn may_want_json(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let mut own = arguments.into_iter().take_while(|word| word != "--");
    own.any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn json_is_wanted_by_the_command_and_not_by_the_program_that_it_runs() {
        let wants = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let parsed = Cli::command().try_get_matches_from(&words);
            let guessed = may_want_json(words.iter().map(OsString::from));
            (parsed.map(|matches| wants_json(&matches)).ok(), guessed)
        };
        assert_eq!(wants("whichfs fs list --json"), (Some(true), true));
        assert_eq!(wants("whichfs fs list"), (Some(false), false));
        let program = "whichfs lab exec --fs ext4 -- ls --json";
        assert_eq!(wants(program), (Some(false), false));
        assert_eq!(wants("whichfs fs lists --json"), (None, true));
        // A word of a command under test is parsed as what it is.
        let word = "whichfs choose --command --json";
        assert_eq!(wants(word).0, Some(false));
    }
}
