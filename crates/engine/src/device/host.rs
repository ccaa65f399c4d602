//! The machine that a device is in: this one, or a board that is asked by ssh.

use super::DeviceOptions;
use super::DeviceRun;
use crate::consent::{Consent, ConsentRequest};
use crate::error::{Error, Outcome};
use crate::labgrid::LabgridPlace;
use crate::tools::{self, Versions};
use crate::{places, signatures};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_agent::Reader;
use whichfs_device::sandboxed_agent::{AgentEnd, AgentRun};
use whichfs_device::{DestroyLimits, Inside, Roots, Scratch, TargetDisk};
use whichfs_format::{FormatJournal, InterruptedFormat, PartitionLease, kernel_has};
use whichfs_lab::Agent;
use whichfs_remote::{
    Address, Answer, Ask, BoardSession, Cutting, DevicePlace, MOUNT_POINT, Machine, Means, Outage,
    Parted, Patience, RemoteDisk, Task,
};
use whichfs_trial::StampedEvent;

/// Where a device is.
pub enum DeviceHost {
    /// In this machine.
    Here(Box<Local>),
    /// In a board.
    There(Box<Remote>),
    /// A directory of this machine, whose filesystem stays.
    Inside(Box<Within>),
}

/// A device of this machine.
pub struct Local {
    disk: TargetDisk,
    roots: Roots,
    agent: Agent,
    versions: Mutex<Versions>,
}

/// A directory of this machine that trials are run in.
pub struct Within {
    /// The directory under test.
    pub inside: Inside,
    pub(super) roots: Roots,
    pub(super) agent: Agent,
}

/// A device of a board.
pub struct Remote {
    address: Address,
    agent_sha256: String,
    board: Mutex<BoardSession>,
    /// The place of the lab that the board is in; released after the session has ended.
    place: Option<LabgridPlace>,
    /// What is known of its tools and its kernel.
    versions: Mutex<BTreeMap<String, Option<String>>>,
}

/// An answer of a kind that was not asked for.
fn strange(answer: &Answer) -> Error {
    Error::environment(format!("the board answers {answer:?}: make agents again"))
}

impl DeviceHost {
    /// The device at `place`, if nothing but the user's word speaks against losing its data, and
    /// the machine around it. The caller sets `interrupted` to end the wait for a board that
    /// starts.
    ///
    /// # Errors
    /// The first reason against it, with its remedy; what the machine lacks.
    pub fn open(
        place: &DevicePlace,
        options: &DeviceOptions,
        interrupted: &AtomicBool,
    ) -> Outcome<(DeviceHost, RemoteDisk, Machine)> {
        let defaults = DestroyLimits::default();
        let limits = DestroyLimits {
            max_bytes: options.max_bytes.unwrap_or(defaults.max_bytes),
            internal: options.internal,
        };
        let (around, device, machine) = match place {
            DevicePlace::Here(path) => {
                let roots = Roots::default();
                let disk = TargetDisk::find(path, &limits, &roots)?;
                let device = RemoteDisk::of(&disk);
                let local = Local {
                    disk,
                    roots,
                    agent: places::agent()?,
                    versions: Mutex::default(),
                };
                (DeviceHost::Here(Box::new(local)), device, Machine::this())
            }
            DevicePlace::There(address) => {
                there(address, None, &limits, options.board_timeout, interrupted)?
            }
            DevicePlace::Labgrid { place, path } => {
                let place = LabgridPlace::acquire(place)?;
                let address = place.address(path)?;
                let timeout = options.board_timeout;
                there(&address, Some(place), &limits, timeout, interrupted)?
            }
        };
        let left = InterruptedFormat::read(&places::journals()?, &device.id);
        if let Some(told) = left.and_then(|left| left.told()) {
            log::warn!("the last run on this device {told}");
        }
        Ok((around, device, machine))
    }

    /// The device as a person names it.
    pub fn shown(&self, device: &RemoteDisk) -> String {
        match self {
            DeviceHost::Here(_) | DeviceHost::Inside(_) => device.path.clone(),
            DeviceHost::There(remote) => remote.address.to_string(),
        }
    }

    /// SHA-256 of what does the jobs.
    pub fn agent_sha256(&self) -> &str {
        match self {
            DeviceHost::Here(local) => &local.agent.sha256,
            DeviceHost::There(remote) => &remote.agent_sha256,
            DeviceHost::Inside(within) => &within.agent.sha256,
        }
    }

