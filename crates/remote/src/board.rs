//! A session with a board, from here: asks, and asks again when the connection was lost or the
//! board has restarted.

mod outage;

pub use outage::{Cutting, Parted, Power};

use crate::about::{Machine, RemoteDisk};
use crate::address::Address;
use crate::refusal::{Refusal, Why};
use crate::script::{self, Kit, LOOK, Look, as_root};
use crate::ssh::{Heard, Link, Ssh, Trouble, may_boot, unreachable};
use crate::tools::sha256;
use crate::wire::{Answer, Ask, Call, Reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_device::DestroyLimits;
use whichfs_trial::StampedEvent;

/// A board that says nothing for so long, though it is asked every few seconds, is out of reach.
const SILENCE: Duration = Duration::from_secs(45);
/// How often it is looked whether the user wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a new connection may take to say that it stands: labgrid and a login on a slow console
/// take their time.
const GREETING: Duration = Duration::from_secs(120);
/// How long an interrupted trial may take to end.
const ENDING: Duration = Duration::from_secs(90);
/// How long a device may take to appear after a restart.
const APPEARING: Duration = Duration::from_secs(30);
/// Pause between two tries to connect.
const PAUSE: Duration = Duration::from_secs(2);

/// What a session bears.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long the board may be out of reach.
    pub lost: Duration,
    /// How often it may restart during one trial.
    pub restarts: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            lost: Duration::from_secs(600),
            restarts: 2,
        }
    }
}

/// A board during a session.
pub struct BoardSession {
    address: Address,
    ssh: Ssh,
    kit: Kit,
    patience: Patience,
    tell: Box<dyn FnMut(&str) + Send>,
    seat: Option<Seat>,
    link: Option<Link>,
    /// Questions of this seat that were answered.
    answered: u64,
    past: Past,
}

/// Where the agent is.
struct Seat {
    directory: String,
    look: Look,
    sha256: String,
}

/// What was asked and changed something: asked again on a board that has restarted.
#[derive(Default)]
struct Past {
    found: Option<(Ask, RemoteDisk)>,
    confirmed: Option<Ask>,
    begun: Option<Ask>,
    /// Number of the boot that was seen last.
    boot: Option<String>,
}

/// Why a question has no answer yet.
enum Broken {
    /// The board cannot be reached, for this reason.
    Lost(String),
    /// The session is not there any more.
    Gone,
    /// There will be none.
    Refused(Refusal),
}

impl BoardSession {
    /// Begins a session with the board of `address`; `tell` hears what happens to the connection.
    /// With `boots`, which the caller sets to interrupt, the board may be starting: it is tried
    /// again until `patience` ends.
    ///
    /// # Errors
    /// It cannot be reached, there is no agent for it, or somebody else measures there.
    pub fn open(
        address: &Address,
        kit: Kit,
        patience: Patience,
        tell: Box<dyn FnMut(&str) + Send>,
        boots: Option<&AtomicBool>,
    ) -> Result<BoardSession, Refusal> {
        let mut board = BoardSession {
            address: address.clone(),
            ssh: Ssh::to(address, &kit),
            kit,
            patience,
            tell,
            seat: None,
            link: None,
            answered: 0,
            past: Past::default(),
        };
        match board.renew() {
            Ok(()) => Ok(board),
            Err(Broken::Refused(refusal)) => Err(refusal),
            Err(Broken::Lost(said)) => match boots.filter(|_| may_boot(&said)) {
                Some(interrupted) => {
                    let waits = format!("waiting for {} to start ({said})", board.host());
                    (board.tell)(&waits);
                    board.persist(interrupted, BoardSession::renew)?;
                    Ok(board)
                }
                None => Err(unreachable(address, &said)),
            },
            Err(Broken::Gone) => Err(unreachable(address, "the agent ended at once")),
        }
    }

    /// The board as messages name it.
    pub fn host(&self) -> &str {
        self.address.board()
    }

    /// SHA-256 of the agent that is there.
    pub fn agent_sha256(&self) -> &str {
        self.seat.as_ref().map_or("", |seat| &seat.sha256)
    }

