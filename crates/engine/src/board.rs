//! Boards: the computer around the card (`boards/*.toml`).

use crate::error::{Error, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use whichfs_card::Interface;
use whichfs_lab::CpuPrices;
use whichfs_layout::{BootRules, Layout, TableKind};
use whichfs_trial::BlockQueue;
use whichfs_units::{UnknownName, unknown_key};

/// The board that is used where none is named.
pub const DEFAULT: &str = "generic-1ghz";

/// I/O schedulers of the lab kernel.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Where a board's file begins to tell how it boots.
const BOOT: &str = "\n[boot]\n";

/// A page of the guest.
const PAGE_KIB: u64 = 4;

static BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/boards.rs"));

/// Names of the shipped boards.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, _)| *name)
}

/// Names of the shipped boards of which it is known how they boot.
fn bootable() -> Vec<&'static str> {
    let known = BUILTIN.iter().filter(|(_, text)| text.contains(BOOT));
    known.map(|(name, _)| *name).collect()
}

/// A board as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardFile {
    /// The board in one line, for people.
    pub title: String,
    /// Price of each kind of work of the processor.
    pub cpu: Cpu,
    /// Size of the memory; a guest gets as much.
    pub memory: BoardMemory,
    /// Host controllers.
    pub host: Hosts,
    /// Figure → where it comes from.
    pub sources: BTreeMap<String, String>,
    /// What it needs on a card to boot; absent: not known.
    pub boot: Option<BootRules>,
}

/// What a board's speed is known from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpeedBasis {
    /// lmbench published for this processor at about this clock.
    Lmbench,
    /// lmbench published for this core, scaled to this clock.
    Scaled,
    /// Something else: a compressor's rate, or what is usual.
    Estimated,
}

impl SpeedBasis {
    /// The basis in a few words for people.
    pub fn words(self) -> &'static str {
        match self {
            SpeedBasis::Lmbench => "from lmbench on this processor",
            SpeedBasis::Scaled => "from lmbench on this core, scaled by the clock",
            SpeedBasis::Estimated => "estimated",
        }
    }
}

/// Processor of a board.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// One instruction of the kernel's code, in picoseconds.
    pub instruction_ps: u64,
    /// The least that it may be, in picoseconds.
    pub instruction_ps_low: u64,
    /// The most that it may be, in picoseconds.
    pub instruction_ps_high: u64,
    /// What `instruction_ps` is known from.
    pub basis: SpeedBasis,
    /// One instruction in an innermost loop that calls nothing, in picoseconds.
    pub loop_instruction_ps: u64,
    /// One branch of compression code, in picoseconds.
    pub compression_branch_ps: u64,
    /// One call of a function and the return from it, beyond their instructions, in picoseconds.
    pub call_ps: u64,
    /// One atomic operation, in picoseconds.
    pub atomic_ps: u64,
    /// One byte copied, in picoseconds.
    pub copy_byte_ps: u64,
    /// One byte filled, in picoseconds.
    pub fill_byte_ps: u64,
    /// One byte put through CRC-32C, in picoseconds.
    pub checksum_byte_ps: u64,
    /// A system call's entry and exit, in ns.
    pub syscall_ns: u64,
    /// What a program does in user space for each of its system calls, in instructions.
    #[serde(default = "program_instructions")]
    pub program_instructions: u64,
    /// A page fault's, in ns.
    pub fault_ns: u64,
    /// A change of the running task, beyond the scheduler's code, in ns.
    pub switch_ns: u64,
    /// An interrupt's entry and exit, in ns.
    pub interrupt_ns: u64,
    /// Clock in MHz, for people.
    pub clock_mhz: u64,
    /// Cores the board has; the lab models one.
    pub cores: u64,
}

/// Instructions that the agent makes between two system calls, at the price of the kernel's: on
/// the machine of docs/boards.md 528,673 calls of workload `blocksize` took 21 ms of user space
/// more than a trial of few calls, 40 ns each at 333 ps an instruction. What it makes content
/// with is not among them: the programs that it stands for have theirs.
pub const PROGRAM_INSTRUCTIONS: u64 = 120;

fn program_instructions() -> u64 {
    PROGRAM_INSTRUCTIONS
}