    /// Where trials mount; `own` is this machine's place.
    pub fn mount_point(&self, own: &str) -> String {
        match self {
            DeviceHost::Here(_) | DeviceHost::Inside(_) => own.to_owned(),
            DeviceHost::There(_) => MOUNT_POINT.to_owned(),
        }
    }

    /// The board, if it is one.
    pub fn board(&self) -> Option<&str> {
        match self {
            DeviceHost::Here(_) | DeviceHost::Inside(_) => None,
            DeviceHost::There(remote) => Some(remote.address.board()),
        }
    }

    /// Those of `names` that are not installed there.
    ///
    /// # Errors
    /// The board cannot be asked.
    pub fn missing<'a>(&self, names: &[&'a str]) -> Outcome<Vec<&'a str>> {
        let mut missing: Vec<&str> = names.to_vec();
        match self {
            DeviceHost::Here(_) | DeviceHost::Inside(_) => {
                missing.retain(|tool| tools::find(tool).is_none());
            }
            DeviceHost::There(remote) => {
                let known = remote.versions(names)?;
                missing.retain(|tool| !known.contains_key(*tool));
            }
        }
        Ok(missing)
    }

    /// The versions of `names`; one that is not there is left out.
    ///
    /// # Errors
    /// The board cannot be asked.
    pub fn versions(&self, names: &[&str]) -> Outcome<BTreeMap<String, String>> {
        match self {
            DeviceHost::Here(local) => Ok(local.versions.lock().of(names)),
            DeviceHost::There(remote) => remote.versions(names),
            // The filesystem is there already.
            DeviceHost::Inside(_) => Ok(BTreeMap::new()),
        }
    }

    /// Whether the kernel there knows the filesystem `name`.
    ///
    /// # Errors
    /// The board cannot be asked.
    pub fn kernel_has(&self, name: &str) -> Outcome<bool> {
        let remote = match self {
            DeviceHost::Here(_) | DeviceHost::Inside(_) => return Ok(kernel_has(name)),
            DeviceHost::There(remote) => remote,
        };
        let name = name.to_owned();
        match remote.board.lock().request(&Ask::Filesystem { name })? {
            Answer::Is { so } => Ok(so),
            other => Err(strange(&other)),
        }
    }

    /// Asks for `consent` to destroy what is on `device`, and has the guard judge the answer.
    ///
    /// # Errors
    /// No consent, or that of another device; the device is in use.
    pub fn confirm(&mut self, device: &RemoteDisk, consent: &dyn Consent) -> Outcome {
        match self {
            DeviceHost::Here(local) => {
                let found = signatures::on(&local.disk.target.path).unwrap_or_default();
                confirm(&mut local.disk, consent, &found, &local.roots)
            }
            DeviceHost::There(remote) => {
                let request = ConsentRequest {
                    shown: &remote.address.to_string(),
                    bytes: device.bytes,
                    contents: None,
                    id: &device.id,
                };
                let given = consent.given(&request)?;
                remote.board.lock().request(&Ask::Confirm { given })?;
                Ok(())
            }
            // Nothing that is there is lost.
            DeviceHost::Inside(_) => Ok(()),
        }
    }

    /// The device leased for `trials`, as the journal calls them.
    ///
    /// # Errors
    /// A tool is missing, or the journal cannot be written.
    pub fn lease(&self, device: &RemoteDisk, trials: &str) -> Outcome<DeviceLease<'_>> {
        let journals = places::journals()?;
        Ok(match self {
            DeviceHost::Here(local) => DeviceLease::Here {
                lease: PartitionLease::begin(&local.disk, &local.roots, &journals, trials)?,
                local,
            },
            DeviceHost::There(remote) => {
                let steps = [trials.to_owned()];
                let journal =
                    FormatJournal::begin(&journals, &self.shown(device), &device.id, &steps)?;
                let trials = trials.to_owned();
                remote.board.lock().request(&Ask::Begin { trials })?;
                DeviceLease::There { remote, journal }
            }
            DeviceHost::Inside(within) => within.begin()?,
        })
    }
}

