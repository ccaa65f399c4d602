//! Lists the workloads: each file of `src/catalogue` is one, or a few that belong together.

fn main() {
    whichfs_embed::modules("catalogue", "Listed", "{}::WORKLOADS");
}
