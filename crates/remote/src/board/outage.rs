//! A board that loses its power in the middle of a trial, and comes back.

use super::{BoardSession, Broken, GREETING, LOOK_EVERY, SILENCE, broken, interrupt, pause};
use crate::power::Outage;
use crate::refusal::{Refusal, Why};
use crate::script::{LOOK, looked};
use crate::ssh::{Heard, Link, Trouble};
use crate::wire::{Answer, Ask, Call, Reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use whichfs_device::sandboxed_agent::AgentEnd;
use whichfs_trial::StampedEvent;
use whichfs_units::Nanos;

/// A board whose power was cut and that says nothing for so long is off: it is asked every five
/// seconds.
const QUIET: Duration = Duration::from_secs(9);

/// When and how a board loses its power.
pub struct Cutting<'a> {
    /// The event from which the time counts.
    pub begins: &'a dyn Fn(&StampedEvent) -> bool,
    /// How long after that event was heard; at the latest, and if there is none, when the trial has
    /// ended.
    pub after: Option<Duration>,
    /// How the power is cut.
    pub power: Power<'a>,
    /// How long it may take until the board is off.
    pub dies_within: Duration,
}

/// What takes the power.
#[derive(Clone, Copy)]
pub enum Power<'a> {
    /// The board itself.
    Board(Outage),
    /// Something here; its events are heard meanwhile.
    Here(&'a (dyn Fn() -> Result<(), Refusal> + Sync)),
}

/// What was heard of a trial until the power went.
#[derive(Clone, Debug)]
pub struct Parted {
    /// What the agent reported before the cut, in order.
    pub told: Vec<StampedEvent>,
    /// How it ended, if it had.
    pub ended: Option<AgentEnd>,
    /// When the power was taken, by the clock of the events.
    pub at: Nanos,
    /// How long after that the board could be asked again.
    pub away: Duration,
}

/// What takes the power; if that is done here, by a thread.
type Take<'a, 's> = &'a mut dyn FnMut(&Link) -> Option<ScopedJoinHandle<'s, Result<(), Refusal>>>;

/// Who has a say in it.
struct Watch<'a, 's> {
    cutting: &'a Cutting<'a>,
    interrupted: &'a AtomicBool,
    take: Take<'a, 's>,
    hear: &'a mut dyn FnMut(&StampedEvent),
}

/// What is under way while the power goes.
struct Outing<'s> {
    told: Vec<StampedEvent>,
    ended: Option<AgentEnd>,
    /// When the first event that counts was heard, and its time there.
    begun: Option<(Instant, Nanos)>,
    taken: Option<Instant>,
    worker: Option<ScopedJoinHandle<'s, Result<(), Refusal>>>,
}

impl Outing<'_> {
    fn is_due(&self, after: Option<Duration>) -> bool {
        let due = |(begun, _): (Instant, _)| after.is_some_and(|after| begun.elapsed() >= after);
        self.taken.is_none() && (self.ended.is_some() || self.begun.is_some_and(due))
    }

    /// When the power was taken, by the clock of the events.
    fn at(&self) -> Nanos {
        let last = self.told.last().map_or(Nanos(0), |told| told.at);
        let at = self.begun.zip(self.taken).map(|((begun, at), taken)| {
            let since = taken.saturating_duration_since(begun).as_nanos();
            Nanos(at.0 + u64::try_from(since).unwrap_or(0))
        });
        at.map_or(last, |at| at.max(last))
    }

    /// Whether what takes the power failed here.
    fn failed(&mut self) -> Option<Refusal> {
        let worker = self.worker.take_if(|worker| worker.is_finished())?;
        ended(worker).err()
    }
}

fn ended(worker: ScopedJoinHandle<'_, Result<(), Refusal>>) -> Result<(), Refusal> {
    let panicked = |_| Err(Refusal::environment("what takes the power panicked"));
    worker.join().unwrap_or_else(panicked)
}

