//! Runs as they grow while a log is read: which card, which erase size, which figures.

use crate::command::whole_disk;
use crate::identity::{LoggedIdentity, Told};
use crate::tables::Tables;
use crate::{LogError, LogOptions, LoggedRun, Problem, Rate, Remark, stem};
use std::collections::BTreeMap;
use whichfs_curves::Curves;

/// More runs than any log has.
const RUNS_MAX: usize = 1000;

/// A run that may still grow.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    lines: Option<(usize, usize)>,
    card: LoggedIdentity,
    registers_line: usize,
    /// Sizes of devices by path, as fdisk lists them.
    sizes: BTreeMap<String, u64>,
    erase: Option<u64>,
    pub curves: Curves,
    pub tables: Tables,
    pub rates: Vec<Rate>,
    /// Where a point of `-O` stands: random, open AUs, block bytes → line.
    pub open_lines: BTreeMap<(bool, u32, u64), usize>,
}

impl Draft {
    fn has_data(&self) -> bool {
        !(self.rates.is_empty() && self.curves.is_empty())
    }

    /// Counts `line` as one of the run's.
    pub fn extend(&mut self, line: usize) {
        let (first, last) = self.lines.unwrap_or((line, line));
        self.lines = Some((first.min(line), last.max(line)));
    }
}

/// All runs of a log.
#[derive(Clone, Debug)]
pub(super) struct Drafts {
    all: Vec<Draft>,
    at: usize,
    /// There were more than [`RUNS_MAX`].
    too_many: bool,
}

impl Drafts {
    pub fn new() -> Drafts {
        Drafts {
            all: vec![Draft::default()],
            at: 0,
            too_many: false,
        }
    }

    /// The run to which the lines at hand belong.
    pub fn current(&mut self) -> &mut Draft {
        &mut self.all[self.at]
    }

    fn begin(&mut self, draft: Draft) {
        if self.all.len() >= RUNS_MAX {
            self.too_many = true;
            return;
        }
        self.at = self.all.len();
        self.all.push(draft);
    }

    /// Takes what line `line` says about the card; another card begins another run.
    pub fn told(&mut self, line: usize, told: Told) {
        let has_data = self.current().has_data();
        match told {
            Told::Card(card) => {
                if has_data {
                    self.begin(Draft::default());
                }
                let draft = self.current();
                let device = draft.card.device.take();
                draft.card = LoggedIdentity { device, ..card };
                draft.registers_line = line;
            }
            Told::Device(device) => {
                if has_data {
                    self.begin(Draft::default());
                }
                self.current().card.device = Some(whole_disk(&device).unwrap_or(device));
            }
            Told::Size { device, bytes } => {
                let other = self
                    .current()
                    .sizes
                    .get(&device)
                    .is_some_and(|&b| b != bytes);
                if has_data && other {
                    self.begin(Draft::default());
                }
                self.current().sizes.insert(device, bytes);
            }
        }
        self.current().extend(line);
    }

    /// Takes the device of a command line: another one begins another run.
    pub fn command_device(&mut self, line: usize, device: &str) {
        let disk = whole_disk(device);
        let device = disk.as_deref().unwrap_or(device);
        let known = self.current().card.device.as_deref() == Some(device);
        if !known && self.current().card.device.is_some() {
            self.told(line, Told::Device(device.to_owned()));
        } else {
            self.current().card.device = Some(device.to_owned());
        }
    }

    /// Goes to the run of this card in which flashbench had this erase size.
    pub fn erase(&mut self, bytes: u64) {
        let draft = self.current();
        if draft.erase.is_none_or(|known| known == bytes) {
            draft.erase = Some(bytes);
            return;
        }
        let (card, sizes) = (draft.card.clone(), draft.sizes.clone());
        let registers_line = draft.registers_line;
        let same = |draft: &Draft| draft.card == card && draft.erase == Some(bytes);
        match self.all.iter().position(same) {
            Some(at) => self.at = at,
            None => self.begin(Draft {
                card,
                sizes,
                registers_line,
                erase: Some(bytes),
                ..Draft::default()
            }),
        }
    }

    /// The runs that hold measurements, named after the file.
    pub fn finish(
        self,
        file: &str,
        options: &LogOptions,
        mended: &mut Vec<Remark>,
    ) -> Result<Vec<LoggedRun>, LogError> {
        if self.too_many {
            return Err(LogError::new(Problem::TooLarge, None, "")
                .found(format!("more than {RUNS_MAX} runs"))
                .expected("the log of a card, or of a few")
                .remedy("cut the measurements of one card out of it"));
        }
        let drafts: Vec<Draft> = self.all.into_iter().filter(Draft::has_data).collect();
        let several = drafts.len() > 1;
        let mut runs = Vec::new();
        for (i, mut draft) in drafts.into_iter().enumerate() {
            draft.tables.end()?;
            let stem = stem(file);
            let name = if several {
                format!("{stem}#{}", i + 1)
            } else {
                stem.to_owned()
            };
            runs.push(draft.finish(name, mended));
        }
        if options.run.is_none() {
            one_card(&runs)?;
        }
        Ok(runs)
    }
}

impl Draft {
    fn finish(self, name: String, mended: &mut Vec<Remark>) -> LoggedRun {
        let tested = match &self.card.device {
            Some(device) => self.sizes.get(device).copied(),
            None if self.sizes.len() == 1 => self.sizes.values().next().copied(),
            None => None,
        };
        let mut card = self.card;
        if let (Some(tested), Some(registers)) = (tested, card.capacity_bytes)
            && tested != registers
        {
            // The card in the machine's own slot, while the test ran on one in a reader.
            card = card.without_registers();
            mended.push(Remark {
                lines: (self.registers_line, self.registers_line),
                why: format!(
                    "CID left out: its CSD says {registers} bytes, the device tested has {tested}"
                ),
                text: String::new(),
            });
        }
        card.capacity_bytes = tested.or(card.capacity_bytes);
        LoggedRun {
            name,
            lines: self.lines.unwrap_or((1, 1)),
            card,
            erase_bytes: self.erase,
            curves: self.curves,
            rates: self.rates,
        }
    }
}

/// Refuses runs that contradict each other.
fn one_card(runs: &[LoggedRun]) -> Result<(), LogError> {
    for (i, b) in runs.iter().enumerate() {
        for a in &runs[..i] {
            let erase = a.erase_bytes.zip(b.erase_bytes).filter(|(a, b)| a != b);
            let erase = erase.map(|(a, b)| format!("erase size {a} and {b}"));
            let Some(why) = a.card.contradicts(&b.card).or(erase) else {
                continue;
            };
            let place =
                |run: &LoggedRun| format!("`{}` (lines {}-{})", run.name, run.lines.0, run.lines.1);
            return Err(LogError::new(Problem::MixedCards, Some(b.lines.0), "")
                .found(format!("{why} in {} and {}", place(a), place(b)))
                .expected("one card, tested with one erase size")
                .remedy("choose one of these runs by its name, or split the file"));
        }
    }
    Ok(())
}
