//! `whichfs card attach`, `detach` and `attached`: a modelled card as a block device.

use super::table;
use crate::cli::{AttachArgs, CardStateArg, DetachArgs, TransportArg};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{failure, interrupt, output};
use schemars::JsonSchema;
use serde::Serialize;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_attach::{
    AttachOptions, Attached, BeginState, HostQueue, Leftover, Statistics, Transport,
};
use whichfs_card::Profile;
use whichfs_engine::board::{Board, Host};
use whichfs_engine::cards;
use whichfs_engine::places;
use whichfs_report::Document;
use whichfs_units::arguments::told;
use whichfs_units::{Bytes, MIB, Nanos};

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  sudo whichfs card attach a1-32gb                    until Ctrl-C, or whichfs card detach
  sudo whichfs card attach class4-4gb --size 1024M --run 'mkfs.ext4 -q $dev && fsck.ext4 -fn $dev'
  sudo whichfs card attach emmc-8gb --speed max       as fast as this machine can
  sudo whichfs card attach a1-32gb --transport fuse   not by ublk, which is chosen where it is
  sudo whichfs card attached                          which cards, and what they have done

The device answers when the modelled card would. Its contents are lost when it is detached.";

/// Attaches a card until it is asked to go, or for one command.
pub fn run(args: &AttachArgs) -> Outcome<u8> {
    let options = options(args)?;
    // From now on Ctrl-C waits until what is half made can be taken apart.
    let stop = interrupt::flag();
    let attached = whichfs_attach::attach(options).map_err(failure::of_attach)?;
    for leftover in attached.cleaned() {
        note!("{}", leftover.told());
    }
    let code = match &args.run {
        _ if interrupt::asked() => exit_code(Kind::Interrupted),
        Some(command) => status(run_command(&attached, command, args.json, stop)?),
        None => {
            note!(
                "{} is {}, {}. Ctrl-C or `whichfs card detach {0}` ends it.",
                attached.device().display(),
                args.name,
                Bytes(attached.statistics().capacity_bytes),
            );
            attached.wait(stop);
            match interrupt::asked() {
                true => exit_code(Kind::Interrupted),
                false => 0,
            }
        }
    };
    let statistics = detach_patiently(attached)?;
    if args.json {
        output::document(&EndedCard(statistics))?;
    } else {
        output::note(format_args!("{}", statistics.told()));
    }
    Ok(code)
}

/// With `json` standard output is for one document alone: the command gets standard error.
fn run_command(
    attached: &Attached,
    command: &str,
    json: bool,
    stop: &AtomicBool,
) -> Outcome<ExitStatus> {
    let output = match json {
        true => std::io::stderr()
            .as_fd()
            .try_clone_to_owned()
            .map(Stdio::from),
        false => Ok(Stdio::inherit()),
    };
    let status = output.and_then(|output| attached.run(command, output, stop));
    status.map_err(|error| Failure::environment(format!("--run: /bin/sh: {error}")))
}

