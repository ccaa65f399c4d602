//! What commands tell, for people and as JSON documents: one file a command.

pub mod board;
pub mod cache;
pub mod card;
pub mod card_rank;
pub mod check;
pub mod crash;
pub mod doctor;
pub mod error;
pub mod exec;
pub mod faults;
pub mod fit;
pub mod format;
pub mod fs;
pub mod image;
pub mod kernel;
pub mod life;
pub mod need;
pub mod planned;
pub mod probe;
pub mod store;
pub mod study;
pub mod workload;