impl Cpu {
    /// The same as the lab takes it; a system call has in it what the program does for it.
    pub fn prices(&self) -> CpuPrices {
        /// Picoseconds of a nanosecond.
        const NS: u64 = 1000;
        CpuPrices {
            instruction: self.instruction_ps,
            loop_instruction: self.loop_instruction_ps,
            compression_branch: self.compression_branch_ps,
            call: self.call_ps,
            atomic: self.atomic_ps,
            copy_byte: self.copy_byte_ps,
            fill_byte: self.fill_byte_ps,
            checksum_byte: self.checksum_byte_ps,
            syscall: self.syscall_ns * NS + self.program_instructions * self.instruction_ps,
            fault: self.fault_ns * NS,
            switch: self.switch_ns * NS,
            interrupt: self.interrupt_ns * NS,
        }
    }
}

/// The RAM of a board, which is what a guest that stands for it gets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardMemory {
    /// Size in MiB; also the guest's.
    pub mib: u64,
}

/// The host controllers of a board.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// SD and eMMC.
    pub mmc: Host,
    /// USB readers and sticks.
    pub usb: Host,
}

/// The block queue of a host controller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Largest request in KiB.
    pub largest_request_kib: u64,
    /// Most segments in a request.
    pub segments: u32,
    /// Requests the device takes at once.
    pub queue_depth: u32,
    /// Requests the scheduler may hold.
    pub nr_requests: u32,
    /// I/O scheduler.
    pub scheduler: String,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: bool,
    /// Read-ahead in KiB.
    pub read_ahead_kib: u64,
    /// Time that controller and driver add to each request, in ns.
    pub request_cost_ns: u64,
}

impl Host {
    /// How the kernel is to see the disk called `disk` behind it.
    pub fn queue(&self, disk: &str) -> BlockQueue {
        BlockQueue {
            disk: disk.to_owned(),
            rotational: self.rotational,
            scheduler: self.scheduler.clone(),
            max_request_kib: self.largest_request_kib,
            requests: self.nr_requests,
            read_ahead_kib: self.read_ahead_kib,
        }
    }
}

/// A board with its name and the text it came from.
#[derive(Clone, Debug)]
pub struct Board {
    /// Name of the board: that of its file.
    pub name: String,
    /// Content of its file up to its `[boot]`: part of every trial's identity, which booting is
    /// not.
    pub text: String,
    /// What the file says.
    pub file: BoardFile,
}

