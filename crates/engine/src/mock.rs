//! An executor that starts nothing: trials take the time that a script says.
//!
//! Flows of campaigns are tested with it, thousands of times a second: rounds, early stopping, the
//! trial cache, interruption, failing candidates, missing tools.

use crate::error::{Error, Outcome};
use crate::executor::{
    Capabilities, Executor, Lease, Phases, PreparedTrial, TrialSpec, WorkerSlot,
};
use crate::images::Images;
use crate::prepare_error::PrepareError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use whichfs_decide::FigureOrigin;
use whichfs_fs::Geometry;
use whichfs_trial::{
    Conditions, Counts, DeviceFigures, Identity, LatencyHistogram, Measured, Metric, PhaseFigures,
    REAL, Status, Trial,
};
use whichfs_units::{MIB, Nanos};
use whichfs_workload::Workload;

/// Bytes of the partition, unless a workload says another number.
const PARTITION_BYTES: u64 = 16 << 30;

/// What the script says of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum Scripted {
    /// Every phase takes this long.
    Takes(Nanos),
    /// The trial fails with this reason.
    Fails(String),
    /// The candidate cannot run here, for this reason.
    Excluded(String),
    /// This machine cannot run the trial: the campaign ends.
    Breaks(String),
}

/// A script: the candidate and the seed of a trial decide what becomes of it.
pub type Script<'a> = dyn Fn(&str, u64) -> Scripted + Sync + 'a;

/// Follows a script instead of starting guests, and counts the trials that it ran.
pub struct MockExecutor<'a> {
    script: &'a Script<'a>,
    slots: usize,
    card: String,
    /// The session, if trials are as those of a real device.
    session: Option<u64>,
    runs: AtomicU64,
}

impl<'a> MockExecutor<'a> {
    /// An executor of one slot that follows `script`.
    pub fn new(script: &'a Script<'a>) -> MockExecutor<'a> {
        MockExecutor {
            script,
            slots: 1,
            card: "mock".to_owned(),
            session: None,
            runs: AtomicU64::new(0),
        }
    }

    /// The same with a card called `card`.
    #[must_use]
    pub fn called(self, card: &str) -> MockExecutor<'a> {
        MockExecutor {
            card: card.to_owned(),
            ..self
        }
    }

    /// The same with trials as those of session `session` of a real device: measured, each of 1 MiB
    /// written.
    #[must_use]
    pub fn on_device(self, session: u64) -> MockExecutor<'a> {
        MockExecutor {
            session: Some(session),
            ..self
        }
    }

    /// The same with so many `slots`.
    #[must_use]
    pub fn with_slots(self, slots: usize) -> MockExecutor<'a> {
        MockExecutor { slots, ..self }
    }

    /// Trials that were run so far.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }
}

/// A prepared trial whose result the script decides.
pub struct MockTrial {
    label: String,
    workload: &'static dyn Workload,
    identity: Identity,
}

impl PreparedTrial for MockTrial {
    fn label(&self) -> &str {
        &self.label
    }

    fn set_label(&mut self, label: String) {
        self.label = label;
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn caveats(&self) -> &[String] {
        &[]
    }
}

impl<'a> Executor for MockExecutor<'a> {
    type Prepared = MockTrial;
    type Lease<'l>
        = &'l MockExecutor<'a>
    where
        'a: 'l;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            card: self.card.clone(),
            geometry: Geometry {
                partition_bytes: PARTITION_BYTES,
                page_bytes: 16 << 10,
                write_unit_bytes: 64 << 10,
                au_bytes: 4 * MIB,
                discard: true,
                flush: false,
            },
            spare_bytes: 0,
            origin: match self.session {
                Some(_) => FigureOrigin::Measured,
                None => FigureOrigin::Modelled,
            },
            slots: self.slots,
            card_uncertainty: 0.0,
            fit_error: None,
        }
    }

    fn prepare(
        &self,
        spec: &TrialSpec<'_>,
        _images: &Images<'_>,
    ) -> Result<MockTrial, PrepareError> {
        let name = spec.candidate.name;
        match (self.script)(name, spec.seed) {
            Scripted::Excluded(why) => Err(PrepareError::Excluded { why, source: None }),
            _ => Ok(MockTrial {
                label: format!("{name}, seed {}", spec.seed),
                workload: spec.work.workload,
                identity: identity(spec, &self.card, self.session),
            }),
        }
    }

    fn lease(&self, _name: &str) -> Outcome<&MockExecutor<'a>> {
        Ok(self)
    }
}