impl BoardSession {
    /// Has the board do the trial `ask` and lose its power meanwhile; returns when it is back and
    /// the session where it was, without that trial. What was heard before counts: also what
    /// arrived after the power was taken, since it was told before it had gone. `hear` gets each
    /// event.
    ///
    /// # Errors
    /// The trial failed before; the board does not go, or does not come back; the user's interrupt.
    pub fn cut(
        &mut self,
        ask: &Ask,
        cutting: &Cutting<'_>,
        interrupted: &AtomicBool,
        hear: &mut dyn FnMut(&StampedEvent),
    ) -> Result<Parted, Refusal> {
        // There is a connection, and the session is where it was.
        self.request(&Ask::Written)?;
        let before = self.past.boot.clone().unwrap_or_default();
        std::thread::scope(|scope| {
            let mut outing = Outing {
                told: Vec::new(),
                ended: None,
                begun: None,
                taken: None,
                worker: None,
            };
            let power = cutting.power;
            let mut take = |link: &Link| match power {
                Power::Board(by) => {
                    link.say(&Call::Cut { by });
                    None
                }
                Power::Here(take) => Some(scope.spawn(take)),
            };
            let mut watch = Watch {
                cutting,
                interrupted,
                take: &mut take,
                hear,
            };
            self.follow(ask, &mut outing, &mut watch)?;
            if let Some(worker) = outing.worker.take() {
                ended(worker)?;
            }
            let taken = outing.taken.unwrap_or_else(Instant::now);
            self.comes_back(&before, taken + cutting.dies_within, interrupted)?;
            Ok(Parted {
                at: outing.at(),
                told: outing.told,
                ended: outing.ended,
                away: taken.elapsed(),
            })
        })
    }