/// Asks for `consent` to destroy what is on `disk`, on which `found` was found; the guard judges.
///
/// # Errors
/// No consent, or that of another device; the device is in use.
pub fn confirm(
    disk: &mut TargetDisk,
    consent: &dyn Consent,
    found: &[String],
    roots: &Roots,
) -> Outcome {
    let path = disk.target.path.display().to_string();
    let given = consent.given(&ConsentRequest {
        shown: &path,
        bytes: disk.bytes,
        contents: Some(found),
        id: &disk.id,
    })?;
    Ok(disk.confirm(given.as_deref(), roots)?)
}

/// A session with the board of `address`, and its device. A board whose `place` can be switched on
/// is, and may take its time to start.
fn there(
    address: &Address,
    place: Option<LabgridPlace>,
    limits: &DestroyLimits,
    timeout: Option<Duration>,
    interrupted: &AtomicBool,
) -> Outcome<(DeviceHost, RemoteDisk, Machine)> {
    let tell = Box::new(|text: &str| log::warn!("{text}"));
    let (kit, mut patience) = (places::kit()?, Patience::default());
    patience.lost = timeout.unwrap_or(patience.lost);
    if address.console {
        kit.has_labgrid()?;
    }
    let boots = match &place {
        Some(place) => place.switch_on()?.then_some(interrupted),
        None => None,
    };
    let mut board = BoardSession::open(address, kit, patience, tell, boots)?;
    let (device, machine) = board.find(limits)?;
    let remote = Remote {
        address: address.clone(),
        agent_sha256: board.agent_sha256().to_owned(),
        board: Mutex::new(board),
        place,
        versions: Mutex::default(),
    };
    Ok((DeviceHost::There(Box::new(remote)), device, machine))
}

impl Remote {
    /// Notes in `journal` that the trial called `label` begins, if its place is still ours.
    fn step(&self, journal: &mut FormatJournal, label: &str) -> Outcome {
        if let Some(place) = &self.place {
            place.require_held()?;
        }
        journal.step(0)?;
        Ok(journal.trial(label)?)
    }

    fn versions(&self, names: &[&str]) -> Outcome<BTreeMap<String, String>> {
        let mut known = self.versions.lock();
        let unknown: BTreeSet<&str> = names
            .iter()
            .copied()
            .filter(|name| !known.contains_key(*name))
            .collect();
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.into_iter().map(str::to_owned).collect();
            let ask = Ask::Tools {
                names: names.clone(),
            };
            let mut versions = match self.board.lock().request(&ask)? {
                Answer::Tools { versions } => versions,
                other => return Err(strange(&other)),
            };
            known.extend(names.into_iter().map(|name| {
                let version = versions.remove(&name);
                (name, version)
            }));
        }
        let of = |name: &&str| {
            let version = known.get(*name)?.clone()?;
            Some(((*name).to_owned(), version))
        };
        Ok(names.iter().filter_map(of).collect())
    }
}

/// What a trial on a device may take.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Time after which it is ended.
    pub wall: Duration,
    /// Bytes after which it is ended, as the disk counts what is written.
    pub written: Option<u64>,
}

/// A device that trials run on.
pub enum DeviceLease<'a> {
    /// A device of this machine.
    Here {
        /// The partition under test.
        lease: PartitionLease<'a>,
        /// Access to this machine.
        local: &'a Local,
    },
    /// Of a board, with the journal that is kept here.
    There {
        /// Access to the board.
        remote: &'a Remote,
        /// What is on it.
        journal: FormatJournal,
    },
    /// A directory of this machine.
    Inside {
        /// Access to the directory.
        within: &'a Within,
        /// What is removed at the end.
        scratch: Scratch,
    },
}

