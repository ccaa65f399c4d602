//! Calendar and disks of one guest: the loop that grants it time.
//!
//! Only one side runs at a time. While the guest runs it may move its clock freely to
//! before `free_until`, the next completion of a disk; when it is idle it WAITs, and the
//! engine takes the earlier of the guest's own wish and the next completion, delivers the
//! completion (whose interrupt the guest then wants to run *now*), and lets it RUN.

use crate::calendar::{CalendarMessage, CalendarOperation};
use crate::device::{Backend, Device, Effect};
use crate::error::LabError;
use crate::guest::Guest;
use crate::schedule::{GUEST_ID, Schedule};
use crate::socket::Peer;
use crate::trace::Trace;
use crate::watchdog::Watchdog;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use whichfs_trial::{DeviceFigures, Event};
use whichfs_units::Nanos;

/// "Never", as User Mode Linux says it (S64_MAX).
const NEVER: u64 = i64::MAX as u64;
/// Virtual time without a request or an event after which the guest counts as hung.
const PROGRESS_LIMIT_S: u64 = 24 * 3600;

/// An event of the agent with the instant and the figures that the engine adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// Virtual instant.
    pub at: Nanos,
    /// What the agent reported.
    pub event: Event,
    /// What the first card had done by then.
    pub device: DeviceFigures,
    /// The same of the other cards.
    pub others: Vec<DeviceFigures>,
}

/// State of the loop.
pub(crate) struct Engine<'a> {
    calendar: Peer,
    devices: Vec<Device>,
    schedule: Schedule,
    /// Message form: the guest's time and its wish.
    time: u64,
    request: Option<u64>,
    waiting: bool,
    last_progress: u64,
    trace: Trace,
    events: Vec<Stamped>,
    new_events: Vec<Event>,
    /// Bytes of programs' output among the events.
    printed: u64,
    watch: Watchdog<'a>,
    on_event: &'a mut dyn FnMut(&Stamped),
}

/// What is left when the guest has ended.
pub(crate) struct Finished {
    pub events: Vec<Stamped>,
    pub trace: Trace,
    pub time: Nanos,
    pub devices: Vec<Device>,
}

