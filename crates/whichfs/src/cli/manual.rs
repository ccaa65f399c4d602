//! Arguments of `whichfs manual`.

use clap::Subcommand;
use clap_complete::Shell;
use std::path::PathBuf;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs manual pages --out ~/.local/share/man/man1
  whichfs manual completions bash > ~/.local/share/bash-completion/completions/whichfs
  whichfs manual completions zsh > ~/.zfunc/_whichfs
  whichfs manual reference > commands.md
  whichfs manual schemas --out schemas";

#[derive(Debug, Subcommand)]
pub enum ManualCommand {
    /// Write a man page of each command.
    Pages {
        /// Directory for them; it is made.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Print the completions of a shell.
    Completions {
        /// Shell to write completions for.
        shell: Shell,
    },
    /// Print the help of all commands as one Markdown document.
    Reference,
    /// Print the JSON Schemas of what `--json` prints, as one JSON list; with --out write a file
    /// for each.
    Schemas {
        /// Directory for the files; it is made.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}