    /// The device of the address, if nothing but the user's word speaks against losing its data,
    /// and the machine around it.
    ///
    /// # Errors
    /// The first reason against it, with its remedy.
    pub fn find(&mut self, limits: &DestroyLimits) -> Result<(RemoteDisk, Machine), Refusal> {
        let path = self.address.path.clone();
        let limits = limits.clone();
        let ask = Ask::Find { path, limits };
        match self.ask(&ask, &AtomicBool::new(false), &mut |_| ())?.0 {
            Answer::Found { device, machine } => {
                self.past.found = Some((ask, (*device).clone()));
                Ok((*device, *machine))
            }
            other => Err(self.strange(&other)),
        }
    }

    /// Asks what is done at once.
    ///
    /// # Errors
    /// Why it is not done.
    pub fn request(&mut self, ask: &Ask) -> Result<Answer, Refusal> {
        let (answer, _) = self.ask(ask, &AtomicBool::new(false), &mut |_| ())?;
        match ask {
            Ask::Confirm { .. } => self.past.confirmed = Some(ask.clone()),
            Ask::Begin { .. } => self.past.begun = Some(ask.clone()),
            Ask::End => self.past.begun = None,
            _ => {}
        }
        Ok(answer)
    }

    /// Asks, and waits for the answer as long as it takes; `hear` gets each event as it comes.
    /// `interrupted` ends a trial. After a restart of the board all begins anew, so some events
    /// may be heard twice: those that count are returned.
    ///
    /// # Errors
    /// Why it is not done; the board is out of reach for too long, or restarts again and again.
    pub fn ask(
        &mut self,
        ask: &Ask,
        interrupted: &AtomicBool,
        hear: &mut dyn FnMut(&StampedEvent),
    ) -> Result<(Answer, Vec<StampedEvent>), Refusal> {
        let (mut told, mut restarts) = (Vec::new(), 0);
        let mut lost: Option<Instant> = None;
        loop {
            let result = self.attempt(ask, &mut told, interrupted, hear);
            let why = match result {
                Ok(result) => {
                    let place = self.address.board().to_owned();
                    return result
                        .map(|answer| (answer, told))
                        .map_err(|refusal| refusal.on(&place));
                }
                Err(Broken::Refused(refusal)) => return Err(refusal),
                Err(Broken::Gone) => {
                    told.clear();
                    (self.seat, self.link) = (None, None);
                    restarts += 1;
                    if restarts > self.patience.restarts {
                        return Err(self.restarts_always(restarts));
                    }
                    continue;
                }
                Err(Broken::Lost(why)) => why,
            };
            self.link = None;
            let host = self.address.board();
            if lost.is_none() {
                (self.tell)(&format!(
                    "the connection to {host} is lost ({why}); what is under way there goes on; \
                     trying again"
                ));
            }
            let since = *lost.get_or_insert_with(Instant::now);
            if since.elapsed() > self.patience.lost {
                return Err(self.given_up(&why));
            }
            pause(interrupted)?;
        }
    }

    /// That the board was out of reach for too long; `why` is what ssh said last.
    fn given_up(&self, why: &str) -> Refusal {
        let seconds = self.patience.lost.as_secs();
        let said = format!("{why}, for {seconds} s (--board-timeout)");
        unreachable(&self.address, &said)
    }

    fn restarts_always(&self, times: u32) -> Refusal {
        let message = format!(
            "{} restarted {times} times during one trial: look at its console and its power supply",
            self.address.board()
        );
        Refusal::new(Why::Trial, message)
    }

    fn strange(&self, answer: &Answer) -> Refusal {
        let message = format!(
            "{} answers {answer:?}: make agents again",
            self.address.board()
        );
        Refusal::environment(message)
    }

    /// Asks once, by a connection that is made if there is none.
    fn attempt(
        &mut self,
        ask: &Ask,
        told: &mut Vec<StampedEvent>,
        interrupted: &AtomicBool,
        hear: &mut dyn FnMut(&StampedEvent),
    ) -> Result<Result<Answer, Refusal>, Broken> {
        if self.seat.is_none() {
            self.renew()?;
        } else if self.link.is_none() {
            self.connect()?;
            (self.tell)(&format!("connected to {} again", self.address.board()));
        }
        self.exchange(ask, told, interrupted, hear)
    }

