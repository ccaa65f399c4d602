//! `whichfs manual`: what the definition of the command line is, in other forms.

use crate::cli::{Cli, ManualCommand};
use crate::failure::{Failure, Outcome};
use crate::{output, schemas};
use clap::{Command, CommandFactory};
use std::fmt::Write;
use std::path::Path;
use whichfs_engine::places;

/// Columns of the reference, whatever the terminal has.
const COLUMNS: usize = 100;

/// Writes man pages, completions or the reference.
pub fn run(command: &ManualCommand) -> Outcome<u8> {
    match command {
        ManualCommand::Pages { out } => pages(out)?,
        ManualCommand::Completions { shell } => {
            let mut bytes = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "whichfs", &mut bytes);
            output::text(&String::from_utf8_lossy(&bytes))?;
        }
        ManualCommand::Reference => output::text(&reference())?,
        ManualCommand::Schemas { out } => schemas(out.as_deref())?,
    }
    Ok(0)
}

/// Writes a page for each command to `directory`.
fn pages(directory: &Path) -> Outcome {
    let fail = |error| Failure::input(format!("--out {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(fail)?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, directory).map_err(fail)
}

/// Prints all schemas, or writes a file for each to `directory`.
fn schemas(directory: Option<&Path>) -> Outcome {
    let all = schemas::all();
    let Some(directory) = directory else {
        let list: Vec<_> = all.into_iter().map(|one| one.schema).collect();
        let text = serde_json::to_string_pretty(&list).map_err(Failure::environment)?;
        return output::text_line(&text);
    };
    places::make_out(directory)?;
    for one in all {
        let text = serde_json::to_string_pretty(&one.schema).map_err(Failure::environment)?;
        places::write_whole(&directory.join(one.file()), (text + "\n").as_bytes())?;
    }
    Ok(())
}

/// The help of every command, in the order of the command line.
fn reference() -> String {
    let mut text = "# Commands\n\nWhat `--help` says of each command; made by \
                    `make reference`, and a test compares.\n"
        .to_owned();
    let mut root = Cli::command()
        .term_width(COLUMNS)
        .disable_help_subcommand(true);
    root.build();
    section(&mut text, &mut root);
    text
}

fn section(text: &mut String, command: &mut Command) {
    let name = command
        .get_bin_name()
        .unwrap_or(command.get_name())
        .to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(
        text,
        "\n## {name}\n```text\n{}\n```\n",
        help.join("\n").trim_end()
    );
    for inner in command.get_subcommands_mut() {
        section(text, inner);
    }
}
