//! Remarks on what was passed over or mended.

use crate::Remark;
use crate::text::excerpt;

/// Begins the reason for passing over a result of dd, hdparm, iozone or fio.
pub(super) const UNUSABLE: &str = "unusable: ";

/// Adds a remark; neighbours with the same reason become one.
pub(super) fn push(remarks: &mut Vec<Remark>, line: usize, why: &str, text: &str) {
    if let Some(last) = remarks.last_mut()
        && last.why == why
        && (last.lines.1..=last.lines.1 + 1).contains(&line)
    {
        last.lines.1 = line;
        return;
    }
    remarks.push(Remark {
        lines: (line, line),
        why: why.to_owned(),
        text: excerpt(text, 72),
    });
}
