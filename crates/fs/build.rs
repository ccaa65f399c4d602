//! Lists the filesystems: each file of `src/catalogue` is one.

fn main() {
    whichfs_embed::modules("catalogue", "&[Candidate]", "{}::CANDIDATES");
}
