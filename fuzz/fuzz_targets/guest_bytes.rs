//! Any bytes of a guest are taken or are an error: both protocols, rings, requests, events.
//! The same body runs without nightly in `crates/lab/src/fuzz_input.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    whichfs_lab::fuzz_input::one(data);
});
