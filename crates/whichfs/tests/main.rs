//! Tests of the command without real block devices, in one program, which is linked once: what it
//! says (`cli`), and what it does in the lab.
#![allow(clippy::unwrap_used)]

mod cards;
mod choosing;
mod cli;
mod lab_attack;
mod lab_boot;
mod lab_choose;
mod lab_confirm;
mod lab_cpu;
mod lab_crash;
mod lab_documents;
mod lab_format;
mod lab_golden;
mod lab_life;
mod lab_plan;
mod lab_programs;
mod lab_reports;
mod lab_reproducers;
mod lab_schemas;
mod lab_sealed;
mod lab_study;
mod lab_study_kinds;
mod lab_workloads;
mod needs;
mod schemas;

use whichfs_testkit::skip;
