use crate::failure::Outcome; pub fn run(_:&crate::cli::KernelArgs)->Outcome<u8>{Ok(0)}