/// What the loop is to do next.
enum Next {
    Continue,
    GuestGone,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        calendar: UnixListener,
        devices: Vec<Device>,
        watch: Watchdog<'a>,
        on_event: &'a mut dyn FnMut(&Stamped),
    ) -> Result<Engine<'a>, LabError> {
        Ok(Engine {
            calendar: Peer::Listening(calendar),
            schedule: Schedule::new()?,
            devices,
            time: 0,
            request: None,
            waiting: false,
            last_progress: 0,
            trace: Trace::default(),
            events: Vec::new(),
            new_events: Vec::new(),
            printed: 0,
            watch,
            on_event,
        })
    }

    /// Runs the guest to its end. `connected` is called once, when all connections stand.
    pub(crate) fn run(
        &mut self,
        guest: &mut Guest,
        connected: &mut dyn FnMut(),
    ) -> Result<(), LabError> {
        let mut all_connected = false;
        loop {
            if !all_connected && self.devices.iter().all(|d| d.peer.was_connected()) {
                all_connected = true;
                connected();
            }
            match self.step(guest)? {
                Next::Continue => {}
                Next::GuestGone => return Ok(()),
            }
            if self.waiting {
                self.grant()?;
            }
        }
    }

    pub(crate) fn finish(self) -> Finished {
        Finished {
            time: Nanos(self.now()),
            events: self.events,
            trace: self.trace,
            devices: self.devices,
        }
    }

    /// Waits for messages and handles them: those of disks first, because a kick that was
    /// sent before a WAIT must be served before it.
    fn step(&mut self, guest: &mut Guest) -> Result<Next, LabError> {
        let Some((disks, calendar)) = self.wait(guest)? else {
            return Ok(Next::Continue);
        };
        for index in 0..self.devices.len() {
            if disks & (1 << index) != 0 {
                self.handle_disk(index)?;
            }
        }
        if calendar && !self.handle_calendar()? {
            return Ok(Next::GuestGone);
        }
        Ok(Next::Continue)
    }

    /// The disks (a bit each) and whether the calendar have something to read;
    /// `None` if nothing came in the time that the watch allows.
    fn wait(&mut self, guest: &mut Guest) -> Result<Option<(u32, bool)>, LabError> {
        let mut list: Vec<PollFd> = Vec::with_capacity(self.devices.len() + 1);
        let mut owners = Vec::with_capacity(self.devices.len());
        for (index, device) in self.devices.iter().enumerate() {
            if let Some(fd) = device.peer.fd() {
                list.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
                owners.push(index);
            }
        }
        let Some(calendar) = self.calendar.fd() else {
            return Err(LabError::protocol("calendar", "no connection"));
        };
        list.push(PollFd::from_borrowed_fd(calendar, PollFlags::IN));
        let ready = match poll(&mut list, Some(&self.watch.poll_time())) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => 0,
            Err(e) => return Err(LabError::io("wait for the guest")(e.into())),
        };
        if ready == 0 {
            self.watch.silent(guest)?;
            return Ok(None);
        }
        self.watch.heard(guest)?;
        let is_ready = |fd: &PollFd| !fd.revents().is_empty();
        let ready = owners.iter().zip(&list).filter(|(_, fd)| is_ready(fd));
        let mask = ready.fold(0, |mask, (&index, _)| mask | 1 << index);
        Ok(Some((mask, list.last().is_some_and(is_ready))))
    }

    /// Handles a message of disk `index`. A guest that ends closes its disks before the
    /// calendar: only the latter tells that it is gone.
    fn handle_disk(&mut self, index: usize) -> Result<(), LabError> {
        if self.devices[index].peer.accept()? {
            return Ok(());
        }
        let Some((effect, wants_reply)) = self.devices[index].receive()? else {
            self.devices[index].peer.close();
            return Ok(());
        };
        if let Effect::Kick = effect {
            self.serve(index)?;
            if wants_reply {
                self.devices[index].acknowledge_kick()?;
            }
        }
        Ok(())
    }

    /// Serves the ring of disk `index` at the guest's time.
    fn serve_ring(&mut self, index: usize) -> Result<(), LabError> {
        let now = self.now();
        self.last_progress = now;
        let device = &mut self.devices[index];
        device.serve(Nanos(now), &mut self.trace, &mut self.new_events)?;
        self.stamp_events(now)
    }

    /// Serves disk `index`, which a message kicked, and tells the running guest how far it
    /// may go.
    fn serve(&mut self, index: usize) -> Result<(), LabError> {
        self.serve_ring(index)?;
        let free_until = self.free_until();
        if self.shares() {
            self.schedule.set_free_until(free_until);
            Ok(())
        } else {
            self.free_until_by_message(free_until)
        }
    }

    fn stamp_events(&mut self, now: u64) -> Result<(), LabError> {
        if self.new_events.is_empty() {
            return Ok(());
        }
        let mut others = self.figures();
        let device = match others.is_empty() {
            true => DeviceFigures::default(),
            false => others.remove(0),
        };
        let mut untimed = None;
        for event in self.new_events.drain(..) {
            let stamped = Stamped {
                at: Nanos(now),
                event,
                device: device.clone(),
                others: others.clone(),
            };
            if let Event::Output { text, .. } = &stamped.event {
                self.printed += text.len() as u64;
            }
            if let Event::Untimed { begins } = stamped.event {
                untimed = Some(begins);
            }
            (self.on_event)(&stamped);
            self.events.push(stamped);
        }
        if let Some(begins) = untimed {
            self.set_untimed(begins);
        }
        self.watch.printed(self.printed)
    }

    /// Has all cards answer reads at once, or no longer.
    fn set_untimed(&mut self, untimed: bool) {
        for device in &mut self.devices {
            if let Backend::Card(disk) = &mut device.backend {
                disk.set_untimed(untimed);
            }
        }
    }

    /// What each card has done.
    fn figures(&self) -> Vec<DeviceFigures> {
        let cards = self
            .devices
            .iter()
            .filter_map(|device| match &device.backend {
                Backend::Card(disk) => Some(disk.figures()),
                Backend::Control(_) | Backend::Image(_) => None,
            });
        cards.collect()
    }

    /// Handles a message of the calendar; false if the guest closed the connection.
    fn handle_calendar(&mut self) -> Result<bool, LabError> {
        if self.calendar.accept()? {
            return Ok(true);
        }
        let Some(message) = self.calendar.receive_calendar()? else {
            return Ok(false);
        };
        self.obey(message)?;
        Ok(true)
    }

    fn obey(&mut self, message: CalendarMessage) -> Result<(), LabError> {
        match message.operation {
            CalendarOperation::Start => return self.start(message),
            CalendarOperation::Request => self.request = Some(message.time),
            CalendarOperation::Update => self.time = message.time,
            CalendarOperation::Wait => {
                self.waiting = true;
                if self.shares() {
                    return Ok(());
                }
            }
            CalendarOperation::Get => {
                let now = self.now();
                return self.calendar.send(&message.ack(now).encode());
            }
            CalendarOperation::GetTimeOfDay => {}
            other => {
                let what = format!("{other:?} from a guest at this time");
                return Err(LabError::protocol("calendar", what));
            }
        }
        self.calendar.send(&message.ack(0).encode())
    }

    /// Answers START with the shared schedule and an empty file in the place of a log that nobody
    /// keeps.
    fn start(&mut self, message: CalendarMessage) -> Result<(), LabError> {
        let none = File::open("/dev/null").map_err(LabError::io("open /dev/null"))?;
        self.schedule.guest_runs(0, self.free_until());
        let answer = message.ack(u64::from(GUEST_ID)).encode();
        let files = [self.schedule.file(), none.as_fd()];
        self.calendar.send_with_files(&answer, &files)
    }

    /// The guest waits: deliver what is due and let it run.
    fn grant(&mut self) -> Result<(), LabError> {
        let doorbells = self.schedule.has_doorbells();
        if doorbells {
            self.serve_doorbells()?;
        }
        loop {
            let wish = self.wish();
            let due = self
                .next_completion()
                .filter(|at| wish.is_none_or(|wish| at.0 <= wish));
            let Some(at) = due else {
                return self.run_guest(wish.unwrap_or(NEVER));
            };
            self.set_time(at.0)?;
            for index in 0..self.devices.len() {
                if !self.devices[index].complete(at)? {
                    continue;
                }
                if doorbells {
                    self.schedule.call(index);
                } else {
                    self.devices[index].notify()?;
                    self.take_answer(index)?;
                }
            }
            if doorbells {
                return self.run_guest(at.0);
            }
        }
    }

    /// Serves the disks whose bells rang since the guest last waited: all at the guest's
    /// time, which it could not move since.
    fn serve_doorbells(&mut self) -> Result<(), LabError> {
        let kicks = self.schedule.take_kicks();
        if kicks >> self.devices.len() != 0 {
            let what = format!("kicks {kicks:#b} of {} disks", self.devices.len());
            return Err(LabError::protocol("virtio", what));
        }
        for index in 0..self.devices.len() {
            if kicks & (1 << index) != 0 {
                self.serve_ring(index)?;
            }
        }
        Ok(())
    }

    /// Reads the guest's answer to a completion. Without the shared schedule the guest
    /// asks for the time and requests to run meanwhile.
    fn take_answer(&mut self, index: usize) -> Result<(), LabError> {
        let mut answer = [0; crate::vhost::CALL_REPLY_BYTES];
        loop {
            let (answered, asked) = self.wait_for_answer(index)?;
            if asked && !self.handle_calendar()? {
                return Err(LabError::NotDone);
            }
            if answered && !asked {
                break;
            }
            self.watch.check_limits()?;
        }
        let read = self.devices[index].channel_mut()?.read_exact(&mut answer);
        read.map_err(LabError::io("read the guest's answer to a completion"))?;
        crate::vhost::check_call_reply(&answer)
    }

    /// Whether the calendar has something to read within a poll's time.
    fn calendar_is_ready(&self) -> Result<bool, LabError> {
        let Some(calendar) = self.calendar.fd() else {
            return Err(LabError::protocol("calendar", "no connection"));
        };
        let mut fds = [PollFd::from_borrowed_fd(calendar, PollFlags::IN)];
        match poll(&mut fds, Some(&self.watch.poll_time())) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(LabError::io("wait for the guest's acknowledgement")(
                e.into(),
            )),
        }
    }

    /// Whether disk `index`'s channel and the calendar have something to read.
    fn wait_for_answer(&mut self, index: usize) -> Result<(bool, bool), LabError> {
        let Some(calendar) = self.calendar.fd() else {
            return Err(LabError::protocol("calendar", "no connection"));
        };
        let channel = self.devices[index].channel_mut()?;
        let mut fds = [
            PollFd::from_borrowed_fd(channel.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(calendar, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&self.watch.poll_time())) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(LabError::io("wait for an answer")(e.into())),
        }
        let is_ready = |fd: &PollFd| !fd.revents().is_empty();
        Ok((is_ready(&fds[0]), is_ready(&fds[1])))
    }

    /// Lets the guest run at `time`.
    fn run_guest(&mut self, time: u64) -> Result<(), LabError> {
        if time >= NEVER {
            return Err(LabError::SleepsForever);
        }
        if time.saturating_sub(self.last_progress) > PROGRESS_LIMIT_S * 1_000_000_000 {
            return Err(LabError::NoProgress(PROGRESS_LIMIT_S));
        }
        if let Some(deadline) = self.watch.deadline().filter(|at| time > at.0) {
            return Err(LabError::VirtualLimit(deadline));
        }
        self.set_time(time)?;
        self.waiting = false;
        self.request = None;
        let free_until = self.free_until();
        if self.shares() {
            self.schedule.guest_runs(time, free_until);
            return self
                .calendar
                .send(&CalendarMessage::new(CalendarOperation::Run, time).encode());
        }
        self.free_until_by_message(free_until)?;
        self.tell(CalendarMessage::new(CalendarOperation::Run, time))
    }

    /// Message form: FREE_UNTIL must be acknowledged before a kick is answered, else the
    /// guest runs past the completion.
    fn free_until_by_message(&mut self, time: u64) -> Result<(), LabError> {
        self.tell(CalendarMessage::new(CalendarOperation::FreeUntil, time))
    }

    /// Sends a message and waits for its acknowledgement; the guest may ask things before.
    fn tell(&mut self, message: CalendarMessage) -> Result<(), LabError> {
        self.calendar.send(&message.encode())?;
        loop {
            while !self.calendar_is_ready()? {
                self.watch.check_limits()?;
            }
            let Some(answer) = self.calendar.receive_calendar()? else {
                return Ok(()); // the guest is gone; the next poll says so
            };
            if answer.operation == CalendarOperation::Ack {
                return Ok(());
            }
            self.obey(answer)?;
        }
    }

    /// Whether the guest has taken up the shared schedule: from its first message on, or never.
    fn shares(&self) -> bool {
        self.schedule.guest_shares()
    }

    fn wish(&self) -> Option<u64> {
        if self.shares() {
            self.schedule.guest_request()
        } else {
            self.request
        }
    }

    fn now(&self) -> u64 {
        if self.shares() {
            self.schedule.current_time()
        } else {
            self.time
        }
    }

    fn set_time(&mut self, time: u64) -> Result<(), LabError> {
        if time < self.now() {
            let what = format!("a wish to run at {time}, which is before {}", self.now());
            return Err(LabError::protocol("calendar", what));
        }
        self.time = time;
        self.schedule.engine_runs(time);
        Ok(())
    }

    /// How far the guest may go without asking: without this bound a guest whose programs
    /// all sleep would fire its kernel's timers for ever and never say a word.
    fn free_until(&self) -> u64 {
        let bound = self.last_progress + PROGRESS_LIMIT_S * 1_000_000_000;
        let bound = (self.watch.deadline()).map_or(bound, |deadline| bound.min(deadline.0 + 1));
        self.next_completion().map_or(bound, |at| at.0.min(bound))
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.devices
            .iter()
            .filter_map(Device::next_completion)
            .min()
    }
}
