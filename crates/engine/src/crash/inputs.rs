//! What a series of cuts is made from: the lab with its card and board, the size of the workload's
//! data, faults that go together.

use super::record::RecordingPlan;
use super::spec::{Makers, Spec};
use crate::board::Board;
use crate::cards::{self, CardState};
use crate::clock::Clock;
use crate::error::{Error, Outcome};
use crate::lab_executor::LabExecutor;
use crate::memory;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use whichfs_crash::Faults;
use whichfs_fs::Candidate;
use whichfs_lab::available_cores;
use whichfs_units::MIB;
use whichfs_workload::Workload;

/// Wall time after which a guest is stopped, where nobody says.
pub const WALL_LIMIT: Duration = Duration::from_secs(300);

/// Bytes of contents of each card in memory: a run's content, its states at the checkpoints and an
/// image for each worker are there at once.
const RESIDENT_BYTES: u64 = 16 * MIB;

/// A card and a board, by name or file, and which time counts.
#[derive(Clone, Copy, Debug)]
pub struct LabPlace<'a> {
    /// A name of the catalogue, or the path of a profile or knowledge file.
    pub card: &'a str,
    /// How much of it was written before.
    pub card_state: CardState,
    /// A name of the catalogue, or the path of a board file.
    pub board: &'a str,
    /// Name of the clock.
    pub clock: &'a str,
}

/// The lab at `place` for so many guests at once, by default one for each core.
///
/// # Errors
/// A card, board or clock that is not known or cannot be read; a missing part of the lab.
pub fn lab(place: LabPlace<'_>, wall_limit: Duration, jobs: Option<u64>) -> Outcome<LabExecutor> {
    let jobs = jobs.map_or_else(|| available_cores().len(), |jobs| jobs as usize);
    let card = cards::open(place.card)?;
    let mut board = place.board.to_owned();
    let clock = Clock::parse(place.clock, &mut board)?;
    let board = Board::open(&board)?;
    let lab = LabExecutor::new(card, place.card_state, board, clock, wall_limit, jobs)?;
    memory::give_back();
    Ok(lab.holding(RESIDENT_BYTES))
}

impl Spec {
    /// The card and the board of the series.
    ///
    /// # Errors
    /// A state of the card that is not known.
    pub fn place(&self) -> Outcome<LabPlace<'_>> {
        Ok(LabPlace {
            card: &self.card,
            card_state: CardState::named(&self.card_state)?,
            board: &self.board,
            clock: &self.clock,
        })
    }
}

/// A series like `common` for each filesystem, with what makes it on `lab`.
///
/// # Errors
/// What is wrong with one of them: it is said before the first is run.
pub fn specs(lab: &LabExecutor, common: &Spec, candidates: &[&Candidate]) -> Outcome<Vec<Spec>> {
    let of = |candidate: &&Candidate| {
        let mut spec = Spec {
            fs: candidate.name.to_owned(),
            ..common.clone()
        };
        let plan = RecordingPlan::new(lab, &spec)?;
        let recipe = plan.recipe()?;
        plan.promises(&recipe)?;
        spec.made_by = Makers::of(lab, &recipe);
        Ok(spec)
    };
    candidates.iter().map(of).collect()
}

/// A file as an absolute path, so that a series can be shown again from another directory; a name
/// as it is.
pub fn whole_path(given: &str) -> String {
    let path = Path::new(given);
    match path.exists().then(|| std::path::absolute(path)) {
        Some(Ok(path)) => path.display().to_string(),
        _ => given.to_owned(),
    }
}

/// Refuses `faults` that cannot act together.
///
/// # Errors
/// Two of them exclude each other.
pub fn together(faults: &Faults) -> Outcome {
    match whichfs_crash::exclude_each_other(faults) {
        None => Ok(()),
        Some([a, b]) => Err(Error::input(format!(
            "{} and {} exclude each other: take one of them, or a series for each",
            a.name(),
            b.name()
        ))),
    }
}

/// Parameters of `workload` for data of `size` bytes, where it has a size.
pub fn parameters(size: u64, workload: &dyn Workload) -> BTreeMap<String, u64> {
    let mut parameters = BTreeMap::new();
    let all = workload.parameters();
    let known = |name: &str| all.iter().find(|known| known.name == name);
    let Some(bytes) = known("bytes") else {
        return parameters;
    };
    parameters.insert("bytes".to_owned(), size);
    // As many files for the size as by default, so that the tree keeps its shape.
    if let Some(files) = known("files") {
        let files = (files.default * size / bytes.default.max(1)).max(1);
        parameters.insert("files".to_owned(), files);
    }
    parameters
}
