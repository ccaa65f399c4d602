//! Makes the shipped data files part of the crate, and lists the families of translation layers:
//! each file of `src/families` is one.

fn main() {
    whichfs_embed::directory("cards", "toml", &[]);
    whichfs_embed::variants("families");
}
