//! Noise as real logs have it, over any device.
//!
//! Positional: the same place always differs from others by the same amount. Besides, each
//! request differs by itself, and some take much longer. How much, [`super::noise`] computes.

use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_units::{Nanos, Rng};

/// How a device changes with time: factor on all times after so many seconds.
#[derive(Clone, Copy, Debug)]
pub enum Drift {
    None,
    /// Warms up evenly until the second, by the factor at the end.
    Ramp(f64, f64),
    /// At the second, by the factor.
    Jump(f64, f64),
}

#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Of the time of a place, the same at every request there, as a standard deviation.
    pub positional: f64,
    /// Of the time of one read, as a standard deviation.
    pub each: f64,
    /// Of the time of one write, flush or discard, as a standard deviation.
    pub write: f64,
    /// Requests in a thousand that take much longer.
    pub tail_permille: u64,
}

impl Noise {
    /// A device as it is.
    pub const NONE: Noise = Noise {
        positional: 0.0,
        each: 0.0,
        write: 0.0,
        tail_permille: 0,
    };
}

#[derive(Clone)]
pub struct Noisy<D> {
    pub inner: D,
    noise: Noise,
    drift: Drift,
    seed: u64,
    rng: Rng,
    now: u64,
}

impl<D: TimedDevice> Noisy<D> {
    pub fn new(inner: D, noise: Noise, drift: Drift, seed: u64) -> Noisy<D> {
        let rng = Rng::named(seed, "noise");
        Noisy {
            inner,
            noise,
            drift,
            seed,
            rng,
            now: 0,
        }
    }

    fn factor(&self) -> f64 {
        let now = self.now as f64 / 1e9;
        match self.drift {
            Drift::None => 1.0,
            Drift::Ramp(until, factor) => 1.0 + (factor - 1.0) * (now / until).min(1.0),
            Drift::Jump(at, factor) => {
                if now < at {
                    1.0
                } else {
                    factor
                }
            }
        }
    }

    fn blur(&mut self, time: Nanos, offset: u64, each: f64) -> Nanos {
        let mut place = Rng::named(self.seed ^ (offset / 1024), "place");
        let mut relative = 1.0 + self.noise.positional * normal(&mut place);
        relative += each * normal(&mut self.rng);
        let mut ns = time.0 as f64 * self.factor() * relative.max(0.2);
        if self.rng.ratio(self.noise.tail_permille, 1000) {
            ns *= 1.0 - 3.0 * (1.0 - self.rng.unit_f64()).ln();
        }
        let time = Nanos(ns as u64);
        self.now += time.0;
        time
    }
}

/// A standard normal variable: twelve uniform ones.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0
}

impl<D: TimedDevice> TimedDevice for Noisy<D> {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }

    fn elapsed(&self) -> Nanos {
        Nanos(self.now)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let time = self.inner.read(offset, buffer)?;
        Ok(self.blur(time, offset, self.noise.each))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let time = self.inner.write(offset, data)?;
        Ok(self.blur(time, offset, self.noise.write))
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        let time = self.inner.discard(offset, bytes)?;
        Ok(self.blur(time, offset, self.noise.write))
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        let time = self.inner.flush()?;
        Ok(self.blur(time, 0, self.noise.write))
    }

    fn rest(&mut self, span: Nanos) {
        self.now += span.0;
        self.inner.rest(span);
    }
}

/// One device for the first half of the addresses and another for the second.
#[derive(Clone)]
pub struct Halves<D> {
    pub low: D,
    pub high: D,
}

impl<D: TimedDevice> Halves<D> {
    fn on(&mut self, offset: u64) -> (&mut D, &mut D, u64) {
        let edge = self.low.capacity_bytes();
        if offset < edge {
            (&mut self.low, &mut self.high, offset)
        } else {
            (&mut self.high, &mut self.low, offset - edge)
        }
    }
}

impl<D: TimedDevice> TimedDevice for Halves<D> {
    fn capacity_bytes(&self) -> u64 {
        self.low.capacity_bytes() + self.high.capacity_bytes()
    }

    fn elapsed(&self) -> Nanos {
        self.low.elapsed()
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let edge = self.low.capacity_bytes();
        let end = offset + buffer.len() as u64;
        if offset < edge && end > edge {
            let head = (edge - offset) as usize;
            let first = self.low.read(offset, &mut buffer[..head])?;
            let second = self.high.read(0, &mut buffer[head..])?;
            return Ok(first + second);
        }
        let (here, there, at) = self.on(offset);
        let time = here.read(at, buffer)?;
        there.rest(time);
        Ok(time)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let edge = self.low.capacity_bytes();
        let end = offset + data.len() as u64;
        if offset < edge && end > edge {
            let head = (edge - offset) as usize;
            let first = self.low.write(offset, &data[..head])?;
            let second = self.high.write(0, &data[head..])?;
            return Ok(first + second);
        }
        let (here, there, at) = self.on(offset);
        let time = here.write(at, data)?;
        there.rest(time);
        Ok(time)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        let (here, there, at) = self.on(offset);
        let bytes = bytes.min(here.capacity_bytes() - at);
        let time = here.discard(at, bytes)?;
        there.rest(time);
        Ok(time)
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        let time = self.low.flush()?;
        Ok(time + self.high.flush()?)
    }

    fn rest(&mut self, span: Nanos) {
        self.low.rest(span);
        self.high.rest(span);
    }
}

/// A device that begins within another one, as a partition does.
#[derive(Clone)]
pub struct Shifted<D> {
    pub inner: D,
    pub by: u64,
}

impl<D: TimedDevice> TimedDevice for Shifted<D> {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes() - self.by
    }

    fn elapsed(&self) -> Nanos {
        self.inner.elapsed()
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        self.inner.read(offset + self.by, buffer)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        self.inner.write(offset + self.by, data)
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        self.inner.discard(offset + self.by, bytes)
    }

    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        self.inner.flush()
    }

    fn rest(&mut self, span: Nanos) {
        self.inner.rest(span);
    }
}
