//! How many AUs can be open, as a knowledge file says it.

use super::SizesFile;
use std::ops::RangeInclusive;
use toml::Spanned;
use whichfs_curves::flashbench::OPEN_AUS_MOST;

/// Counts of open AUs.
const OPEN_AUS: RangeInclusive<u32> = 1..=1024;

/// How many AUs can be written in turns at no cost, as a test found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAuLimit {
    /// In order within each; more than were tried is no limit.
    pub linear: u32,
    /// At random places within each; none if that was not tested.
    pub random: Option<u32>,
    /// The most that were tried.
    pub tried: u32,
}

impl OpenAuLimit {
    /// What somebody read off a flashbench -O, which ends at [`OPEN_AUS_MOST`].
    pub fn of_flashbench(linear: u32) -> OpenAuLimit {
        OpenAuLimit {
            linear,
            random: None,
            tried: OPEN_AUS_MOST,
        }
    }

    /// The limit; none if the test found none.
    pub(crate) fn limit(self) -> Option<u32> {
        (self.linear <= self.tried).then_some(self.linear)
    }
}

/// The counts of open AUs of `file`, or where and what is wrong with them.
pub(super) fn read(file: &SizesFile) -> Result<Option<OpenAuLimit>, (usize, String)> {
    let counts = [
        ("open_aus", &file.open_aus),
        ("open_aus_random", &file.open_aus_random),
        ("open_aus_tried", &file.open_aus_tried),
    ];
    for (key, count) in counts {
        let Some(count) = count else { continue };
        if !OPEN_AUS.contains(count.get_ref()) {
            let why = format!(
                "{key}: {}; legal are {} to {}, and an open_aus above open_aus_tried \
                 ({OPEN_AUS_MOST}) means no limit",
                count.get_ref(),
                OPEN_AUS.start(),
                OPEN_AUS.end()
            );
            return Err((count.span().start, why));
        }
        if file.open_aus.is_none() {
            return Err((count.span().start, format!("{key}: there is no open_aus")));
        }
    }
    let told = |count: &Option<Spanned<u32>>| count.as_ref().map(|count| *count.get_ref());
    let found = told(&file.open_aus).map(|linear| OpenAuLimit {
        linear,
        random: told(&file.open_aus_random),
        tried: told(&file.open_aus_tried).unwrap_or(OPEN_AUS_MOST),
    });
    if let (Some(found), Some(random)) = (found, &file.open_aus_random)
        && *random.get_ref() > found.linear
    {
        let why = format!(
            "open_aus_random: {}; at random no more can be open than in order: at most {}",
            random.get_ref(),
            found.linear
        );
        return Err((random.span().start, why));
    }
    Ok(found)
}