impl Board {
    /// The shipped board or the file called `name`.
    pub fn open(name: &str) -> Outcome<Board> {
        if let Some((name, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            return Board::parse(name, text);
        }
        if name.contains('/') || name.ends_with(".toml") {
            let text = crate::input::read_text(name)
                .map_err(|e| Error::input(format!("board {name}: {e}")))?;
            let stem = Path::new(name)
                .file_stem()
                .and_then(|s| s.to_str())
                .unwrap_or(name);
            return Board::parse(stem, &text);
        }
        let names: Vec<&str> = names().collect();
        let listed = Some("`whichfs board list`");
        Err(Error::input(UnknownName::new(
            "board", name, &names, listed,
        )))
    }

    fn parse(name: &str, text: &str) -> Outcome<Board> {
        let file: BoardFile = toml::from_str(text).map_err(|e| {
            Error::input(match unknown_key(e.message()) {
                Some((found, hint)) => format!("board {name}: {found}; {hint}"),
                None => format!("board {name}: {e}"),
            })
        })?;
        let boots = text.find(BOOT).unwrap_or(text.len());
        let (trials, boot) = text.split_at(boots);
        let board = Board {
            name: name.to_owned(),
            text: trials.to_owned(),
            file,
        };
        let other = |line: &&str| line.starts_with('[') && !line.starts_with("[boot");
        if let Some(line) = boot.lines().find(other) {
            return Err(Error::input(format!(
                "board {name}: {line} is behind [boot]; put [boot] at the end"
            )));
        }
        if let Some(fault) = board.file.boot.as_ref().and_then(BootRules::fault) {
            return Err(Error::input(format!("board {name}: {fault}")));
        }
        board.check()?;
        Ok(board)
    }

    fn check(&self) -> Outcome {
        let file = &self.file;
        let mut ranges = vec![
            ("cpu.instruction_ps", file.cpu.instruction_ps, 1, 1_000_000),
            (
                "cpu.loop_instruction_ps",
                file.cpu.loop_instruction_ps,
                1,
                1_000_000,
            ),
            (
                "cpu.compression_branch_ps",
                file.cpu.compression_branch_ps,
                1,
                1_000_000,
            ),
            ("cpu.call_ps", file.cpu.call_ps, 0, 1_000_000),
            ("cpu.atomic_ps", file.cpu.atomic_ps, 0, 1_000_000),
            ("cpu.copy_byte_ps", file.cpu.copy_byte_ps, 0, 1_000_000),
            ("cpu.fill_byte_ps", file.cpu.fill_byte_ps, 0, 1_000_000),
            (
                "cpu.checksum_byte_ps",
                file.cpu.checksum_byte_ps,
                0,
                1_000_000,
            ),
            ("cpu.syscall_ns", file.cpu.syscall_ns, 0, 1_000_000),
            (
                "cpu.program_instructions",
                file.cpu.program_instructions,
                0,
                1_000_000,
            ),
            ("cpu.fault_ns", file.cpu.fault_ns, 0, 1_000_000),
            ("cpu.switch_ns", file.cpu.switch_ns, 0, 1_000_000),
            ("cpu.interrupt_ns", file.cpu.interrupt_ns, 0, 1_000_000),
            ("cpu.clock_mhz", file.cpu.clock_mhz, 1, 100_000),
            ("cpu.cores", file.cpu.cores, 1, 1024),
            ("memory.mib", file.memory.mib, 64, 65_536),
        ];
        for host in [&file.host.mmc, &file.host.usb] {
            ranges.extend([
                (
                    "host.largest_request_kib",
                    host.largest_request_kib,
                    4,
                    65_536,
                ),
                ("host.segments", u64::from(host.segments), 1, 65_535),
                ("host.queue_depth", u64::from(host.queue_depth), 1, 1024),
                // BLKDEV_MIN_RQ and MAX_SCHED_RQ: the kernel makes legal what is not.
                ("host.nr_requests", u64::from(host.nr_requests), 4, 2048),
                ("host.read_ahead_kib", host.read_ahead_kib, 0, 1 << 20),
                (
                    "host.request_cost_ns",
                    host.request_cost_ns,
                    0,
                    1_000_000_000,
                ),
            ]);
        }
        let (low, high) = (file.cpu.instruction_ps_low, file.cpu.instruction_ps_high);
        ranges.push(("cpu.instruction_ps", file.cpu.instruction_ps, low, high));
        for (key, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(self.illegal(key, value, &format!("{low} to {high}")));
            }
        }
        [&file.host.mmc, &file.host.usb]
            .into_iter()
            .try_for_each(|host| self.check_queue(host))
    }

    /// What the kernel takes in a queue's attributes, apart from ranges.
    fn check_queue(&self, host: &Host) -> Outcome {
        if !SCHEDULERS.contains(&host.scheduler.as_str()) {
            let found = format!("{:?}", host.scheduler);
            return Err(self.illegal("host.scheduler", found, &SCHEDULERS.join(", ")));
        }
        for (key, kib) in [
            ("host.read_ahead_kib", host.read_ahead_kib),
            ("host.largest_request_kib", host.largest_request_kib),
        ] {
            if !kib.is_multiple_of(PAGE_KIB) {
                return Err(self.illegal(key, kib, "multiples of 4, a page"));
            }
        }
        if host.scheduler == "none" && host.nr_requests > host.queue_depth {
            let legal = "at most host.queue_depth where no scheduler holds requests";
            return Err(self.illegal("host.nr_requests", host.nr_requests, legal));
        }
        Ok(())
    }

    fn illegal(&self, key: &str, found: impl fmt::Display, legal: &str) -> Error {
        Error::input(format!(
            "board {}: {key} = {found} is not legal: {legal}",
            self.name
        ))
    }

    /// `layout` for a card that this board boots from, with the table that the user asks for.
    ///
    /// # Errors
    /// The board does not boot from that table, or how it boots is not known.
    pub fn lay_out(&self, layout: Layout, table: Option<TableKind>) -> Outcome<Layout> {
        let Some(rules) = &self.file.boot else {
            return Err(Error::input(format!(
                "board {}: its file does not say how it boots ([boot], docs/boards.md); known it \
                 is of {}, or name none",
                self.name,
                bootable().join(", ")
            )));
        };
        Ok(layout.for_board(&self.name, rules, table)?)
    }

