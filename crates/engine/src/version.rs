//! The version in the identity of each trial.

/// Part of each trial's version: raised where the same job on the same kernel comes to give
/// other figures, so that trials of both kinds are never compared.
const METHOD: u32 = 9;

/// Version of the program and of its method of measuring.
pub fn version() -> String {
    format!("{}+{METHOD}", env!("CARGO_PKG_VERSION"))
}