    /// Asks by the connection that is there, and waits for the answer.
    fn exchange(
        &mut self,
        ask: &Ask,
        told: &mut Vec<StampedEvent>,
        interrupted: &AtomicBool,
        hear: &mut dyn FnMut(&StampedEvent),
    ) -> Result<Result<Answer, Refusal>, Broken> {
        let number = self.answered + 1;
        let Some(link) = self.link.take() else {
            return Err(Broken::Lost("there is none".to_owned()));
        };
        link.say(&Call::Ask {
            number,
            have: told.len(),
            what: ask.clone(),
        });
        let mut stopped: Option<Instant> = None;
        let mut heard = Instant::now();
        loop {
            if interrupted.load(Ordering::Relaxed) && stopped.is_none() {
                link.say(&Call::Stop);
                stopped = Some(Instant::now());
            }
            if stopped.is_some_and(|since| since.elapsed() > ENDING) {
                return Err(Broken::Refused(interrupt()));
            }
            if heard.elapsed() > SILENCE {
                return Err(Broken::Lost("it is silent".to_owned()));
            }
            let next = link.hear(LOOK_EVERY);
            if let Heard::Reply(_) = next {
                heard = Instant::now();
            }
            match next {
                Heard::Reply(Reply::StampedEvent {
                    number: of,
                    told: one,
                }) if of == number => {
                    let is_awaited = one.event.is_awaited();
                    hear(&one);
                    told.push(*one);
                    if is_awaited {
                        let have = told.len();
                        link.say(&Call::Heard { number, have });
                    }
                }
                Heard::Reply(Reply::Answer { number: of, result }) if of == number => {
                    self.answered = number;
                    self.link = Some(link);
                    return Ok(result);
                }
                Heard::Reply(_) | Heard::Nothing => {}
                Heard::End => return Err(broken(link.trouble())),
            }
        }
    }

    /// Connects to the session.
    fn connect(&mut self) -> Result<(), Broken> {
        let Some(seat) = &self.seat else {
            return Err(Broken::Gone);
        };
        let command = as_root(&script::join(&seat.directory), seat.look.sudo);
        let link = self.ssh.join(&command).map_err(broken)?;
        link.say(&Call::Here);
        let begun = Instant::now();
        while begun.elapsed() < GREETING {
            match link.hear(LOOK_EVERY) {
                Heard::Reply(Reply::Hello) => {
                    self.link = Some(link);
                    return Ok(());
                }
                Heard::Reply(_) | Heard::Nothing => {}
                Heard::End => return Err(broken(link.trouble())),
            }
        }
        Err(Broken::Lost("it does not answer".to_owned()))
    }

    /// Copies the agent, connects, and brings the session to where it was.
    fn renew(&mut self) -> Result<(), Broken> {
        let host = self.address.board().to_owned();
        let refused = |refusal: Refusal| Broken::Refused(refusal.on(&host));
        let output = self.ssh.run(LOOK, b"").map_err(broken)?;
        let look = script::looked(&output).map_err(refused)?;
        if let Some(before) = &self.past.boot {
            let what = match *before == look.boot {
                true => "the agent there was ended",
                false => "it has restarted",
            };
            (self.tell)(&format!("{host}: {what}; what was under way begins anew"));
        }
        let agent = self.kit.agent(&look.machine).map_err(refused)?;
        let sha256 = sha256(&agent);
        let command = as_root(&script::set_up(&name(), agent.len(), &sha256), look.sudo);
        let output = self
            .ssh
            .run(&command, &agent)
            .map_err(|trouble| match trouble {
                Trouble::Lost(why) => Broken::Lost(why),
                Trouble::Ended(script::NO_PLACE, _) => refused(Refusal::environment(
                    "no directory of /run, /dev/shm, /tmp and /var/tmp lets a program run from it: \
                 mount one without noexec",
                )),
                Trouble::Ended(status, said) => refused(Refusal::environment(format!(
                    "the agent cannot begin (status {status}): {said}"
                ))),
            })?;
        let directory = output.lines().last().unwrap_or_default().trim().to_owned();
        self.past.boot = Some(look.boot.clone());
        self.seat = Some(Seat {
            directory,
            look,
            sha256,
        });
        self.answered = 0;
        self.connect()?;
        self.replay()
    }

