//! What a fault is: a way in which data are lost or damaged, when it acts, and the place in the
//! making of an image at which it does so ([`Effect`]). Each file in `faults` is one fault.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use whichfs_blockdev::{Defects, LiveFault, Logged};
use whichfs_card::{Contents, ContentsError};
use whichfs_units::{KIB, Nanos, Rng};

/// Bytes of a filesystem's block.
pub(crate) const BLOCK: u64 = 4 * KIB;

/// A way in which data are lost or damaged; it is written and compared by its name.
#[derive(Clone, Copy)]
pub struct Fault(pub(crate) &'static Model);

/// A set of faults.
pub type Faults = BTreeSet<Fault>;

/// What is known of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FaultFacts {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub meaning: &'static str,
    /// When it does that.
    pub acts: Acts,
    /// What stands behind it.
    pub evidence: FaultEvidence,
    /// Where that is written, and of what; of a hypothesis, why it is one.
    pub source: &'static str,
}

/// When a fault acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Acts {
    /// When the power goes.
    AtCut,
    /// During the run, without a cut: such a run is judged at its end.
    WithoutCut,
    /// While the image is mounted, read and repaired.
    WhileRead,
    /// While the workload runs, in the program that runs it or in the card.
    WhileRun,
}

/// What stands behind a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultEvidence {
    /// Somebody saw it on flash cards, on SSDs or on bare flash, and published it.
    Published,
    /// It may be so.
    Hypothesis,
}

/// A fault with what it does: what a file in `faults` states.
pub(crate) struct Model {
    /// Its place in lists and the order in which faults draw chances: part of what a seed means, so
    /// it never changes. A new fault takes the next free number.
    pub number: u8,
    pub facts: FaultFacts,
    /// Names of faults that say different things of the same bytes.
    pub excludes: &'static [&'static str],
    pub effect: Effect,
}

