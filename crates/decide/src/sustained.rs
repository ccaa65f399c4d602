//! Figures that last: trials of the workload `sustained` on a card that is written several times
//! its spare area.
//!
//! Such a trial fills the filesystem to [`PEAK_PERMILLE`] of what it has free, deletes files down
//! to [`FILL_PERMILLE`], then writes [`ROUNDS`] rounds of the mix that the need states. A round
//! writes a part of the spare area: what the card has beside its capacity, and what the files leave
//! free. The figures of the last four rounds count if garbage collection was exercised; they are
//! stable if the first two of them and the last two agree.

use crate::judge::NOISE_FLOOR;
use crate::position::{FileError, Position};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Spanned;
use whichfs_trial::{PhaseFigures, Status, Trial};

/// Name of the workload, and of the state of the card.
pub const SUSTAINED: &str = "sustained";
/// Share of the filesystem's free space that files fill, in thousandths.
pub const FILL_PERMILLE: u64 = 800;
/// Share that files fill before they are deleted down to [`FILL_PERMILLE`]: the filesystem's free
/// space has then been written, and the card keeps those data unless the filesystem discards them.
pub const PEAK_PERMILLE: u64 = 950;
/// Rounds of a trial: together six times the spare area, four times before those that count.
pub const ROUNDS: u64 = 12;
/// Rounds that write as much as the spare area holds.
const ROUNDS_OF_SPARE: u64 = 2;
/// Ratio of the write amplifications of the last two rounds and the two before within which they
/// agree.
const STABLE: f64 = 1.05;

/// What a need writes in the long run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongUse {
    /// Parameters of the workload `sustained` that differ from its defaults.
    pub parameters: BTreeMap<String, u64>,
    /// Why these, in one sentence.
    pub because: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongUseFile {
    parameters: BTreeMap<String, u64>,
    because: Spanned<String>,
}

impl LongUseFile {
    pub(crate) fn read(&self, at: &Position<'_>) -> Result<LongUse, FileError> {
        Ok(LongUse {
            parameters: self.parameters.clone(),
            because: at.filled("sustained.because", &self.because)?,
        })
    }
}

/// Bytes that a round writes where the spare area has `spare` bytes.
pub fn round_bytes(spare: u64) -> u64 {
    spare.div_ceil(ROUNDS_OF_SPARE)
}

/// Whether `metric` is one of sustained trials.
pub fn is_sustained(metric: &str) -> bool {
    metric.starts_with("sustained_")
}

/// What a filesystem writes in a day, and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FilesystemLoad {
    /// Name of the candidate.
    pub filesystem: String,
    /// Name of the need whose mix of writes the trial made.
    pub need: String,
    /// Bytes that programs write into files in a day.
    pub file_bytes_a_day: u64,
    /// How often a day the need's workload runs; none if bytes were stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_a_day: Option<f64>,
    /// Bytes that one run of the need's workload writes into files, beside that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes_a_run: Option<u64>,
    /// Flash bytes programmed for each byte written into files, by filesystem and card: the lower
    /// and the higher of two measurements of the sustained trial.
    pub write_amplification: [f64; 2],
    /// How full the filesystem was, in percent of what it has free when it is new.
    pub full_percent: u64,
    /// Id of the sustained trial (`whichfs trial show ID`).
    pub trial: String,
    /// Why its write amplification may not last; none if nothing speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mind: Option<String>,
}

/// What a sustained trial shows of the state that it measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Lasting {
    /// The spare area was written at least once before the rounds that count, and blocks were
    /// erased in them.
    pub exercised: bool,
    /// Write amplification of the two rounds before the last two, and of the last two.
    pub amplification: [f64; 2],
    /// Rounds that were written.
    pub rounds: u64,
    /// MB/s of the first round, and of the last two.
    pub rate: [f64; 2],
}

impl Lasting {
    /// What the sustained `trial` shows; none if it failed or is another one.
    pub fn of(trial: &Trial) -> Option<Lasting> {
        let parameter = |name: &str| trial.identity.parameters.get(name).copied();
        if trial.identity.workload != SUSTAINED || trial.outcome.status != Status::Done {
            return None;
        }
        let phase = |name: &str| {
            let mut phases = trial.outcome.phases.iter();
            phases.find(|phase| phase.phase == name)
        };
        let [first, age, before, last] = [
            phase("sustained_first")?,
            phase("sustained_age")?,
            phase("sustained_before")?,
            phase("sustained_last")?,
        ];
        let spare = parameter("round_bytes")? * ROUNDS_OF_SPARE;
        let aged = first.device.write_bytes + age.device.write_bytes;
        Some(Lasting {
            exercised: aged >= spare && before.device.erases + last.device.erases > 0,
            amplification: [amplification(before)?, amplification(last)?],
            rounds: parameter("rounds")?,
            rate: [rate(first), rate(last)],
        })
    }

    /// Whether write amplification does not change any more.
    pub fn is_stable(&self) -> bool {
        self.change() <= STABLE
    }

    /// Ratio of the two write amplifications, at least 1.
    fn change(&self) -> f64 {
        let [before, last] = self.amplification;
        (before / last).max(last / before)
    }

    /// Whether its figures do not count, or still change by more than the noise floor, so that they
    /// may be wrong enough to decide a contest. A smaller change is only a caveat.
    pub fn leaves_out(&self) -> bool {
        !self.exercised || self.change() > NOISE_FLOOR
    }

    /// What is to be said where its figures do not count, or do not last.
    pub fn caveat(&self) -> Option<String> {
        let [before, last] = self.amplification;
        if !self.exercised {
            return Some(format!(
                "sustained: garbage collection was not exercised: its write amplification \
                 ({last:.2}) and rate do not count"
            ));
        }
        (!self.is_stable()).then(|| {
            format!(
                "sustained: write amplification was not stable after {} rounds: {before:.2}, then \
                 {last:.2}",
                self.rounds
            )
        })
    }
}

/// Bytes programmed for each that the phase writes into files.
fn amplification(phase: &PhaseFigures) -> Option<f64> {
    let bytes = phase.counts.bytes - phase.counts.read_bytes;
    let (flash, files) = (phase.device.programmed_bytes as f64, bytes as f64);
    (flash > 0.0 && files > 0.0).then(|| flash / files)
}

/// MB/s of the phase.
fn rate(phase: &PhaseFigures) -> f64 {
    phase.counts.bytes as f64 / 1e6 / phase.seconds()
}

/// Whether figure `metric` of `trial` is judged and exported: of a sustained trial those alone that
/// have no twin in other trials, and only where garbage collection was exercised.
pub(crate) fn counts(trial: &Trial, metric: &str) -> bool {
    let identity = &trial.identity;
    if identity.workload != SUSTAINED || identity.card_state != SUSTAINED {
        return true;
    }
    let exercised = || Lasting::of(trial).is_some_and(|lasting| lasting.exercised);
    is_sustained(metric) && exercised()
}
