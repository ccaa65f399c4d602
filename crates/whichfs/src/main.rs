//! The command: wires the rest, nothing else.
#![deny(
    clippy::print_stderr,
    reason = "it panics where nobody reads it: note!"
)]

/// Tells a remark on standard error, unless --quiet is given. Other than `eprintln!`, it does not
/// panic where nobody reads it.
macro_rules! note {
    ($($text:tt)*) => {
        $crate::output::note(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// Tells a line on standard error also with --quiet: an error, or a question.
macro_rules! alert {
    ($($text:tt)*) => {
        $crate::output::alert(format_args!("{}\n", format_args!($($text)*)))
    };
}

mod cli;
mod commands;
mod consent;
mod device_report;
mod failure;
mod interrupt;
mod output;
mod page;
mod progress;
mod repeat;
mod schemas;

use clap::{CommandFactory, FromArgMatches};
use cli::{
    CacheCommand, CardCommand, Cli, Command, CrashCommand, EmitCommand, FsCommand, LabCommand,
    NeedCommand, ShowCommand, StoreCommand, StudyCommand, TrialCommand,
};
use failure::Outcome;
use std::process::ExitCode;

fn main() -> ExitCode {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, cli::wants_json(&matches)))
    });
    let (cli, json) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            return failure::report_usage(&error, cli::may_want_json(std::env::args_os()));
        }
    };
    output::set_level(cli.quiet, cli.verbose);
    output::install_notes();
    match run(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure::report(&failure, json),
    }
}

fn run(command: Command) -> Outcome<u8> {
    match command {
        Command::Choose(args) => commands::choose::run(&args),
        Command::Lab(LabCommand::Exec(args)) => commands::exec::run(&args),
        Command::Lab(LabCommand::Kernel(args)) => commands::kernel::run(&args),
        Command::Crash(CrashCommand::Run(args)) => commands::crash::run(&args),
        Command::Crash(CrashCommand::Plan(args)) => commands::crash::plan(&args),
        Command::Crash(CrashCommand::Cut(args)) => commands::crash::cut(&args),
        Command::Crash(CrashCommand::Import(args)) => commands::crash::import(&args),
        Command::Crash(CrashCommand::Faults(args)) => commands::crash::faults(&args),
        Command::Crash(CrashCommand::Replay(args)) => commands::crash::replay(&args),
        Command::Crash(CrashCommand::Minimise(args)) => commands::crash::minimise(&args),
        Command::Study(StudyCommand::List(args)) => commands::study::list(&args),
        Command::Study(StudyCommand::Show(args)) => commands::study::show(&args),
        Command::Study(StudyCommand::Run(args)) => commands::study::run(&args),
        Command::Study(StudyCommand::Plan(args)) => commands::study::plan(&args),
        Command::Study(StudyCommand::Claims(args)) => commands::study::claims(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Trial(TrialCommand::List(args)) => commands::trial::list(&args),
        Command::Trial(TrialCommand::Show(args)) => commands::trial::show(&args),
        Command::Trial(TrialCommand::Run(args)) => commands::trial::run(&args),
        Command::Trial(TrialCommand::Forget(args)) => commands::trial::forget(&args),
        Command::Store(StoreCommand::Info(args)) => commands::store::info(&args),
        Command::Store(StoreCommand::Check(args)) => commands::store::check(&args),
        Command::Store(StoreCommand::Merge(args)) => commands::store::merge(&args),
        Command::Store(StoreCommand::Import(args)) => commands::store::import(&args),
        Command::Store(StoreCommand::Export(args)) => commands::store::export(&args),
        Command::Store(StoreCommand::Gc(args)) => commands::store::gc(&args),
        Command::Cache(CacheCommand::List(args)) => commands::cache::list(args.json),
        Command::Cache(CacheCommand::Gc(args)) => commands::cache::gc(&args),
        Command::Need(NeedCommand::List(args)) => commands::need::list(args.json),
        Command::Need(NeedCommand::Show(args)) => commands::need::show(&args.name, args.json),
        Command::Need(NeedCommand::New(args)) => commands::need::new(&args),
        Command::Card(command) => card(command),
        Command::Probe(args) => commands::probe::run(&args),
        Command::Format(args) => commands::format::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Image(args) => commands::image::run(&args),
        Command::Fs(FsCommand::List(args)) => commands::fs::list(args.json),
        Command::Fs(FsCommand::Show(args)) => commands::fs::show(&args),
        Command::Fs(FsCommand::Why(args)) => commands::fs::why::run(&args),
        Command::Fs(FsCommand::Compare(args)) => commands::fs::compare::run(&args),
        Command::Board(ShowCommand::List(args)) => commands::board::list(args.json),
        Command::Board(ShowCommand::Show(args)) => commands::board::show(&args.name, args.json),
        Command::Workload(ShowCommand::List(args)) => commands::workload::list(args.json),
        Command::Workload(ShowCommand::Show(args)) => {
            commands::workload::show(&args.name, args.json)
        }
        Command::Emit(EmitCommand::Lava(args)) => commands::emit::lava(&args),
        Command::Doctor(args) => commands::doctor::run(args.json),
        Command::Manual(command) => commands::manual::run(&command),
    }
}

fn card(command: CardCommand) -> Outcome<u8> {
    match command {
        CardCommand::List(args) => commands::card::list(&args),
        CardCommand::Show(args) => commands::card::show(&args.name, args.json),
        CardCommand::Curves(args) => commands::curves::run(&args),
        CardCommand::Identify(args) => commands::identify::run(&args),
        CardCommand::Life(args) => commands::life::run(&args),
        CardCommand::Rank(args) => commands::card_rank::run(&args),
        CardCommand::Fit(args) => commands::fit::run(&args),
        CardCommand::Attach(args) => commands::attach::run(&args),
        CardCommand::Detach(args) => commands::attach::detach(&args),
        CardCommand::Attached(args) => commands::attach::attached(args.json),
    }
}
