//! Lists the faults: each file of `src/faults` is one.

fn main() {
    whichfs_embed::modules("faults", "Fault", "Fault(&{}::FAULT)");
}
