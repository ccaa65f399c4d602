//! The figures of a run's file, and the trials that it says failed.

use super::TrialFailure;
use serde::Deserialize;
use whichfs_decide::FigureRow;

/// A line of `results.csv` or an object of `results.json`: a figure, or a trial that failed, which
/// has a text in `failed` and no figure.
#[derive(Deserialize)]
struct Line {
    card: String,
    kernel: String,
    clock: String,
    candidate: String,
    mount_options: String,
    workload: String,
    metric: Option<String>,
    value: Option<f64>,
    unit: Option<String>,
    lower_is_better: Option<bool>,
    seed: u64,
    trial: String,
    #[serde(default)]
    failed: Option<String>,
}

/// What a file holds: figures, and trials that failed.
pub type Held = (Vec<FigureRow>, Vec<TrialFailure>);

/// What a file in the form of `results.csv` holds.
///
/// # Errors
/// The line that is no row, and why.
pub fn read_csv(text: &str) -> Result<Held, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let lines: Result<Vec<Line>, csv::Error> = reader.deserialize().collect();
    held(lines.map_err(|error| error.to_string())?)
}

/// What a file in the form of `results.json` holds.
///
/// # Errors
/// Where it is no such file, and why.
pub fn read_json(text: &str) -> Result<Held, String> {
    held(serde_json::from_str(text).map_err(|error| error.to_string())?)
}

fn held(lines: Vec<Line>) -> Result<Held, String> {
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (at, line) in lines.into_iter().enumerate() {
        if let Some(reason) = line.failed.filter(|reason| !reason.is_empty()) {
            failed.push(TrialFailure {
                card: line.card,
                candidate: line.candidate,
                workload: line.workload,
                reason,
                id: line.trial,
            });
            continue;
        }
        let figure = (line.metric, line.value, line.unit, line.lower_is_better);
        let (Some(metric), Some(value), Some(unit), Some(lower_is_better)) = figure else {
            let seed = line.seed;
            let candidate = line.candidate;
            return Err(format!(
                "figure {} ({candidate}, seed {seed}) has no metric, value, unit or direction",
                at + 1
            ));
        };
        rows.push(FigureRow {
            card: line.card,
            kernel: line.kernel,
            clock: line.clock,
            candidate: line.candidate,
            mount_options: line.mount_options,
            workload: line.workload,
            metric,
            value,
            unit,
            lower_is_better,
            seed: line.seed,
            trial: line.trial,
        });
    }
    Ok((rows, failed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_with_and_without_failed_trials_are_read_and_a_figure_without_value_is_refused() {
        let head = "card,kernel,clock,candidate,mount_options,workload,metric,value,unit,\
                    lower_is_better,seed,trial";
        let front = "c,6.12,cpu:b,f2fs,noatime,rootfs";
        let plain = format!("{head}\n{front},mount,1.5,s,true,1,t1\n");
        let (rows, failed) = read_csv(&plain).unwrap();
        assert_eq!((rows.len(), failed.len()), (1, 0));
        assert_eq!((rows[0].value, rows[0].trial.as_str()), (1.5, "t1"));
        let more = format!(
            "{head},origin,failed\n{front},mount,1.5,s,true,1,t1,modelled,\n\
             {front},,,,,2,t2,modelled,it hung\n"
        );
        let (rows, failed) = read_csv(&more).unwrap();
        assert_eq!((rows.len(), failed.len()), (1, 1));
        assert_eq!(
            (failed[0].reason.as_str(), failed[0].id.as_str()),
            ("it hung", "t2")
        );
        let said = read_csv(&format!("{head}\n{front},mount,,s,true,7,t1\n")).unwrap_err();
        assert!(said.contains("f2fs, seed 7"), "{said}");
        let object = "{\"card\":\"c\",\"kernel\":\"k\",\"clock\":\"b\",\"candidate\":\"f2fs\",\
                      \"mount_options\":\"\",\"workload\":\"w\",\"metric\":null,\"value\":null,\
                      \"unit\":null,\"lower_is_better\":null,\"seed\":1,\"trial\":\"t\"";
        let (rows, failed) = read_json(&format!("[{object},\"failed\":\"no\"}}]")).unwrap();
        assert_eq!((rows.len(), failed.len()), (0, 1));
        read_json(&format!("[{object}}}]")).unwrap_err();
    }
}
