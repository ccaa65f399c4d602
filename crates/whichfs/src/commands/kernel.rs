//! `whichfs lab kernel`: which kernel the lab runs, and how to get it.

use crate::cli::KernelArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_engine::kernel_build::{build, build_info};
use whichfs_engine::places;
use whichfs_lab::Kernel;
use whichfs_report::documents::kernel::{LabKernel, kernel_text};

/// Runs the command.
pub fn run(args: &KernelArgs) -> Outcome<u8> {
    let version = args.version.as_deref();
    let kernel = match (args.build, version) {
        (true, _) => Kernel::open(&build(version, args.modules)?).map_err(Failure::environment)?,
        (false, Some(version)) if args.modules => places::kernel_with_modules(version)?.0,
        (false, None) if args.modules => {
            let own = places::kernel()?.release;
            places::kernel_with_modules(&places::series(&own))?.0
        }
        (false, Some(version)) => places::kernel_of(version)?,
        (false, None) => places::kernel()?,
    };
    // The cache's stable name is a link: its target carries the key.
    let path = kernel.path;
    let document = LabKernel {
        build: build_info(&path),
        path,
        release: kernel.release,
        sha256: kernel.sha256,
    };
    if args.json {
        output::document(&document)?;
    } else {
        output::text_line(&kernel_text(&document, output::width()))?;
    }
    Ok(0)
}
