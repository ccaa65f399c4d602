//! How a batch is performed: in one entry of the kernel, or call by call.

use super::*;

impl Batch {
    /// Performs all calls; the bytes that were read, or the first call that failed.
    pub(super) fn run_strictly(&mut self) -> Result<u64, Failed> {
        let (mut at, mut bytes) = (0, 0);
        while at < self.calls.len() {
            let from = at;
            at = self.run(at);
            bytes += self.read_between(from, at);
            let last = at - 1;
            let Call {
                result,
                least,
                most,
                ..
            } = self.calls[last];
            if (least..=most).contains(&result) {
                continue;
            }
            // The last call is made again, or fails.
            at = last;
            match self.about[last].then {
                _ if result == interrupted() => {}
                Then::ReadOn if result >= 0 => {}
                Then::WriteRest if result > 0 => {
                    let call = &mut self.calls[last];
                    call.arguments[1] += result;
                    call.arguments[2] -= result;
                    call.arguments[3] += result;
                    call.least -= result;
                }
                Then::WriteRest if result == 0 => return Err(self.failed(last, Errno::NOSPC)),
                _ => return Err(self.failed(last, errno(result))),
            }
        }
        Ok(bytes)
    }

    /// Bytes that the calls `from..to` of [`Batch::read_all`] read.
    fn read_between(&self, from: usize, to: usize) -> u64 {
        let calls = self.calls[from..to].iter().zip(&self.about[from..to]);
        let is_read = |then| matches!(then, Then::ReadOn | Then::Count);
        let reads = calls.filter(|(_, about)| is_read(about.then));
        reads
            .map(|(call, _)| u64::try_from(call.result).unwrap_or(0))
            .sum()
    }

    fn failed(&self, call: usize, errno: Errno) -> Failed {
        let About { what, path, .. } = self.about[call];
        let path = self.paths.get(path);
        Failed {
            what,
            path: path.map_or(String::new(), |path| path.to_string_lossy().into_owned()),
            errno,
        }
    }

    /// Makes the calls from number `from` on until one stops the batch; returns the number of the
    /// call behind that, which is at least one further.
    pub(super) fn run(&mut self, from: usize) -> usize {
        if !self.alone {
            for at in from..self.calls.len() {
                // What this entry returns itself, the kernel puts in.
                if at - (self.calls[at].behind as usize) < from {
                    self.resolve(at);
                }
            }
            let calls = &mut self.calls[from..];
            // SAFETY: each pointer in `calls` is to a path, a buffer or a `stat` that this batch
            // owns and does not move while it has the call, or to data that live for ever; the
            // lengths beside them are theirs.
            let done =
                unsafe { libc::syscall(UM_BATCH as libc::c_long, calls.as_mut_ptr(), calls.len()) };
            if done > 0 {
                return from + done as usize;
            }
            self.alone = true;
        }
        let mut at = from;
        while at < self.calls.len() {
            self.resolve(at);
            let call = &mut self.calls[at];
            call.result = alone(call);
            at += 1;
            if !(call.least..=call.most).contains(&call.result) {
                break;
            }
        }
        at
    }

    /// Puts the result that call `at` waits for among its arguments.
    fn resolve(&mut self, at: usize) {
        let behind = std::mem::take(&mut self.calls[at].behind) as usize;
        if behind > 0 {
            self.calls[at].arguments[0] = self.calls[at - behind].result;
        }
    }
}

/// Makes one call; its result as the kernel gives it.
fn alone(call: &Call) -> i64 {
    let [a, b, c, d, e, f] = registers(call.number, call.arguments);
    // SAFETY: as for the whole batch.
    let result = unsafe { libc::syscall(call.number as libc::c_long, a, b, c, d, e, f) };
    match number_of(result) {
        -1 => -i64::from(
            std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
        ),
        result => result,
    }
}
