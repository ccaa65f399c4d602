//! Runs that were not fitted, and why.

use crate::FitError;
use whichfs_logs::{LoggedRun, NO_CURVES, Remark};

/// A run that was not fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfittedRun {
    /// Name of the run.
    pub name: String,
    /// Maker and model, as far as known.
    pub card: String,
    /// What keeps it from being fitted.
    pub why: String,
}

impl UnfittedRun {
    /// The runs of a collection that have no curves; other remarks are about parts of runs.
    pub fn without_curves(skipped: &[Remark]) -> Vec<UnfittedRun> {
        let of_run = |remark: &&Remark| remark.why.starts_with(NO_CURVES);
        let left = skipped.iter().filter(of_run).map(|remark| UnfittedRun {
            name: remark.text.clone(),
            card: "–".to_owned(),
            why: remark.why.clone(),
        });
        left.collect()
    }

    /// The run that was not fitted because of `error`.
    pub fn of(run: &LoggedRun, error: &FitError) -> UnfittedRun {
        UnfittedRun {
            name: run.name.clone(),
            card: card_name(run),
            why: why(run, error),
        }
    }
}

fn why(run: &LoggedRun, error: &FitError) -> String {
    let curves = &run.curves;
    let writes = curves.linear.len() + curves.random.len();
    match error {
        FitError::TooFewPoints { .. } if writes == 0 && !curves.align.is_empty() => {
            "only the alignment test (flashbench -a): reads, no writes".to_owned()
        }
        error => error.to_string(),
    }
}

/// What the log says the card is.
pub fn card_name(run: &LoggedRun) -> String {
    let card = &run.card;
    let product = card.product.as_deref().unwrap_or("card of unknown name");
    let maker = card
        .manufacturer
        .as_deref()
        .map(|id| format!(", manufacturer {id}"));
    let date = card.date.as_deref().map(|date| format!(", {date}"));
    format!(
        "{product}{}{}",
        maker.unwrap_or_default(),
        date.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_curves::Curves;
    use whichfs_logs::LoggedIdentity;

    #[test]
    fn runs_that_cannot_be_fitted_have_their_reason() {
        let remark = |why: &str| Remark {
            lines: (1, 1),
            why: why.to_owned(),
            text: "10_2".to_owned(),
        };
        let remarks = [remark("fields"), remark(&format!("{NO_CURVES}; fields"))];
        let left = UnfittedRun::without_curves(&remarks);
        assert_eq!(left.len(), 1);
        assert_eq!(
            (left[0].name.as_str(), left[0].card.as_str()),
            ("10_2", "–")
        );
        let mut run = LoggedRun {
            name: "5".into(),
            lines: (1, 1),
            card: LoggedIdentity::default(),
            erase_bytes: None,
            curves: Curves::default(),
            rates: Vec::new(),
        };
        let few = FitError::TooFewPoints {
            points: 0,
            sizes: 0,
            left_out: Vec::new(),
        };
        assert!(why(&run, &few).contains("0 write points"));
        run.curves.align.insert(4096, vec![[1.0, 2.0, 1.0, 1.0]]);
        assert!(why(&run, &few).contains("alignment test"));
    }
}
