//! How long a card lives under a filesystem and what it is for: bytes that programs write into
//! files in a day, times the write amplification of a sustained trial, beside the cycles of the
//! card's cells.

use crate::board::{self, Board};
use crate::cards::{CardState, NamedProfile};
use crate::choose::Choice;
use crate::clock::Clock;
use crate::crash::inputs::WALL_LIMIT;
use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::Executor;
use crate::lab_executor::LabExecutor;
use crate::observer::Observer;
use crate::question::Question;
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use whichfs_card::{Life, Load, Profile, programmed_life, wear_under};
use whichfs_decide::sustained::{FILL_PERMILLE, Lasting};
use whichfs_decide::{FilesystemLoad, LongUse, Need};
use whichfs_trial::Trial;

/// How much is written in a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Daily {
    /// So many bytes, into files.
    FileBytes(u64),
    /// As much as so many runs of the need's workload write.
    Runs(f64),
}

/// The shipped need called `name`, or that of the workload of this name.
///
/// # Errors
/// There is none, or it writes nothing in the long run.
pub fn need_of(name: &str) -> Outcome<Need> {
    let need = Need::named(name).or_else(|unknown| {
        let mut all = Need::builtin().into_iter();
        all.find(|need| need.workload == name).ok_or(unknown)
    });
    let need = need.map_err(Error::input)?;
    long_use(&need)?;
    Ok(need)
}

/// What `need` writes in the long run.
///
/// # Errors
/// It states nothing.
fn long_use(need: &Need) -> Outcome<LongUse> {
    need.sustained.clone().ok_or_else(|| {
        Error::input(format!(
            "the need {} states nothing that is written in the long run ([sustained] in its file): \
             take one that does, as logger or rootfs, or state what reaches the card in a day",
            need.name
        ))
    })
}

/// What is asked: the life of a card under a filesystem.
#[derive(Clone, Debug)]
pub struct LifeQuestion {
    /// Its mix of writes in the long run is that of the trial.
    pub need: Need,
    /// Name of the candidate.
    pub filesystem: String,
    /// How much is written.
    pub daily: Daily,
    /// Seed of the trial.
    pub seed: u64,
}

/// The life of a card under a filesystem.
#[derive(Clone, Debug)]
pub struct FilesystemLife {
    /// What is written, and how that is known.
    pub load: FilesystemLoad,
    /// Bytes that reach the card in a day; bytes programmed for each of them; erases of the most
    /// worn block for each of the mean.
    pub wear: (u64, f64, f64),
    /// Years that shares of such cards live at most; none if nothing is programmed.
    pub life: Option<Life>,
}

/// The life of the card called `card` of `profile`; the sustained trial that it takes is run on
/// `executor`, unless `cache` has it.
///
/// # Errors
/// The need writes nothing in the long run, or nobody knows how much; the trial failed; the
/// caller's interruption; what this machine lacks.
pub fn of_filesystem<E: Executor>(
    question: LifeQuestion,
    (card, profile): (&str, &Profile),
    executor: &E,
    cache: TrialCache,
    interrupted: &AtomicBool,
    observer: &mut dyn Observer,
) -> Outcome<FilesystemLife> {
    let LifeQuestion {
        need,
        filesystem,
        daily,
        seed,
    } = question;
    let long = long_use(&need)?;
    let work = WorkloadRun::named(&need.workload, &need.parameters)?;
    let (file_bytes_a_day, times_a_day, file_bytes_a_run) = match daily {
        Daily::FileBytes(bytes) => (bytes as f64, None, None),
        Daily::Runs(times) => {
            let each = work.file_bytes()?;
            (each as f64 * times, Some(times), Some(each))
        }
    };
    let name = need.name.clone();
    let asked = Question {
        need,
        work,
        candidates: vec![filesystem.clone()],
        first_seed: seed,
        seeds: 1,
        second_card: None,
    };
    let mut choice = Choice::new(asked, executor, cache, interrupted, Instant::now());
    let names = vec![filesystem.clone()];
    let told = choice.sustained_trials(executor, &long, names, observer)?;
    let told = told.into_iter().map(|(_, told)| told).next();
    let failed = |why: String| {
        let what = format!("{filesystem} on {card}: the sustained trial failed: {why}");
        Error::new(ErrorKind::Trial, what)
    };
    let trial = match told {
        Some(Ok(trial)) => trial,
        Some(Err(why)) => return Err(failed(why)),
        None => return Err(failed("it did not run".to_owned())),
    };
    let lasting = Lasting::of(&trial).ok_or_else(|| failed("the card counts nothing".into()))?;
    let spread = trial.outcome.erase_spread.ok_or_else(|| {
        failed("it is of a version that did not count erases by block: run it afresh".into())
    })?;
    let [one, other] = lasting.amplification;
    let write_amplification = [one.min(other), one.max(other)];
    let [least, most] = write_amplification.map(|times| times * file_bytes_a_day);
    let (reaches, programmed) = flash(&trial);
    let load = FilesystemLoad {
        filesystem,
        need: name,
        file_bytes_a_day: file_bytes_a_day.round() as u64,
        times_a_day,
        file_bytes_a_run,
        write_amplification,
        full_percent: FILL_PERMILLE / 10,
        trial: trial.identity.id(),
        mind: lasting.caveat(),
    };
    let bytes_a_day = (file_bytes_a_day * reaches).round() as u64;
    Ok(FilesystemLife {
        load,
        wear: (bytes_a_day, programmed, spread),
        life: programmed_life(profile, (least, most), spread),
    })
}