impl Lease<MockTrial> for &MockExecutor<'_> {
    fn run(
        &self,
        prepared: &MockTrial,
        _slot: WorkerSlot,
        interrupted: &AtomicBool,
        on_phase: Phases<'_>,
    ) -> Outcome<Option<Trial>> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        let identity = &prepared.identity;
        let (took, status) = match (self.script)(&identity.candidate, identity.seed) {
            Scripted::Takes(took) => (took, Status::Done),
            Scripted::Fails(reason) => {
                let log = Vec::new();
                (Nanos(0), Status::Failed { reason, log })
            }
            Scripted::Excluded(why) | Scripted::Breaks(why) => return Err(Error::environment(why)),
        };
        let done = status == Status::Done;
        let names = prepared.workload.phases().iter().map(|phase| phase.name);
        let names = ["mkfs", "mount"].into_iter().chain(names);
        let mut phases = Vec::new();
        for (number, name) in (0..).zip(names.filter(|_| done)) {
            let begin = Nanos(took.0 * number);
            on_phase(name, begin);
            phases.push(phase(name, begin, took));
        }
        let space = Metric {
            metric: "space".to_owned(),
            value: 1e6,
            unit: "B".to_owned(),
            lower_is_better: true,
        };
        Ok(Some(Trial {
            identity: identity.clone(),
            outcome: whichfs_trial::TrialOutcome {
                status,
                metrics: whichfs_workload::metrics(prepared.workload, &phases, &[space]),
                trace_sha256: String::new(),
                virtual_time: phases.last().map_or(Nanos(0), |last| last.end),
                phases,
                series: None,
                erase_spread: Some(2.0),
                conditions: self.session.map(|_| Conditions {
                    written_bytes: MIB,
                    ..Conditions::default()
                }),
            },
        }))
    }
}

/// A phase of one thousand operations with 1 MiB of data.
fn phase(name: &str, begin: Nanos, took: Nanos) -> PhaseFigures {
    const OPERATIONS: u64 = 1000;
    let mut latency = LatencyHistogram::default();
    latency.record_many(took.0 / OPERATIONS, OPERATIONS);
    PhaseFigures {
        phase: name.to_owned(),
        begin,
        end: Nanos(begin.0 + took.0),
        counts: Counts {
            operations: OPERATIONS,
            files: OPERATIONS,
            bytes: MIB,
            read_bytes: 0,
        },
        latency,
        device: DeviceFigures {
            writes: OPERATIONS,
            write_bytes: MIB,
            programmed_bytes: MIB,
            busy: took,
            ..DeviceFigures::default()
        },
        cpu: None,
        second_card: None,
    }
}

fn identity(spec: &TrialSpec<'_>, card: &str, session: Option<u64>) -> Identity {
    let text = |text: &str| text.to_owned();
    Identity {
        card: text(card),
        card_sha256: String::new(),
        card_state: text("fresh"),
        board: text("mock"),
        board_sha256: String::new(),
        clock: text(session.map_or("mock", |_| REAL)),
        kernel: text("mock"),
        kernel_sha256: String::new(),
        candidate: spec.variant.candidate(spec.candidate.name),
        mkfs: Vec::new(),
        mount_options: spec.variant.name.clone(),
        workload: text(spec.work.workload.name()),
        parameters: spec.work.parameters.clone(),
        tree_sha256: spec.work.tree_sha256.clone(),
        input: spec.work.input.clone(),
        partition_offset: 0,
        partition_bytes: spec.work.partition_bytes.unwrap_or(PARTITION_BYTES),
        memory_mib: 0,
        version: text("mock"),
        agent_sha256: String::new(),
        userland_sha256: None,
        tools: std::collections::BTreeMap::new(),
        cpu_features_sha256: String::new(),
        seed: spec.seed,
        data_seed: spec.work.other_data_seed(spec.seed),
        second_card: None,
        measured: session.map(|session| Measured {
            device: text("mock"),
            session,
            reference: None,
        }),
    }
}