/// The exit status that a shell would give.
fn status(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn options(args: &AttachArgs) -> Outcome<AttachOptions> {
    let mut card = cards::open(&args.name)?;
    if args.card_state == CardStateArg::Sustained {
        card = card.cut_down()?;
    }
    let board = Board::open(&args.board)?;
    let profile = match args.size {
        Some(bytes) => cut_down(&card.profile, bytes)?,
        None => card.profile,
    };
    let host = board.host(profile.interface());
    Ok(AttachOptions {
        name: card.name,
        state: match args.card_state {
            CardStateArg::Fresh => BeginState::Fresh,
            CardStateArg::Used | CardStateArg::Sustained => BeginState::Used(args.seed),
        },
        speed: args.speed,
        transport: match args.transport {
            TransportArg::Auto => Transport::Auto,
            TransportArg::Ublk => Transport::Ublk,
            TransportArg::Fuse => Transport::Fuse,
        },
        queue: queue(host),
        request_cost: Nanos(host.request_cost_ns),
        memory_bytes: args.memory,
        directory: places::cache_directory("spill")?,
        profile,
    })
}

fn cut_down(profile: &Profile, bytes: u64) -> Outcome<Profile> {
    let whole = profile.capacity_bytes() / MIB;
    let refuse =
        |why: &dyn std::fmt::Display| Failure::input(format!("--size {}: {why}", told(bytes)));
    if bytes > whole * MIB {
        return Err(refuse(&format!("the card has {whole} MiB; at most that")));
    }
    profile.with_capacity(bytes).map_err(|error| refuse(&error))
}

fn queue(host: &Host) -> HostQueue {
    HostQueue {
        scheduler: host.scheduler.clone(),
        rotational: host.rotational,
        nr_requests: host.nr_requests,
        read_ahead_kib: host.read_ahead_kib,
        largest_request_kib: host.largest_request_kib,
    }
}

/// Detaches the card as soon as nobody uses it; says who does. A signal that comes while it
/// waits leaves the device to them.
fn detach_patiently(mut attached: Attached) -> Outcome<Statistics> {
    let (before, mut told) = (interrupt::asked(), false);
    loop {
        let still = match attached.detach() {
            Ok(statistics) => return Ok(statistics),
            Err(still) => still,
        };
        if !told {
            let again = if before { " again" } else { "" };
            alert!(
                "whichfs: {}; waiting (Ctrl-C{again} leaves it as it is, dead)",
                still.error
            );
            told = true;
        }
        if interrupt::asked() && !before {
            return Err(Failure::new(
                Kind::Interrupted,
                format!(
                    "{}; once it is free, `whichfs card detach` removes it",
                    still.error
                ),
            ));
        }
        attached = still.attached;
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// The document of `card attached`: a card, and what it has done.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct AttachedCard(Statistics);

impl Document for AttachedCard {
    const NAME: &'static str = "card attached";
}

/// The document of `card attach`, when it ends: the same.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
pub struct EndedCard(Statistics);

impl Document for EndedCard {
    const NAME: &'static str = "card attach";
}

impl Document for Detached {
    const NAME: &'static str = "card detach";
}

/// The document of `card detach`.
#[derive(Serialize, JsonSchema)]
pub struct Detached {
    device: String,
    /// What was unmounted with it.
    unmounted: Vec<String>,
    /// Why it is still there; none if it is gone.
    remains: Option<String>,
}

/// Detaches one card of another process, or cleans up after dead ones.
pub fn detach(args: &DetachArgs) -> Outcome<u8> {
    if let Some(device) = &args.device {
        whichfs_attach::request_detach(device).map_err(failure::of_attach)?;
        if args.json {
            output::list(&[Detached {
                device: device.clone(),
                unmounted: Vec::new(),
                remains: None,
            }])?;
        }
        return Ok(0);
    }
    let leftovers = whichfs_attach::clean().map_err(failure::of_attach)?;
    let remains = leftovers.iter().any(|leftover| leftover.remains.is_some());
    let code = if remains { exit_code(Kind::No) } else { 0 };
    if args.json {
        let documents: Vec<Detached> = leftovers.into_iter().map(document).collect();
        output::list(&documents)?;
        return Ok(code);
    }
    for leftover in &leftovers {
        output::text_line(&leftover.told())?;
    }
    if leftovers.is_empty() {
        output::text_line("nothing was left behind; name a device to detach it")?;
    }
    Ok(code)
}

fn document(leftover: Leftover) -> Detached {
    Detached {
        device: leftover.record.device().display().to_string(),
        unmounted: leftover.mounts,
        remains: leftover.remains,
    }
}

/// The cards that running processes have attached.
pub fn attached(json: bool) -> Outcome<u8> {
    let records = whichfs_attach::list().map_err(failure::of_attach)?;
    let mut found = Vec::new();
    for record in records {
        // One may go away meanwhile: then it is no longer attached.
        let device = record.device().display().to_string();
        found.extend(whichfs_attach::statistics(&device).ok());
    }
    if json {
        output::list(&found.into_iter().map(AttachedCard).collect::<Vec<_>>())?;
        return Ok(0);
    }
    for left in whichfs_attach::left().map_err(failure::of_attach)? {
        alert!(
            "whichfs: {} was left by a process that died: sudo whichfs card detach removes it",
            left.device().display()
        );
    }
    if found.is_empty() {
        output::text_line("no card is attached; sudo whichfs card attach NAME does it")?;
        return Ok(0);
    }
    let rows = found.iter().map(|one| {
        vec![
            one.device.clone(),
            one.card.clone(),
            Bytes(one.capacity_bytes).to_string(),
            one.speed.clone(),
            Bytes(one.figures.write_bytes).to_string(),
            Nanos(one.delivery.p99_ns).to_string(),
        ]
    });
    let head = [
        "device",
        "card",
        "capacity",
        "speed",
        "written",
        "late (p99)",
    ];
    output::text_line(&table::text(&head, rows.collect()))?;
    Ok(0)
}
