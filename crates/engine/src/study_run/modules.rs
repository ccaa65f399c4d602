//! Sizes of kernel modules beside the figures of a study.

use whichfs_study::{PerformanceStudy, Spot};
use whichfs_trial::{Metric, Trial};

/// `trials` with the sizes of the modules that `study` asks for, among the figures of its first
/// workload: they are no matter of a trial, but stand beside its figures.
pub fn with_modules<'a>(
    study: &PerformanceStudy,
    mut trials: Vec<(Spot<'a>, Trial)>,
) -> Vec<(Spot<'a>, Trial)> {
    let Some(kernel) = modules_of(study) else {
        return trials;
    };
    let first = study.workloads.first();
    for (spot, trial) in &mut trials {
        if Some(spot.load) == first
            && let Some(module) = kernel.of(spot.candidate)
        {
            trial.outcome.metrics.push(Metric {
                metric: "module_size".to_owned(),
                value: module.bytes as f64,
                unit: "B".to_owned(),
                lower_is_better: true,
            });
        }
    }
    trials
}

/// The kernel whose modules `study` asks for.
pub fn modules_of(study: &PerformanceStudy) -> Option<&'static whichfs_fs::KernelModules> {
    let wanted = study.modules.as_ref()?;
    whichfs_fs::kernels()
        .iter()
        .find(|kernel| kernel.architecture == *wanted)
}
