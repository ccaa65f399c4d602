//! The command: wires the rest, nothing else.
fn main() {}
