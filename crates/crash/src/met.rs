//! What a user meets after a power cut, whatever was promised: whether the system comes up by
//! itself, and what it lacks then.

use crate::count::Share;
use crate::verdict::FilesystemCondition;
use schemars::JsonSchema;
use serde::Serialize;

/// Something that one does not want to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// The filesystem broke a promise.
    Broken,
    /// It does not mount by itself.
    NoMount,
    /// A repair is needed.
    Repair,
    /// Files are lost that were durable.
    Lost,
    /// A file cannot be read.
    ReadError,
}

impl Harm {
    /// All of them.
    pub const ALL: [Harm; 5] = [
        Harm::Broken,
        Harm::NoMount,
        Harm::Repair,
        Harm::Lost,
        Harm::ReadError,
    ];

    /// The name after `--fail-on`.
    pub const fn name(self) -> &'static str {
        match self {
            Harm::Broken => "broken",
            Harm::NoMount => "no-mount",
            Harm::Repair => "repair",
            Harm::Lost => "lost",
            Harm::ReadError => "read-error",
        }
    }
}

/// What was found after one cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What became of the filesystem.
    pub condition: FilesystemCondition,
    /// Whether it broke a promise.
    pub broken: bool,
    /// Whether some file cannot be read.
    pub read_error: bool,
    /// Whether its checker finds faults, whatever else was found.
    pub faults: bool,
}

impl Seen {
    /// Whether the user meets `harm`.
    pub fn has(self, harm: Harm) -> bool {
        use FilesystemCondition::*;
        match harm {
            Harm::Broken => self.broken,
            Harm::NoMount => matches!(
                self.condition,
                Repaired | RepairedWithLoss | MountFailed | Unfixable | CardFailed | Oops | Hang
            ),
            Harm::Repair => {
                let by_condition = matches!(
                    self.condition,
                    ReadOnly
                        | NeedsCheck
                        | Repaired
                        | RepairedWithLoss
                        | MountFailed
                        | Unfixable
                        | CardFailed
                );
                self.faults || by_condition
            }
            Harm::Lost => matches!(
                self.condition,
                RepairedWithLoss | DurableLost | SilentCorruption | Unfixable
            ),
            Harm::ReadError => self.read_error,
        }
    }

    /// Whether the user meets anything.
    pub fn is_harmed(self) -> bool {
        Harm::ALL.into_iter().any(|harm| self.has(harm))
    }
}

/// What a user meets after the cuts of a series: after how many, with the 95 % intervals of the
/// shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Met {
    /// It mounts by itself.
    pub mounts: Share,
    /// It needs a repair.
    pub repair: Share,
    /// Files are lost that were durable.
    pub lost: Share,
    /// A file cannot be read.
    pub read_errors: Share,
    /// Any harm at all, a broken promise too.
    pub harmed: Share,
}

impl Met {
    /// The sums of `cuts`.
    pub fn of(cuts: &[Seen]) -> Met {
        let share = |is: &dyn Fn(&Seen) -> bool| {
            let hits = cuts.iter().filter(|cut| is(cut)).count();
            Share::new(hits as u64, cuts.len() as u64)
        };
        Met {
            mounts: share(&|cut| !cut.has(Harm::NoMount)),
            repair: share(&|cut| cut.has(Harm::Repair)),
            lost: share(&|cut| cut.has(Harm::Lost)),
            read_errors: share(&|cut| cut.has(Harm::ReadError)),
            harmed: share(&|cut| cut.is_harmed()),
        }
    }

    /// In a sentence that follows the filesystem's name.
    pub fn sentence(&self) -> String {
        format!(
            "mounts by itself after {}, needs repair after {}, has lost durable files after {} and \
             cannot read a file after {}",
            self.mounts, self.repair, self.lost, self.read_errors
        )
    }
}

/// A bound that the share of harmed cuts must be shown to lie below: `p<1%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareBound(f64);

impl ShareBound {
    /// Clean cuts that are still needed, after `hits` harmed of `of`, until the 95 % interval of
    /// the share ends below the bound; 0 where it does.
    pub fn clean_cuts_needed(self, hits: u64, of: u64) -> u64 {
        let is_below = |more: u64| Share::new(hits, of + more).high < self.0;
        if is_below(0) && of > 0 {
            return 0;
        }
        let mut enough = 1_u64;
        while !is_below(enough) {
            enough *= 2;
        }
        // The interval's end falls with every clean cut.
        let (mut low, mut high) = (enough / 2, enough);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match is_below(middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }
}

impl std::fmt::Display for ShareBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p<{}%", self.0 * 100.0)
    }
}