/// The lab for the sustained trial of `card`: the usual board, one trial at a time.
///
/// # Errors
/// The card cannot be cut down; what this machine lacks.
pub fn lab(card: NamedProfile) -> Outcome<LabExecutor> {
    let mut board = board::DEFAULT.to_owned();
    let clock = Clock::parse("cpu", &mut board)?;
    let board = Board::open(&board)?;
    LabExecutor::new(card, CardState::Sustained, board, clock, WALL_LIMIT, 1)
}

/// Bytes that reach the card for each written into files in the measured rounds of a sustained
/// `trial`, and bytes programmed for each that reaches it.
fn flash(trial: &Trial) -> (f64, f64) {
    let measured = ["sustained_before", "sustained_last"];
    let phases = trial.outcome.phases.iter();
    let phases = phases.filter(|phase| measured.contains(&phase.phase.as_str()));
    let sums = phases.fold([0.0; 3], |[files, card, flash], phase| {
        [
            files + (phase.counts.bytes - phase.counts.read_bytes) as f64,
            card + phase.device.write_bytes as f64,
            flash + phase.device.programmed_bytes as f64,
        ]
    });
    let [files, card, flash] = sums;
    (card / files.max(1.0), flash / card.max(1.0))
}

/// How long cards of `profile` live if `bytes_a_day` reach them as writes of 4 KiB anywhere.
///
/// # Errors
/// A profile that cannot be cut down.
pub fn of_random_writes(profile: &Profile, bytes_a_day: u64) -> Outcome<Option<Life>> {
    let load = Load {
        bytes_a_day,
        block_bytes: 4 << 10,
        sequential: false,
        span_bytes: None,
        seed: 1,
    };
    let wear = wear_under(profile, &load).map_err(Error::input)?;
    Ok(wear.life)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cards;
    use crate::mock::{MockExecutor, Scripted};
    use whichfs_units::{MIB, Nanos};

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// The life of the card a1-32gb, as `script` lets its trials go.
    fn life(need: Need, daily: Daily, script: &crate::mock::Script<'_>) -> Outcome<FilesystemLife> {
        let home = tempfile::tempdir().unwrap();
        let store = Some(home.path().join("store.sqlite"));
        let card = cards::open("a1-32gb").unwrap();
        let question = LifeQuestion {
            need,
            filesystem: "ext4".to_owned(),
            daily,
            seed: 1,
        };
        let mock = MockExecutor::new(script);
        let cache = TrialCache::open(store, false).unwrap();
        let asked = ("a1-32gb", &card.profile);
        of_filesystem(question, asked, &mock, cache, &NEVER, &mut ())
    }

    fn takes(_: &str, _: u64) -> Scripted {
        Scripted::Takes(Nanos(1_000_000))
    }

    fn logger() -> Need {
        Need::named("logger").unwrap()
    }

    #[test]
    fn years_are_cycles_beside_what_runs_of_the_workload_program() {
        // The mock card programs what is written, and wears one block twice as fast as the mean.
        let by_bytes = life(logger(), Daily::FileBytes(64 * MIB), &takes).unwrap();
        assert_eq!(by_bytes.load.write_amplification, [1.0, 1.0]);
        assert_eq!(by_bytes.wear, (64 * MIB, 1.0, 2.0));
        let (years, cycles) = (by_bytes.life.unwrap(), cards::open("a1-32gb").unwrap());
        let cycles = cycles.profile.pe_cycles();
        let widened = years.p90_years / years.p10_years;
        assert!(
            (widened / (cycles.p90 / cycles.p10) - 2.0).abs() < 1e-9,
            "by the spread"
        );
        let mind = by_bytes.load.mind.unwrap();
        assert!(mind.contains("was not exercised"), "{mind}");
        let work = WorkloadRun::named("logger", &logger().parameters).unwrap();
        let each = work.file_bytes().unwrap();
        let by_runs = life(logger(), Daily::Runs(24.0), &takes).unwrap();
        assert_eq!(by_runs.load.file_bytes_a_run, Some(each));
        assert_eq!(by_runs.load.file_bytes_a_day, 24 * each);
        let twice = life(logger(), Daily::Runs(48.0), &takes)
            .unwrap()
            .life
            .unwrap();
        assert!((by_runs.life.unwrap().p25_years / twice.p25_years - 2.0).abs() < 1e-9);
        let none = life(logger(), Daily::FileBytes(0), &takes).unwrap();
        assert_eq!(none.life, None, "nothing wears it");
    }

    #[test]
    fn what_cannot_be_told_is_refused_with_the_remedy() {
        let refused = |need, daily| life(need, daily, &takes).unwrap_err().message;
        let no_long_run = Need::named("rootfs-readonly").unwrap();
        let said = refused(no_long_run, Daily::Runs(1.0));
        assert!(
            said.contains("nothing that is written in the long run"),
            "{said}"
        );
        let mut unknown = logger();
        unknown.workload = "script".to_owned();
        unknown.parameters.clear();
        assert!(!refused(unknown, Daily::Runs(1.0)).is_empty());
        let fails = |_: &str, _: u64| Scripted::Fails("no space".to_owned());
        let failed = life(logger(), Daily::Runs(1.0), &fails).unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Trial);
        assert!(
            failed
                .message
                .contains("the sustained trial failed: no space"),
            "{failed}"
        );
    }

    #[test]
    fn a_need_may_be_called_by_its_workload() {
        assert_eq!(need_of("logger").unwrap().name, "logger");
        assert_eq!(need_of("packages").unwrap().workload, "packages");
        let refused = |name| need_of(name).unwrap_err().message;
        assert!(refused("nothing").contains("nothing"));
        assert!(refused("sqlite").contains("take one that does, as logger"));
    }
}