    /// Hears the trial, takes the power when its time has come, and goes on hearing until nothing
    /// comes any more.
    fn follow<'s>(
        &mut self,
        ask: &Ask,
        outing: &mut Outing<'s>,
        watch: &mut Watch<'_, 's>,
    ) -> Result<(), Refusal> {
        let number = self.answered + 1;
        let mut lost: Option<Instant> = None;
        loop {
            let Some(link) = self.link.take() else {
                match self.connect() {
                    Ok(()) => lost = None,
                    Err(Broken::Refused(refusal)) => return Err(refusal),
                    Err(Broken::Gone) => return Err(self.ended_before()),
                    Err(Broken::Lost(why)) => {
                        if lost.get_or_insert_with(Instant::now).elapsed() > self.patience.lost {
                            return Err(self.given_up(&why));
                        }
                        pause(watch.interrupted)?;
                    }
                }
                continue;
            };
            if outing.ended.is_none() {
                let (have, what) = (outing.told.len(), ask.clone());
                link.say(&Call::Ask { number, have, what });
            }
            match self.listen(&link, number, outing, watch) {
                Ok(()) if outing.taken.is_some() => return Ok(()),
                Ok(()) => match broken(link.trouble()) {
                    Broken::Refused(refusal) => return Err(refusal),
                    Broken::Gone => return Err(self.ended_before()),
                    Broken::Lost(_) => {}
                },
                Err(refusal) => {
                    self.link = Some(link);
                    return Err(refusal);
                }
            }
        }
    }

    fn ended_before(&self) -> Refusal {
        let message = format!(
            "the agent on {} ended before its power was cut: did the board restart by itself? \
             look at its console; the same command goes on",
            self.address.board()
        );
        Refusal::new(Why::Trial, message)
    }

    /// Hears one connection until it ends or is silent.
    fn listen<'s>(
        &mut self,
        link: &Link,
        number: u64,
        outing: &mut Outing<'s>,
        watch: &mut Watch<'_, 's>,
    ) -> Result<(), Refusal> {
        let cutting = watch.cutting;
        let mut heard = Instant::now();
        loop {
            if watch.interrupted.load(Ordering::Relaxed) {
                return Err(interrupt());
            }
            if outing.is_due(cutting.after) {
                outing.taken = Some(Instant::now());
                outing.worker = (watch.take)(link);
            }
            if let Some(refusal) = outing.failed() {
                return Err(refusal);
            }
            let silence = outing.taken.map_or(SILENCE, |_| QUIET);
            if heard.elapsed() > silence {
                return Ok(());
            }
            if outing
                .taken
                .is_some_and(|taken| taken.elapsed() > cutting.dies_within)
            {
                return Err(self.lives_on());
            }
            let wait = match (outing.begun, cutting.after, outing.taken) {
                (Some((begun, _)), Some(after), None) => {
                    after.saturating_sub(begun.elapsed()).min(LOOK_EVERY)
                }
                _ => LOOK_EVERY,
            };
            let reply = match link.hear(wait) {
                Heard::Reply(reply) => reply,
                Heard::Nothing => continue,
                Heard::End => return Ok(()),
            };
            heard = Instant::now();
            match reply {
                Reply::StampedEvent { number: of, told } if of == number => {
                    if outing.begun.is_none() && (cutting.begins)(&told) {
                        outing.begun = Some((heard, told.at));
                    }
                    (watch.hear)(&told);
                    outing.told.push(*told);
                    let have = outing.told.len();
                    link.say(&Call::Heard { number, have });
                }
                Reply::Answer { number: of, result } if of == number => {
                    self.answered = number;
                    let of_power = outing.taken.is_some();
                    match result {
                        Ok(Answer::Ended { ended }) => outing.ended = Some(ended),
                        // Of what fails as the power goes nothing is asked.
                        Ok(_) | Err(_) if of_power => {}
                        Ok(other) => return Err(self.strange(&other)),
                        Err(refusal) => return Err(refusal.on(self.address.board())),
                    }
                    if let (Some(AgentEnd::Failed { message, .. }), false) =
                        (&outing.ended, of_power)
                    {
                        return Err(Refusal::new(Why::Trial, message.clone()));
                    }
                }
                Reply::NotCut { why } => return Err(why.on(self.address.board())),
                _ => {}
            }
        }
    }

    fn lives_on(&self) -> Refusal {
        let message = format!(
            "{} did not lose its power: it runs on since before the cut (boot_id is the same); \
             does the way that --power or --power-command names reach this board?",
            self.address.board()
        );
        Refusal::environment(message)
    }

    /// Waits until the board that was booted as `before` has booted anew, which must begin until
    /// `deadline`, and brings the session to where it was.
    fn comes_back(
        &mut self,
        before: &str,
        deadline: Instant,
        interrupted: &AtomicBool,
    ) -> Result<(), Refusal> {
        (self.seat, self.link) = (None, None);
        while self.boot(interrupted)? == before {
            if Instant::now() > deadline {
                return Err(self.lives_on());
            }
            pause(interrupted)?;
        }
        // That it has restarted was meant.
        self.past.boot = None;
        self.persist(interrupted, BoardSession::renew)
    }

    /// Number of the boot, once the board can be asked.
    fn boot(&mut self, interrupted: &AtomicBool) -> Result<String, Refusal> {
        let mut boot = String::new();
        self.persist(interrupted, |board| {
            let output = board.ssh.run(LOOK, b"").map_err(|trouble| match trouble {
                // Who logs in too early is turned away.
                Trouble::Ended(status, said) => Broken::Lost(format!("status {status}: {said}")),
                Trouble::Lost(why) => Broken::Lost(why),
            })?;
            boot = looked(&output).map_err(Broken::Refused)?.boot;
            Ok(())
        })?;
        Ok(boot)
    }

    /// Does `what` until the board can be reached.
    pub(super) fn persist(
        &mut self,
        interrupted: &AtomicBool,
        mut what: impl FnMut(&mut BoardSession) -> Result<(), Broken>,
    ) -> Result<(), Refusal> {
        let begun = Instant::now();
        loop {
            let why = match what(self) {
                Ok(()) => return Ok(()),
                Err(Broken::Refused(refusal)) => return Err(refusal),
                Err(Broken::Lost(why)) => why,
                Err(Broken::Gone) => "the agent ended at once".to_owned(),
            };
            if begun.elapsed() > self.patience.lost {
                return Err(self.given_up(&why));
            }
            pause(interrupted)?;
        }
    }

    /// As [`BoardSession::ask`], but what is under way when the board restarts is not begun anew:
    /// then there is no answer.
    ///
    /// # Errors
    /// As [`BoardSession::ask`]; the agent there ended though the board did not restart.
    pub fn ask_once(
        &mut self,
        ask: &Ask,
        interrupted: &AtomicBool,
    ) -> Result<(Option<Answer>, Vec<StampedEvent>), Refusal> {
        self.request(&Ask::Written)?;
        let before = self.past.boot.clone().unwrap_or_default();
        let mut told = Vec::new();
        let begun = Instant::now();
        loop {
            match self.attempt(ask, &mut told, interrupted, &mut |_| ()) {
                Ok(Ok(answer)) => return Ok((Some(answer), told)),
                Ok(Err(refusal)) => return Err(refusal.on(self.address.board())),
                Err(Broken::Refused(refusal)) => return Err(refusal),
                Err(Broken::Gone) => break,
                Err(Broken::Lost(why)) => {
                    self.link = None;
                    // A board that has restarted has no session to connect to.
                    if begun.elapsed() > self.patience.lost + GREETING {
                        return Err(self.given_up(&why));
                    }
                    pause(interrupted)?;
                }
            }
        }
        (self.seat, self.link) = (None, None);
        if self.boot(interrupted)? == before {
            let message = format!(
                "the agent on {} was ended while it looked at the filesystem, and the board did \
                 not restart: was it killed, for want of memory? the same command goes on",
                self.address.board()
            );
            return Err(Refusal::environment(message));
        }
        Ok((None, told))
    }
}