impl std::str::FromStr for ShareBound {
    type Err = String;

    fn from_str(text: &str) -> Result<ShareBound, String> {
        let plain = text.replace(' ', "");
        let value = plain.strip_prefix("p<").and_then(|rest| {
            let (digits, unit) = match rest.strip_suffix('%') {
                Some(digits) => (digits, 0.01),
                None => (rest, 1.0),
            };
            digits.parse::<f64>().ok().map(|number| number * unit)
        });
        match value {
            Some(share) if (1e-5..1.0).contains(&share) => Ok(ShareBound(share)),
            _ => Err("expected 'p<1%' or 'p<0.01', from 0.001 % to below 100 %".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seen(condition: FilesystemCondition) -> Seen {
        Seen {
            condition,
            broken: false,
            read_error: false,
            faults: false,
        }
    }

    /// A filesystem that promises nothing and needs its checker 16 times of 20 is not fine.
    #[test]
    fn what_a_user_meets_is_counted_whatever_was_promised() {
        let mut cuts = vec![seen(FilesystemCondition::NeedsCheck); 16];
        cuts.extend([seen(FilesystemCondition::Clean); 3]);
        cuts.push(Seen {
            read_error: true,
            ..seen(FilesystemCondition::RepairedWithLoss)
        });
        let met = Met::of(&cuts);
        assert_eq!((met.mounts.count, met.repair.count), (19, 17));
        assert_eq!(
            (met.lost.count, met.read_errors.count, met.harmed.count),
            (1, 1, 17)
        );
        let said = met.sentence();
        assert!(
            said.starts_with("mounts by itself after 19 of 20 (76 to 99 %), needs repair after 17"),
            "{said}"
        );
        let clean = Met::of(&[seen(FilesystemCondition::Recovered); 20]);
        assert!(
            clean
                .sentence()
                .contains("needs repair after 0 of 20 (≤ 16 %)")
        );
        assert!(
            clean
                .sentence()
                .contains("mounts by itself after 20 of 20 (≥ 84 %)")
        );
    }

    /// Every harm is found where it is planted, and nothing where all is well.
    #[test]
    fn each_harm_has_its_conditions() {
        for condition in [FilesystemCondition::Clean, FilesystemCondition::Recovered] {
            assert!(!seen(condition).is_harmed(), "{condition:?}");
        }
        for condition in [
            FilesystemCondition::MountFailed,
            FilesystemCondition::Oops,
            FilesystemCondition::Hang,
        ] {
            assert!(seen(condition).has(Harm::NoMount), "{condition:?}");
        }
        assert!(seen(FilesystemCondition::ReadOnly).has(Harm::Repair));
        assert!(
            !seen(FilesystemCondition::ReadOnly).has(Harm::NoMount),
            "it can be read"
        );
        assert!(seen(FilesystemCondition::DurableLost).has(Harm::Lost));
        let faulty = Seen {
            faults: true,
            ..seen(FilesystemCondition::DurableLost)
        };
        assert!(faulty.has(Harm::Repair) && faulty.has(Harm::Lost));
        assert!(!seen(FilesystemCondition::DurableLost).has(Harm::Repair));
        let broken = Seen {
            broken: true,
            ..seen(FilesystemCondition::Clean)
        };
        assert!(broken.has(Harm::Broken) && broken.is_harmed());
    }

    #[test]
    fn a_bound_says_how_many_clean_cuts_it_takes() {
        let one: ShareBound = "p<1%".parse().unwrap();
        assert_eq!(one, "p < 0.01".parse().unwrap());
        let needed = one.clean_cuts_needed(0, 0);
        assert!(Share::new(0, needed).high < 0.01 && Share::new(0, needed - 1).high >= 0.01);
        assert_eq!(needed, 381);
        assert_eq!(one.clean_cuts_needed(0, 381), 0);
        assert_eq!(one.clean_cuts_needed(0, 100), 281);
        // One that hurts costs some hundred more.
        let more = one.clean_cuts_needed(1, 381);
        assert!((150..300).contains(&more), "{more}");
        for wrong in ["1%", "p<0%", "p<100%", "p<x", "p>1%", ""] {
            assert!(wrong.parse::<ShareBound>().is_err(), "{wrong}");
        }
    }
}
