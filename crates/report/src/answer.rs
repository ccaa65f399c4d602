//! The answer in sentences: which to take and why, how sure that is, what is to be minded.

use crate::excluded::failed;
use crate::number::{duration, p_best, short};
use crate::settling;
use whichfs_decide::{FigureOrigin, Verdict, kinds_sentence};
use whichfs_units::counted;

/// The first line of the answer, and what belongs to it: how sure, whose trials failed, what is
/// to be minded.
pub(crate) fn answer(verdict: &Verdict) -> (String, Vec<String>) {
    let sentences = sureness(verdict).into_iter().chain(failed(verdict));
    let sentences = sentences.chain(reservations(verdict));
    (winner(verdict), sentences.collect())
}

/// What is to be minded: what the winner's figures leave out, what nobody measured, and whether
/// the figures are modelled, and how well.
fn reservations(verdict: &Verdict) -> Vec<String> {
    let caveats = verdict
        .advised()
        .map_or(&[][..], |advised| &advised.caveats);
    let mut said: Vec<String> = caveats
        .iter()
        .map(|caveat| format!("Mind: {caveat}."))
        .collect();
    said.extend(measured_whole(verdict));
    if !verdict.unmeasured.is_empty() && !verdict.ranking.is_empty() {
        let each = verdict.unmeasured.iter();
        let each = each.map(|one| format!("{} ({:.0} %)", one.label, one.share * 100.0));
        let names = each.collect::<Vec<_>>().join(", ");
        said.push(format!("Not measured: {names}; the other weights decide."));
    }
    let stated = verdict.card_uncertainty * 100.0;
    let fit = verdict.fit_error.map_or(String::new(), |fit| {
        format!(
            ", the model is off by {} % in the median and {} % at the 90th percentile",
            short(fit.median * 100.0),
            short(fit.p90 * 100.0)
        )
    });
    said.push(match verdict.origin {
        FigureOrigin::Modelled => {
            format!("Figures are modelled; the card's are taken for ±{stated:.0} %{fit}.")
        }
        other => format!("Figures are {}.", other.word()),
    });
    said
}

/// The first line of the answer.
pub(crate) fn winner(verdict: &Verdict) -> String {
    let Some(advised) = verdict.advised() else {
        return "No candidate qualifies".to_owned();
    };
    let name = &advised.candidate;
    match &verdict.advice {
        Some(advice) if advice.among.is_empty() => format!("Use {name} (by the standard)"),
        Some(_) => format!("Use {name} (a tie)"),
        None if is_undecided(verdict) => format!("Undecided: {name} leads by one seed"),
        None => format!("Use {name}"),
    }
}

/// Whether there is a contest of which one seed is all that is known.
fn is_undecided(verdict: &Verdict) -> bool {
    let first = verdict.ranking.first();
    verdict.ranking.len() > 1 && first.is_some_and(|first| first.seeds < 2)
}

/// How sure, who ties, and on what it rests.
pub(crate) fn sureness(verdict: &Verdict) -> Vec<String> {
    let Some(first) = verdict.ranking.first() else {
        return vec!["Every candidate is excluded; the reasons are below.".to_owned()];
    };
    let mut sentences = advice(verdict);
    let trials = format!(
        "after {} ({} {} in {})",
        counted(verdict.trials, "trial"),
        duration(verdict.virtual_s),
        match verdict.origin {
            FigureOrigin::Measured => "on the device",
            FigureOrigin::Modelled | FigureOrigin::Published => "of virtual time",
        },
        duration(verdict.wall_s)
    );
    let p = (p_best(verdict).first()).map_or(String::new(), |p| p.replace('%', " %"));
    let advised = verdict.advised().unwrap_or(first);
    let errors = match &verdict.discrepancy {
        Some(errors) => format!(
            " (8 of 10 published ratios are within {:.1} times of the lab's)",
            errors.of_eight_in_ten()
        ),
        None => String::new(),
    };
    sentences.push(match first.p_best {
        None => format!("No other candidate qualifies, {trials}."),
        Some(_) if is_undecided(verdict) => format!(
            "One seed decides nothing: --seeds {} or more does, {trials}.",
            whichfs_decide::plan::LEAST
        ),
        Some(_) if advised.candidate == first.candidate => {
            format!("Best with a probability of {p}{errors}, {trials}.")
        }
        Some(_) => format!(
            "{} measures best with a probability of {p}{errors}, {trials}.",
            first.candidate
        ),
    });
    if let (None, Some(second)) = (&verdict.advice, verdict.ranking.get(1)) {
        sentences.push(format!(
            "The second, {}, is {} times behind on the weighted average.",
            second.candidate,
            format_args!("{:.2}", first.score / second.score.max(1e-9))
        ));
    }
    sentences.extend(kinds_sentence(&verdict.kinds));
    sentences.extend(verdict.settling.as_ref().map(settling::sentence));
    if let Some(baseline) = &verdict.baseline {
        sentences.push(format!(
            "If you just use {}: {}.",
            baseline.candidate, baseline.told
        ));
    }
    sentences
}

/// Which to take where scores do not decide, and why.
fn advice(verdict: &Verdict) -> Vec<String> {
    let Some(advice) = &verdict.advice else {
        return Vec::new();
    };
    let name = &advice.candidate;
    let mut sentences = Vec::new();
    sentences.push(match advice.among.split_last() {
        Some((last, others)) => format!(
            "{} or {last}: no difference that you would notice ({} the noise floor of {:.0} %). \
             Take {name}, because {}.",
            others.join(", "),
            match verdict.spread_of(&advice.among) < verdict.noise_floor {
                true => "within",
                false => "each to the next within",
            },
            (verdict.noise_floor - 1.0) * 100.0,
            advice.because
        ),
        None => format!(
            "Take {name}, because {} ({}).",
            advice.because, advice.source
        ),
    });
    sentences.extend(advice.deviation.iter().map(|said| format!("{said}.")));
    sentences
}

/// Where the winner's figures leave something out: the answer without it.
pub(crate) fn measured_whole(verdict: &Verdict) -> Option<String> {
    let without = verdict.without.as_ref()?;
    let (last, others) = without.left_out.split_last()?;
    let those = match others.is_empty() {
        true => last.clone(),
        false => format!("{} and {last}", others.join(", ")),
    };
    Some(format!(
        "The figures of {those} leave something out (caveats) that score and probability do not \
         count; of the others {} is the best ({}).",
        without.winner,
        crate::percents(&[without.p_best])[0].replace('%', " %")
    ))
}