impl DeviceLease<'_> {
    /// Bytes written to the device since it appeared, if that is known.
    pub fn written(&self) -> Option<u64> {
        let by = |disk: &str| {
            let reading = Reader::of(disk).read();
            reading.ok().map(|reading| reading.device.write_bytes)
        };
        match self {
            DeviceLease::Here { local, .. } => by(local.disk.name()),
            DeviceLease::Inside { within, .. } => by(&within.inside.disk),
            DeviceLease::There { remote, .. } => match remote.board.lock().request(&Ask::Written) {
                Ok(Answer::Written { bytes }) => Some(bytes),
                _ => None,
            },
        }
    }

    /// Has the agent do `run`; `hear` gets each event.
    ///
    /// # Errors
    /// The device is in use, another or gone; the user's interrupt: nothing is known of the
    /// candidate then.
    pub fn perform(
        &mut self,
        run: &DeviceRun,
        limits: RunLimits,
        interrupted: &AtomicBool,
        hear: &mut dyn FnMut(&StampedEvent),
    ) -> Outcome<AgentRun> {
        match self {
            DeviceLease::Here { lease, local } => {
                let means = Means {
                    agent: &local.agent.path,
                    disk: local.disk.name(),
                    wall_limit: limits.wall,
                    write_limit: limits.written,
                };
                let work = (run.span, false, run.label.as_str(), &run.job);
                Ok(whichfs_remote::trial(
                    lease,
                    &means,
                    work,
                    interrupted,
                    hear,
                )?)
            }
            DeviceLease::There { remote, journal } => {
                remote.step(journal, &run.label)?;
                let task = Ask::Trial(Box::new(Task {
                    span: run.span,
                    label: run.label.clone(),
                    job: run.job.clone(),
                    wall_limit_s: limits.wall.as_secs(),
                    write_limit: limits.written,
                    keeps: false,
                }));
                let mut board = remote.board.lock();
                match board.ask(&task, interrupted, hear)? {
                    (Answer::Ended { ended }, told) => Ok(AgentRun { told, ended }),
                    (other, _) => Err(strange(&other)),
                }
            }
            DeviceLease::Inside { within, scratch } => {
                within.perform(scratch, run, limits, interrupted, hear)
            }
        }
    }

    /// The board and the journal, since power is cut on boards alone.
    fn board(&mut self) -> Outcome<(&Remote, &mut FormatJournal)> {
        match self {
            DeviceLease::There { remote, journal } => Ok((remote, journal)),
            DeviceLease::Here { .. } | DeviceLease::Inside { .. } => Err(Error::input(
                "the power of this machine cannot be cut by itself: name a board (ssh://…)",
            )),
        }
    }

    /// Time that the board takes to end itself by `by`.
    ///
    /// # Errors
    /// It cannot.
    pub fn takes(&mut self, by: Outage) -> Outcome<Duration> {
        let (remote, _) = self.board()?;
        match remote.board.lock().request(&Ask::Outage { by })? {
            Answer::Takes { milliseconds } => Ok(Duration::from_millis(milliseconds)),
            other => Err(strange(&other)),
        }
    }

    /// Has the board do `task` and lose its power meanwhile.
    ///
    /// # Errors
    /// The run failed before; the board does not go, or does not come back.
    pub fn cut(
        &mut self,
        task: Task,
        cutting: &Cutting<'_>,
        interrupted: &AtomicBool,
    ) -> Outcome<Parted> {
        let (remote, journal) = self.board()?;
        remote.step(journal, &task.label)?;
        let mut board = remote.board.lock();
        let task = Ask::Trial(Box::new(task));
        Ok(board.cut(&task, cutting, interrupted, &mut |_| ())?)
    }

    /// Has the board do `task` once: how it ended, which is `None` if the board restarted
    /// meanwhile.
    ///
    /// # Errors
    /// The device is in use, another or gone; the user's interrupt.
    pub fn once(
        &mut self,
        task: Task,
        interrupted: &AtomicBool,
    ) -> Outcome<(Option<AgentEnd>, Vec<StampedEvent>)> {
        let (remote, journal) = self.board()?;
        remote.step(journal, &task.label)?;
        let task = Ask::Trial(Box::new(task));
        match remote.board.lock().ask_once(&task, interrupted)? {
            (None, told) => Ok((None, told)),
            (Some(Answer::Ended { ended }), told) => Ok((Some(ended), told)),
            (Some(other), _) => Err(strange(&other)),
        }
    }

    /// No more trials follow.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn end(self) -> Outcome {
        match self {
            DeviceLease::Here { lease, .. } => Ok(lease.end(None)?),
            DeviceLease::There {
                remote,
                mut journal,
            } => {
                remote.board.lock().request(&Ask::End)?;
                journal.done(0)?;
                Ok(journal.end(None)?)
            }
            DeviceLease::Inside { scratch, .. } => Ok(scratch.end()?),
        }
    }
}
