//! What the user gives a workload's program: `--fio FILE`, `--command LINE`.

use crate::cli::ChooseArgs;
use crate::failure::{Failure, Outcome};
use crate::program;
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
    let text = std::fs::read_to_string(path).map_err(|e| {
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
        program::check_fio(job, &program).map_err(|failure| failure.of(&flag(args)))?;
    }
    Ok(())
}
/// A change of a need as it is given, or, for `kernel_options=FILE`, with the options that are
/// on in that configuration of a kernel.
///
/// # Errors
/// A file that cannot be read, or with no option in it.
pub fn change(given: &str) -> Outcome<String> {
    let Some(path) = given
        .strip_prefix("kernel_options=")
        .filter(|value| value.contains('/'))
    else {
        return Ok(given.to_owned());
    };
    let fail = |problem: String| {
        let remedy = "name the configuration of the kernel, for example /boot/config-6.1";
        Failure::input(format!("--need kernel_options={path}: {problem}; {remedy}"))
    };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let options = options_of(&text);
    match options.is_empty() {
        true => Err(fail("no line like CONFIG_EXT4_FS=y is in it".to_owned())),
        false => Ok(format!("kernel_options={}", options.join(","))),
    }
}

/// Options that are built in or modules.
fn options_of(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines
        .filter(|(name, value)| name.starts_with("CONFIG_") && matches!(value.trim(), "y" | "m"))
        .map(|(name, _)| name.trim())
        .collect()
}
