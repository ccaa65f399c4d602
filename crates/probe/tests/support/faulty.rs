//! Devices with faults, and devices with contents that lie about their size.

use std::collections::BTreeMap;
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_units::Nanos;

/// What goes wrong, and after how many requests.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Every request from then on fails with this.
    Gone(u64),
    /// Reads and writes of this range fail.
    Range(u64, u64),
    /// One request fails, and does nothing.
    Once(u64),
    /// One request fails although it was done.
    OnceDone(u64),
    /// One request takes so many seconds.
    Stall(u64, u64),
    /// Writes are not allowed.
    ReadOnly,
    /// Every discard fails.
    Discards,
    /// Every flush after so many fails.
    Flushes(u64),
    /// Reads and writes of this range fail from the first write on.
    Dies(u64, u64),
    /// Of the writes, this many fail and then as many succeed, again and again.
    Writes(u64),
}

/// A device with a fault, over another one.
pub struct Faulty<D> {
    pub inner: D,
    pub fault: Fault,
    pub requests: u64,
    writes: u64,
    flushes: u64,
    stalled: u64,
}

impl<D: TimedDevice> Faulty<D> {
    pub fn new(inner: D, fault: Fault) -> Faulty<D> {
        Faulty {
            inner,
            fault,
            requests: 0,
            writes: 0,
            flushes: 0,
            stalled: 0,
        }
    }

    fn before(
        &mut self,
        operation: &'static str,
        offset: u64,
        bytes: u64,
    ) -> Result<Nanos, DeviceError> {
        self.requests += 1;
        let failed = medium_error(operation, offset, bytes);
        match self.fault {
            Fault::Gone(after) if self.requests > after => {
                Err(DeviceError::Gone("it was pulled out".into()))
            }
            Fault::Range(from, to) if offset < to && offset + bytes > from => Err(failed),
            Fault::Once(at) if self.requests == at => Err(failed),
            Fault::Stall(at, seconds) if self.requests == at => {
                self.stalled += seconds * 1_000_000_000;
                Ok(Nanos::from_secs(seconds))
            }
            Fault::Dies(from, to) if offset < to && offset + bytes > from => {
                self.writes += u64::from(operation == "write");
                match self.writes > 0 {
                    true => Err(failed),
                    false => Ok(Nanos::ZERO),
                }
            }
            Fault::ReadOnly if operation == "write" => Err(DeviceError::Unsupported("write")),
            Fault::Discards if operation == "discard" => Err(failed),
            Fault::Writes(each) if operation == "write" => {
                self.writes += 1;
                match (self.writes / each).is_multiple_of(2) {
                    true => Err(failed),
                    false => Ok(Nanos::ZERO),
                }
            }
            _ => Ok(Nanos::ZERO),
        }
    }
}

fn medium_error(operation: &'static str, offset: u64, bytes: u64) -> DeviceError {
    DeviceError::Failed {
        operation,
        offset,
        bytes,
        reason: "medium error".into(),
    }
}

impl<D: TimedDevice> TimedDevice for Faulty<D> {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }

    fn elapsed(&self) -> Nanos {
        self.inner.elapsed() + Nanos(self.stalled)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let extra = self.before("read", offset, buffer.len() as u64)?;
        Ok(self.inner.read(offset, buffer)? + extra)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let extra = self.before("write", offset, data.len() as u64)?;
        let spent = self.inner.write(offset, data)?;
        match self.fault {
            Fault::OnceDone(at) if self.requests == at => {
                Err(medium_error("write", offset, data.len() as u64))
            }
            _ => Ok(spent + extra),
        }
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        self.before("discard", offset, bytes)?;
        self.inner.discard(offset, bytes)
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        self.flushes += 1;
        match self.fault {
            Fault::Flushes(after) if self.flushes > after => Err(medium_error("flush", 0, 0)),
            _ => self.inner.flush(),
        }
    }

    fn rest(&mut self, span: Nanos) {
        self.inner.rest(span);
    }
}

/// What a lying device does beyond its real end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    None,
    Wraps,
    /// Reads give zeros.
    Zeros,
    /// Reads give what was written last anywhere, like a buffer that is shown again.
    Stale,
    Fails,
}

/// A device with contents, in blocks of 512 bytes, that claims more than it has. What was
/// written last is shown from a cache of `cache` blocks, also where nothing keeps it.
pub struct Liar {
    pub claimed: u64,
    pub real: u64,
    pub lie: Lie,
    pub cache: usize,
    pub blocks: BTreeMap<u64, [u8; 512]>,
    recent: Vec<(u64, [u8; 512])>,
    last: [u8; 512],
    now: u64,
    pub writes: u64,
}

impl Liar {
    pub fn new(claimed: u64, real: u64, lie: Lie) -> Liar {
        Liar {
            claimed,
            real,
            lie,
            cache: 0,
            blocks: BTreeMap::new(),
            recent: Vec::new(),
            last: [0; 512],
            now: 0,
            writes: 0,
        }
    }

    /// What the device holds at a place before any test: derived from the place.
    pub fn original(at: u64) -> [u8; 512] {
        let mut data = [0xa5; 512];
        data[8..16].copy_from_slice(&at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        data
    }

    /// What is kept at a place.
    pub fn kept(&self, at: u64) -> [u8; 512] {
        self.blocks
            .get(&at)
            .copied()
            .unwrap_or_else(|| Liar::original(at))
    }

    fn fail(&self, operation: &'static str, offset: u64, bytes: u64) -> Result<(), DeviceError> {
        let beyond = offset + bytes > self.real && self.lie == Lie::Fails;
        if beyond || offset + bytes > self.claimed {
            return Err(DeviceError::Failed {
                operation,
                offset,
                bytes,
                reason: "no such sector".into(),
            });
        }
        Ok(())
    }

    fn tick(&mut self, bytes: u64) -> Nanos {
        let spent = Nanos(200_000 + bytes * 50);
        self.now += spent.0;
        spent
    }
}

impl TimedDevice for Liar {
    fn capacity_bytes(&self) -> u64 {
        self.claimed
    }

    fn elapsed(&self) -> Nanos {
        Nanos(self.now)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        self.fail("read", offset, buffer.len() as u64)?;
        for (at, chunk) in (offset..).step_by(512).zip(buffer.chunks_mut(512)) {
            let cached = self.recent.iter().rev().find(|(place, _)| *place == at);
            let data = match cached {
                Some((_, data)) => *data,
                None if at < self.real => self.kept(at),
                None => match self.lie {
                    Lie::Wraps => self.kept(at % self.real),
                    Lie::Stale => self.last,
                    _ => [0; 512],
                },
            };
            chunk.copy_from_slice(&data);
        }
        Ok(self.tick(buffer.len() as u64))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        self.fail("write", offset, data.len() as u64)?;
        self.writes += 1;
        for (at, chunk) in (offset..).step_by(512).zip(data.chunks(512)) {
            let block: [u8; 512] = chunk.try_into().unwrap();
            self.last = block;
            if self.cache > 0 {
                self.recent.push((at, block));
                if self.recent.len() > self.cache {
                    self.recent.remove(0);
                }
            }
            if at < self.real {
                self.blocks.insert(at, block);
            } else if self.lie == Lie::Wraps {
                self.blocks.insert(at % self.real, block);
            }
        }
        Ok(self.tick(data.len() as u64))
    }

    fn discard(&mut self, _offset: u64, _bytes: u64) -> Result<Nanos, DeviceError> {
        Err(DeviceError::Unsupported("discard"))
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        Ok(Nanos::ZERO)
    }

    fn rest(&mut self, span: Nanos) {
        self.now += span.0;
    }
}