/// Where a fault acts in the making of an image or in the use of a card.
pub(crate) enum Effect {
    /// Changes how the card loses what it had not made durable.
    Loss(fn(&mut LossRules)),
    /// Takes away from requests that had reached the card.
    Fates(fn(&mut [Fate], &AtCut<'_>, &mut Rng)),
    /// Changes writes before they are put into the image.
    Writes(fn(&RecordedRun<'_>, &mut Rng) -> ChangeWrite),
    /// Changes the content when all writes are in it.
    Contents(fn(&mut Contents, &AfterCut<'_>, &mut Rng) -> Result<(), ContentsError>),
    /// Adds to what the card does wrong while the image is used, of which it has seen these
    /// requests.
    Use(fn(&mut Defects, &[Logged], &mut Rng)),
    /// Adds to what the card refuses while the workload runs: of the requests before it and its
    /// own, as a good card would get them.
    Refusal(fn(&mut Defects, [&[Logged]; 2], &mut Rng)),
    /// What the card does wrong while the workload runs, made of the same run on a good card.
    Live(fn(&GoodRun<'_>, &mut Rng) -> LiveFault),
    /// The program's calls that make data durable do nothing.
    SyncIgnored,
}

/// Changes one write: its index in the log, the request, where it lands and its data.
pub(crate) type ChangeWrite = Box<dyn Fn(usize, &Logged, &mut u64, &mut Cow<'_, [u8]>)>;

/// How a card loses what it had not made durable; without faults none of this is so.
#[derive(Default)]
pub(crate) struct LossRules {
    /// A flush makes nothing durable.
    pub flush_lies: bool,
    /// What a cache holds is lost in any order.
    pub reorders: bool,
    /// Of the write under way any pieces of so many bytes are kept.
    pub pieces: Option<u64>,
}

/// The cut as a fault sees it that takes requests away.
pub(crate) struct AtCut<'a> {
    pub seen: &'a [Logged],
    pub card: &'a CardFacts,
    pub at: Nanos,
}

/// The run as a fault sees it that changes writes.
pub(crate) struct RecordedRun<'a> {
    /// The requests that had reached the card.
    pub seen: &'a [Logged],
    pub card: &'a CardFacts,
    /// Arrival of the first request.
    pub begin: Nanos,
    /// An instant in the middle half of the run.
    pub middle: Nanos,
}

/// A run on a good card as a fault sees it that befalls the same run.
pub(crate) struct GoodRun<'a> {
    /// The requests of the workload; never none.
    pub written: &'a [Logged],
}

/// The finished image as a fault sees it that damages it.
pub(crate) struct AfterCut<'a> {
    pub seen: &'a [Logged],
    pub card: &'a CardFacts,
    /// The write under way at the cut, if there is one.
    pub under_way: Option<UnderWay>,
}

/// The flash pages of a write that a cut interrupts.
pub(crate) struct UnderWay {
    pub first_page: u64,
    pub last_page: u64,
    /// One of them by chance.
    pub drawn_page: u64,
    pub page_bytes: u64,
    pub fate: Fate,
}

/// What is left of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The card keeps the new data of the whole request.
    Whole,
    /// The card keeps no new data of the request.
    Lost,
    /// Everything before this place on the card, in bytes.
    Before(u64),
    /// Each piece of so many bytes by chance.
    Pieces(u64),
}

/// What of the card decides which data survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardFacts {
    /// Volatile cache in bytes; 0 for none.
    pub cache_bytes: u64,
    /// Flash page in bytes.
    pub page_bytes: u64,
    /// AU in bytes.
    pub au_bytes: u64,
    /// Largest write that goes to an area of its own; 0 for no such area.
    pub small_write_bytes: u64,
}

impl Fault {
    /// What is known of it.
    pub const fn facts(self) -> &'static FaultFacts {
        &self.0.facts
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.0.facts.name
    }

    /// Whether it damages data without a cut: such a run is judged at its end.
    pub const fn is_without_cut(self) -> bool {
        matches!(self.0.facts.acts, Acts::WithoutCut)
    }

    /// Whether the program's calls that make data durable do nothing.
    pub const fn ignores_sync(self) -> bool {
        matches!(self.0.effect, Effect::SyncIgnored)
    }

    /// Whether the card fails while the system uses it: each run with it is another one.
    pub const fn is_live(self) -> bool {
        matches!(self.0.effect, Effect::Live(_))
    }

    /// Whether it acts in a run on what the same run without it writes.
    pub const fn fails_writes(self) -> bool {
        matches!(self.0.effect, Effect::Refusal(_))
    }
}

impl PartialEq for Fault {
    fn eq(&self, other: &Fault) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Fault {}

impl PartialOrd for Fault {
    fn partial_cmp(&self, other: &Fault) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fault {
    fn cmp(&self, other: &Fault) -> Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl JsonSchema for Fault {
    fn schema_name() -> Cow<'static, str> {
        "Fault".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "Name of a fault."})
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Whether one of `faults` needs to know what a run writes before it acts in it.
pub fn fails_writes(faults: &Faults) -> bool {
    faults.iter().any(|fault| fault.fails_writes())
}

/// Whether the card fails while the system uses it.
pub fn is_live(faults: &Faults) -> bool {
    faults.iter().any(|fault| fault.is_live())
}

/// Whether `faults` damage what was written when the run has ended, or while it goes on, and none
/// needs a cut.
pub fn is_without_cut(faults: &Faults) -> bool {
    let at_cut = |fault: &Fault| fault.facts().acts == Acts::AtCut;
    let without = |fault: &Fault| fault.is_without_cut() || fault.is_live();
    faults.iter().any(without) && !faults.iter().any(at_cut)
}

/// Two faults of `faults` that say different things of the same bytes, or of which one changes the
/// run that the other needs, if there are such.
pub fn exclude_each_other(faults: &Faults) -> Option<[Fault; 2]> {
    let live = faults.iter().find(|fault| fault.is_live());
    let other = faults.iter().find(|fault| !fault.is_live());
    if let (Some(live), Some(other)) = (live, other) {
        return Some([*live, *other]);
    }
    faults.iter().find_map(|fault| {
        let excluded = |other: &&Fault| fault.0.excludes.contains(&other.name());
        faults.iter().find(excluded).map(|other| [*fault, *other])
    })
}
