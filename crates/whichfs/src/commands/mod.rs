//! One file a command.

pub mod attach;
pub mod board;
mod capacity;
pub mod card;
pub mod card_rank;
pub mod check;
pub mod choose;
pub mod crash;
pub mod curves;
pub mod doctor;
pub mod exec;
pub mod fit;
pub mod format;
pub mod fs;
pub mod identify;
pub mod image;
pub mod kernel;
pub mod life;
mod logs;
pub mod manual;
pub mod probe;
mod probe_progress;
pub mod report;
pub mod study;
mod table;
pub mod trial;
pub mod workload;
