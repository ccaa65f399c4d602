//! What the user gives a workload's program: `--fio FILE`, `--command LINE`.

use crate::cli::ChooseArgs;
use crate::failure::{Failure, Outcome};
use whichfs_decide::Need;
use whichfs_engine::kernel_config::{candidates_in_modules, options_of};
use whichfs_engine::program;
use whichfs_trial::WorkloadSpec;
use whichfs_workload::Workload;

/// The input of the workload's program, if the user gives one.
///
/// # Errors
/// A file that cannot be read, or is no text.
pub fn of(args: &ChooseArgs) -> Outcome<Option<String>> {
    let Some(path) = &args.fio else {
        return Ok(args.command.clone());
    };
    let text = whichfs_engine::input::read_text(path).map_err(|e| {
        let flag = flag(args);
        Failure::input(format!(
            "{flag}: {e}; name a job file of fio that can be read"
        ))
    })?;
    Ok(Some(text))
}

/// The flag that decides the workload, for messages.
pub fn flag(args: &ChooseArgs) -> String {
    match (&args.fio, &args.command) {
        (Some(path), _) => format!("--fio {}", path.display()),
        (None, Some(line)) => format!("--command {line:?}"),
        (None, None) => format!("--for {}", args.needs),
    }
}

/// Lets fio itself judge the user's job, if there is one.
///
/// # Errors
/// What fio says, with the line; or that it is missing.
pub fn check(args: &ChooseArgs, workload: &dyn Workload, spec: &WorkloadSpec) -> Outcome {
    let (Some(_), Some(job)) = (&args.fio, &spec.input) else {
        return Ok(());
    };
    for program in program::programs(workload, spec, args.first_seed)? {
        program::check_fio(job, &program).map_err(|failure| failure.about(&flag(args)))?;
    }
    Ok(())
}

/// A change of a need as it is given, or, for `kernel_options=FILE`, with the options that are
/// on in that configuration of a kernel.
///
/// # Errors
/// A file that cannot be read, or with no option in it.
pub fn change(given: &str, need: &Need) -> Outcome<String> {
    let Some(path) = given
        .strip_prefix("kernel_options=")
        .filter(|value| is_path(value))
    else {
        return Ok(given.to_owned());
    };
    let fail = |problem: String| {
        let remedy = "name the configuration of the kernel, for example /boot/config-6.1";
        Failure::input(format!("--need kernel_options={path}: {problem}; {remedy}"))
    };
    let text = whichfs_engine::input::read_text(path).map_err(|error| fail(error.to_string()))?;
    let options = options_of(&text);
    if need.workload == "rootfs" {
        let modules = candidates_in_modules(&options);
        if !modules.is_empty() {
            note!(
                "note: modules (=m) in {path}: {}; a root filesystem needs its driver built in \
                 (=y) or an initramfs that loads it",
                modules.join(", ")
            );
        }
    }
    match options.is_empty() {
        true => Err(fail("no line like CONFIG_EXT4_FS=y is in it".to_owned())),
        false => {
            let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
            Ok(format!("kernel_options={}", names.join(",")))
        }
    }
}

/// Whether `value` names a file: it is neither `any` nor a list of options.
fn is_path(value: &str) -> bool {
    let is_option = |word: &str| word.is_empty() || word.starts_with("CONFIG_");
    let no_path = ["any", "yes", "no", "true", "false"];
    !no_path.contains(&value) && !value.split([',', ' ', '\n']).all(is_option)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CONFIG: &str = "CONFIG_EXT4_FS=y\n# CONFIG_F2FS_FS is not set\nCONFIG_BTRFS_FS=m\n\
                          CONFIG_XFS_FS=y\nCONFIG_HZ=250\n";

    /// A kernel without access control lists loses no candidate, and what is said to be missing is.
    #[test]
    fn a_configuration_excludes_by_the_drivers_that_it_lacks() {
        let options = options_of(CONFIG);
        assert_eq!(options.len(), 3);
        assert_eq!(candidates_in_modules(&options), ["CONFIG_BTRFS_FS"]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cfg");
        std::fs::write(&path, CONFIG).unwrap();
        let mut need = Need::named("logger").unwrap();
        let given = format!("kernel_options={}", path.display());
        need.set(&change(&given, &need).unwrap()).unwrap();
        let names = ["ext4", "xfs", "btrfs", "f2fs", "ext3"].map(str::to_owned);
        let all = whichfs_engine::facts::of_those(&names);
        let (kept, out) = whichfs_decide::exclude(&need, 4 << 30, &all);
        let kept: Vec<&str> = kept.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(kept, ["ext3", "ext4", "xfs", "btrfs"]);
        assert!(
            out[0]
                .why
                .starts_with("needs CONFIG_F2FS_FS, which the kernel has not:"),
            "{}",
            out[0].why
        );
        let kernel = "a kernel with CONFIG_F2FS_FS (=y or =m)";
        assert_eq!(out[0].allow.as_deref(), Some(kernel));
        // Extended attributes are an option of their own, which a need may ask for.
        need.set("kernel_options=CONFIG_F2FS_FS").unwrap();
        let f2fs = whichfs_engine::facts::of_those(&["f2fs".to_owned()]);
        assert_eq!(whichfs_decide::exclude(&need, 4 << 30, &f2fs).0.len(), 1);
        need.set("xattrs=yes").unwrap();
        let (_, out) = whichfs_decide::exclude(&need, 4 << 30, &f2fs);
        assert!(out[0].why.starts_with("needs CONFIG_F2FS_FS_XATTR, which"));
    }

    #[test]
    fn a_value_that_is_no_list_of_options_is_a_file() {
        for path in ["cfg", "/boot/config-6.1", "config.gz", "EXT4_FS"] {
            assert!(is_path(path), "{path}");
            let said = change(
                &format!("kernel_options={path}x"),
                &Need::named("ota").unwrap(),
            );
            assert!(said.unwrap_err().message.contains("name the configuration"));
        }
        for list in ["any", "CONFIG_A=y,CONFIG_B", "CONFIG_A CONFIG_B=m", ""] {
            assert!(!is_path(list), "{list}");
        }
    }
}
