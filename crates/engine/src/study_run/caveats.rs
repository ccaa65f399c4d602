//! What the figures of a study leave out: each reason once, with the candidates of whom it holds.

use crate::observer::{Observer, ProgressEvent};

/// What figures leave out.
#[derive(Clone, Debug, Default)]
pub struct Caveats {
    /// Reasons, each with whom it holds of; of the workload alone, without.
    reasons: Vec<(String, Vec<String>)>,
    /// How many of them were told.
    told: usize,
}

impl Caveats {
    /// Those that hold of everybody.
    pub fn of_all(reasons: Vec<String>) -> Caveats {
        let told = reasons.len();
        let reasons = reasons.into_iter().map(|reason| (reason, Vec::new()));
        Caveats {
            reasons: reasons.collect(),
            told,
        }
    }

    /// Adds those of `candidate`.
    pub fn add(&mut self, candidate: &str, reasons: &[String]) {
        for reason in reasons {
            let names = match self.reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names,
                None => {
                    self.reasons.push((reason.clone(), Vec::new()));
                    let Some((_, names)) = self.reasons.last_mut() else {
                        continue;
                    };
                    names
                }
            };
            if !names.iter().any(|name| name == candidate) {
                names.push(candidate.to_owned());
            }
        }
    }

    /// Tells `observer` those that were not told yet.
    pub fn tell(&mut self, observer: &mut dyn Observer) {
        for sentence in self.sentences().into_iter().skip(self.told) {
            observer.hear(&ProgressEvent::Remark(sentence));
        }
        self.told = self.reasons.len();
    }

    /// A sentence for each reason.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |(reason, names): &(String, Vec<String>)| match names.is_empty() {
            true => reason.clone(),
            false => format!("{}: {reason}", names.join(", ")),
        };
        self.reasons.iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_with_all_of_whom_it_holds() {
        let mut caveats = Caveats::of_all(vec!["fio: one core".into()]);
        let (free, cleaner) = ("fio is free".to_owned(), "no cleaner".to_owned());
        for name in ["ext4", "xfs", "ext4"] {
            caveats.add(name, std::slice::from_ref(&free));
        }
        caveats.add("nilfs2", &[cleaner, free]);
        let expected = [
            "fio: one core",
            "ext4, xfs, nilfs2: fio is free",
            "nilfs2: no cleaner",
        ];
        assert_eq!(caveats.sentences(), expected);
        assert_eq!(caveats.told, 1);
        caveats.tell(&mut ());
        assert_eq!(caveats.told, 3);
    }
}