    /// The queue for a card behind `interface`.
    pub fn host(&self, interface: Interface) -> &Host {
        match interface {
            Interface::Usb => &self.file.host.usb,
            _ => &self.file.host.mmc,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn default_board() -> &'static (&'static str, &'static str) {
        BUILTIN.iter().find(|(name, _)| *name == DEFAULT).unwrap()
    }

    #[test]
    fn a_price_outside_of_its_own_interval_is_refused() {
        let (_, text) = default_board();
        let line = text
            .lines()
            .find(|line| line.starts_with("instruction_ps_high"))
            .unwrap();
        let failure =
            Board::parse("mine", &text.replace(line, "instruction_ps_high = 1")).unwrap_err();
        assert!(
            failure.message.contains("cpu.instruction_ps ="),
            "{failure}"
        );
    }

    #[test]
    fn each_kind_of_work_has_its_price() {
        let prices = Board::open("beaglebone-black").unwrap().file.cpu.prices();
        assert_eq!(prices.to_string().split(',').count(), 12);
        assert!(!prices.to_string().split(',').any(|price| price == "0"));
    }

    #[test]
    fn a_system_call_has_in_it_what_the_program_does() {
        let (_, text) = default_board();
        let board = |more: &str| {
            let text = text.replacen("[cpu]\n", &format!("[cpu]\n{more}"), 1);
            Board::parse("mine", &text).unwrap().file.cpu
        };
        let (usual, none) = (board(""), board("program_instructions = 0\n"));
        assert_eq!(none.prices().syscall, none.syscall_ns * 1000);
        assert_eq!(
            usual.prices().syscall - none.prices().syscall,
            PROGRAM_INSTRUCTIONS * usual.instruction_ps
        );
    }

    #[test]
    fn every_shipped_board_is_legal() {
        for (name, _) in BUILTIN {
            Board::open(name).unwrap();
        }
    }

    #[test]
    fn booting_is_no_part_of_a_trials_identity() {
        let (_, text) = default_board();
        let boot = "\n[boot]\nreader = \"the ROM\"\ntables = [\"mbr\"]\n[boot.sources]\n";
        let board = Board::parse("mine", &format!("{text}{boot}")).unwrap();
        assert!(board.file.boot.is_some() && board.text == *text);
        // What decides trials cannot hide behind it, and what contradicts itself is no board.
        for (more, words) in [
            (format!("{boot}[memory2]\n"), "unknown"),
            (boot.replace("\"mbr\"", ""), "boot.tables is empty"),
        ] {
            let failure = Board::parse("mine", &format!("{text}{more}")).unwrap_err();
            assert!(failure.message.contains(words), "{failure}");
        }
        let hidden = text.replacen("\n[memory]\n", &format!("{boot}[memory]\n"), 1);
        let failure = Board::parse("mine", &hidden).unwrap_err();
        assert!(
            failure.message.contains("put [boot] at the end"),
            "{failure}"
        );
        let layout = Layout::single(TableKind::Gpt, "data", None, "/");
        let failure = Board::open(DEFAULT)
            .unwrap()
            .lay_out(layout, None)
            .unwrap_err();
        assert!(failure.message.contains("raspberry-pi-3"), "{failure}");
    }

    #[test]
    fn an_unknown_board_offers_the_nearest() {
        let failure = Board::open("beaglebone").unwrap_err();
        assert!(failure.message.contains("beaglebone-black"), "{failure}");
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        let (_, text) = default_board();
        for (legal, bad, words) in [
            (
                "nr_requests = 4\n",
                "nr_requests = 3\n",
                "host.nr_requests = 3",
            ),
            ("nr_requests = 4\n", "nr_requests = 2049\n", "4 to 2048"),
            (
                "\"mq-deadline\"",
                "\"deadline\"",
                "none, mq-deadline, kyber, bfq",
            ),
            (
                "read_ahead_kib = 128",
                "read_ahead_kib = 130",
                "read_ahead_kib = 130",
            ),
            (
                "largest_request_kib = 512",
                "largest_request_kib = 510",
                "multiples of 4",
            ),
            ("\"mq-deadline\"", "\"none\"", "at most host.queue_depth"),
        ] {
            assert!(text.contains(legal), "{legal}");
            let failure = Board::parse("mine", &text.replace(legal, bad)).unwrap_err();
            assert!(failure.message.contains(words), "{bad}: {failure}");
        }
    }

    #[test]
    fn an_absurd_figure_is_named_with_its_range() {
        let (_, text) = default_board();
        let text = text.replace("mib = 512", "mib = 1");
        let failure = Board::parse("mine", &text).unwrap_err();
        assert!(failure.message.contains("memory.mib = 1"), "{failure}");
        assert!(Board::parse("mine", "title = 3").is_err());
    }
}
