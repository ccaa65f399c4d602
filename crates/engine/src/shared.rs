//! Directories of this machine that a guest sees, and what they are called there.

use std::path::Path;
use whichfs_lab::SharedDirectory;

/// Name of the user's tree in the guest.
pub const TREE: &str = "tree";
/// Name of the directory of modules in the guest.
pub const MODULES: &str = "modules";

/// The directories that a job needs: the user's tree, that of modules.
pub fn directories(tree: Option<&Path>, modules: Option<&Path>) -> Vec<SharedDirectory> {
    let share = |name, path: Option<&Path>| {
        path.map(|path| SharedDirectory {
            name,
            path: path.to_path_buf(),
        })
    };
    share(TREE, tree)
        .into_iter()
        .chain(share(MODULES, modules))
        .collect()
}
