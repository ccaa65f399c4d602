//! Any bytes as a log whose form is told by its content are read or refused with a reason.
//! The same body runs without nightly in `crates/logs/src/fuzz_input.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    whichfs_logs::fuzz_input::one(4, data);
});