    /// Asks again what was asked before a restart.
    fn replay(&mut self) -> Result<(), Broken> {
        if let Some((ask, before)) = self.past.found.clone() {
            let device = self.found_again(&ask)?;
            if device.identity != before.identity || device.name != before.name {
                return Err(Broken::Refused(Refusal::new(
                    Why::Input,
                    format!(
                        "on {}: {} is another device than before the restart ({}, {}; it was {}, \
                         {}): name the one that is meant",
                        self.address.board(),
                        device.path,
                        device.name,
                        device.identity,
                        before.name,
                        before.identity
                    ),
                )));
            }
        }
        let past = [self.past.confirmed.clone(), self.past.begun.clone()];
        for ask in past.into_iter().flatten() {
            self.at_once(&ask)?.map_err(Broken::Refused)?;
        }
        Ok(())
    }

    /// The device after a restart: it may take a while to appear.
    fn found_again(&mut self, ask: &Ask) -> Result<RemoteDisk, Broken> {
        let begun = Instant::now();
        loop {
            match self.at_once(ask)? {
                Ok(Answer::Found { device, .. }) => return Ok(*device),
                Ok(other) => return Err(Broken::Refused(self.strange(&other))),
                Err(refusal) if begun.elapsed() > APPEARING => {
                    return Err(Broken::Refused(refusal.on(self.address.board())));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn at_once(&mut self, ask: &Ask) -> Result<Result<Answer, Refusal>, Broken> {
        let never = AtomicBool::new(false);
        self.exchange(ask, &mut Vec::new(), &never, &mut |_| ())
    }

    /// Ends the session and leaves nothing behind.
    fn leave(&mut self) {
        let Some(seat) = self.seat.take() else { return };
        let begun = Instant::now();
        if self.link.is_none() {
            let command = as_root(&script::join(&seat.directory), seat.look.sudo);
            self.link = self.ssh.join(&command).ok();
        }
        if let Some(link) = self.link.take() {
            link.say(&Call::Leave);
            while begun.elapsed() < ENDING {
                match link.hear(LOOK_EVERY) {
                    Heard::Reply(Reply::Left) => return,
                    Heard::Reply(_) | Heard::Nothing => {}
                    Heard::End => break,
                }
            }
        }
        // Who attended there has ended without removing it: what is mounted ended with it.
        let sweep = as_root(&script::sweep(&seat.directory), seat.look.sudo);
        if let Err(Trouble::Lost(why)) = self.ssh.run(&sweep, b"") {
            (self.tell)(&format!(
                "{} is out of reach ({why}): the agent there removes {} by itself when nobody \
                 comes back for ten minutes",
                self.address.board(),
                seat.directory
            ));
        }
    }
}

impl Drop for BoardSession {
    fn drop(&mut self) {
        self.leave();
    }
}

fn broken(trouble: Trouble) -> Broken {
    match trouble {
        Trouble::Lost(why) => Broken::Lost(why),
        // Also 0: who attended there ended the connection.
        Trouble::Ended(script::GONE | 0, _) => Broken::Gone,
        Trouble::Ended(status, said) => Broken::Lost(format!("status {status}: {said}")),
    }
}

fn interrupt() -> Refusal {
    Refusal::new(Why::Interrupted, "interrupted")
}

fn pause(interrupted: &AtomicBool) -> Result<(), Refusal> {
    let begun = Instant::now();
    while begun.elapsed() < PAUSE {
        if interrupted.load(Ordering::Relaxed) {
            return Err(interrupt());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Name of a directory that nobody has.
fn name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    format!("whichfs-{}-{}", std::process::id(), text.trim())
}
