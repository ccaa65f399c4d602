//! A study on several devices at once: each has a campaign of its own, with its own order and
//! budget, so that one that fails stops no other.

use super::DeviceMatrix;
use crate::campaign::Fair;
use crate::device::DeviceExecutor;
use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::Executor;
use crate::observer::{Observer, ProgressEvent};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::thread;
use whichfs_study::PerformanceStudy;

/// A study on one device, planned.
pub struct PlacedStudy<'a, E: Executor> {
    /// The study with that device and its machine.
    pub study: &'a PerformanceStudy,
    /// Where the device is, for people.
    pub place: String,
    /// Trials of the study on that device, with what is known of them.
    pub matrix: DeviceMatrix<'a, E>,
    /// In which order they run, and what they may cost.
    pub order: Fair,
    /// Why its run ended early, if it did.
    pub ended: Option<Error>,
}

/// The kernels of the machines of `devices`, each once: release and SHA-256.
pub fn kernels_of(devices: &[DeviceExecutor]) -> Vec<(String, String)> {
    let machines = devices.iter().map(|one| &one.machine);
    let kernels = machines.map(|one| (one.kernel.clone(), one.kernel_sha256.clone()));
    kernels.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Checks that no two of `devices` are the same one.
///
/// # Errors
/// Two are.
pub fn require_different(devices: &[DeviceExecutor]) -> Outcome {
    for (at, one) in devices.iter().enumerate() {
        let is_same = |other: &&DeviceExecutor| {
            let (a, b) = (&one.device, &other.device);
            a.identity == b.identity && one.machine.sha256 == other.machine.sha256
        };
        if let Some(other) = devices[..at].iter().find(is_same) {
            return Err(Error::input(format!(
                "{} and {} are the same device, {}: name each once",
                other.shown(),
                one.shown(),
                one.id()
            )));
        }
    }
    Ok(())
}

/// Runs what is missing of all `parts` at once, each on its executor of `executors`. What ends one
/// early is in its `ended`; the others go on. `observer` hears of all: the worker is the number of
/// the part.
///
/// # Errors
/// The caller's interruption; of a single part, what ended it. What was finished is kept.
pub fn run_fleet<E: Executor>(
    parts: &mut [PlacedStudy<'_, E>],
    executors: &[E],
    observer: &mut (dyn Observer + Send),
) -> Outcome {
    let alone = parts.len() == 1;
    let shared = Mutex::new(observer);
    thread::scope(|scope| {
        for (at, (part, executor)) in parts.iter_mut().zip(executors).enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                let name = match alone {
                    true => String::new(),
                    false => format!("{}: ", part.place),
                };
                let mut hear = PartObserver { at, name, shared };
                let trials = format!("trials of {}", part.study.name);
                let PlacedStudy { matrix, order, .. } = part;
                if !order.turns.is_empty() {
                    let ended = matrix.campaign.run(executor, &trials, order, &mut hear);
                    part.ended = ended.err();
                }
            });
        }
    });
    let is_interrupt = |part: &&mut PlacedStudy<'_, E>| {
        let kind = part.ended.as_ref().map(|error| error.kind);
        alone || kind == Some(ErrorKind::Interrupted)
    };
    let ended = parts.iter_mut().find(is_interrupt);
    match ended.and_then(|part| part.ended.take()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// What one of several campaigns tells to the observer of all.
struct PartObserver<'o, 's> {
    at: usize,
    /// What its trials are called by before their own names.
    name: String,
    shared: &'s Mutex<&'o mut (dyn Observer + Send)>,
}

impl Observer for PartObserver<'_, '_> {
    fn hear(&mut self, event: &ProgressEvent) {
        let (worker, name) = (self.at, &self.name);
        let told = match event {
            ProgressEvent::Begun { what, .. } => ProgressEvent::Begun {
                worker,
                what: format!("{name}{what}"),
            },
            ProgressEvent::Phase { phase, at, .. } => ProgressEvent::Phase {
                worker,
                phase: phase.clone(),
                at: *at,
            },
            ProgressEvent::Ended {
                what, trial, wall, ..
            } => ProgressEvent::Ended {
                worker,
                what: format!("{name}{what}"),
                trial: trial.clone(),
                wall: *wall,
            },
            other => return self.shared.lock().hear(other),
        };
        self.shared.lock().hear(&told);
    }
}
