//! How operations are done beside what they are.

use std::borrow::Cow;
use whichfs_workload::Op;

/// How operations are done and told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Each operation that changes something tells that it returned.
    pub returns: bool,
    /// What makes data durable returns at once and does nothing, as under eatmydata: fsync,
    /// fdatasync, syncfs; O_SYNC is dropped.
    pub ignores_sync: bool,
}

impl Manner {
    /// What is really done for `op`; nothing where all of it is to make data durable.
    pub(super) fn does<'a>(self, op: &'a Op) -> Option<Cow<'a, Op>> {
        if !self.ignores_sync {
            return Some(Cow::Borrowed(op));
        }
        let done = match op.clone() {
            Op::SyncFs | Op::SyncDir { .. } | Op::SyncFile { .. } | Op::SyncClose { .. } => {
                return None;
            }
            Op::Update {
                path,
                offset,
                len,
                content,
            }
            | Op::WriteSync {
                path,
                offset,
                len,
                content,
            } => Op::Overwrite {
                path,
                offset,
                len,
                content,
            },
            Op::Append {
                path, len, content, ..
            } => Op::Append {
                path,
                len,
                content,
                sync: false,
            },
            Op::Save {
                path,
                size,
                content,
                mode,
            } => Op::Create {
                path,
                size,
                content,
                mode,
                pieces: None,
            },
            other => other,
        };
        Some(Cow::Owned(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_workload::Content;

    const CONTENT: Content = Content::Generated { level: 1, seed: 2 };

    #[test]
    fn data_are_written_and_nothing_is_made_durable() {
        let eats = Manner {
            ignores_sync: true,
            ..Manner::default()
        };
        let update = Op::Update {
            path: "a".into(),
            offset: 3,
            len: 5,
            content: CONTENT,
        };
        assert_eq!(Manner::default().does(&update).as_deref(), Some(&update));
        let overwrite = Op::Overwrite {
            path: "a".into(),
            offset: 3,
            len: 5,
            content: CONTENT,
        };
        assert_eq!(eats.does(&update).as_deref(), Some(&overwrite));
        let path = || "a".to_owned();
        for op in [
            Op::SyncFs,
            Op::SyncDir { path: path() },
            Op::SyncFile { path: path() },
            Op::SyncClose { path: path() },
        ] {
            assert_eq!(eats.does(&op), None);
        }
        let unlink = Op::Unlink { path: path() };
        assert_eq!(eats.does(&unlink).as_deref(), Some(&unlink));
    }
}
