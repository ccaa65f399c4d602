use crate::failure::Outcome; pub fn run(_:bool)->Outcome<u8>{Ok(0)}
