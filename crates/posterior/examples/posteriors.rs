//! Makes `crates/posterior/data/posteriors.tsv`: `make posteriors`.
//!
//! `cargo run --release -p whichfs-posterior --example posteriors [-- NAME...]` prints the
//! posterior of each shipped knowledge file, or of those that are named.
#![allow(clippy::unwrap_used)]

mod data;

use data::side_by_side;
use whichfs_posterior::{
    InferenceOptions, Jobs, Knowledge, Population, infer, posterior_key, shipped_knowledge,
};

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let population = Population::shipped().unwrap();
    let options = InferenceOptions {
        jobs: Jobs(side_by_side),
        ..InferenceOptions::default()
    };
    println!("# Made by `make posteriors` from knowledge/*.toml and data/population.tsv.");
    for (name, text) in shipped_knowledge() {
        if !names.is_empty() && !names.iter().any(|of| of == name) {
            continue;
        }
        eprintln!("{name}");
        let knowledge = Knowledge::parse(name, text).unwrap();
        let found = infer(&population, &knowledge, &options).unwrap();
        print!("{}", found.shipped_form(name, posterior_key(&knowledge)));
    }
}
