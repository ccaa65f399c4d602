//! What the driver of a block device does with it: each call goes to the loop driver or to ublk.

use crate::node::{Binding, Driver, Node};
use crate::runtime::Owner;
use crate::{loopdev, queue, ublk};
use std::io;
use std::path::Path;

impl Node {
    /// Whose it is, if it is not `owner`'s.
    pub fn binding(self, owner: &Owner) -> Binding {
        match self.driver {
            Driver::Loop => loopdev::binding(self.number, &owner.label()),
            Driver::Ublk => ublk::binding(self.number, owner.tag()),
        }
    }

    /// Whether there is something behind it.
    pub fn is_bound(self) -> bool {
        match self.driver {
            Driver::Loop => loopdev::is_bound(self.number),
            Driver::Ublk => Path::new("/sys/block").join(self.to_string()).exists(),
        }
    }

    /// Whether the card of `owner` is behind it, for all that the kernel says.
    pub fn is_bound_to(self, owner: &Owner) -> bool {
        let ours = || matches!(self.binding(owner), Binding::Ours | Binding::Unknown(_));
        // A ublk device keeps its owner's mark when its disk is gone.
        ours() && (self.driver == Driver::Loop || self.is_bound())
    }

    /// Takes it from what is behind it, and its settings from a loop device, whose next user must
    /// not have those of a card. A loop device that somebody has open goes when the last one
    /// closes it, a ublk device at once.
    ///
    /// # Errors
    /// The kernel's.
    pub fn clear(self) -> io::Result<()> {
        match self.driver {
            Driver::Loop => {
                self.as_new();
                loopdev::clear(self.number)
            }
            Driver::Ublk => ublk::stop(self.number),
        }
    }

    /// Has a loop device flush again that somebody took; see [`queue::flush_again`].
    pub fn flush_again(self) {
        if self.driver == Driver::Loop {
            queue::flush_again(Path::new("/sys/block"), &self.to_string());
        }
    }

    /// Gives a loop device the settings of a new one; of a ublk device they go with it.
    pub fn as_new(self) {
        if self.driver == Driver::Loop {
            queue::as_new(Path::new("/sys/block"), &self.to_string());
        }
    }

    /// Removes it; nothing may be behind it.
    ///
    /// # Errors
    /// The kernel's; `EBUSY` while somebody has it open.
    pub fn remove(self) -> io::Result<()> {
        match self.driver {
            Driver::Loop => loopdev::remove(self.number),
            Driver::Ublk => ublk::delete(self.number),
        }
    }

    /// What a person can type to remove it.
    pub fn by_hand(self) -> String {
        match self.driver {
            Driver::Loop => format!("losetup -d {}", self.path().display()),
            Driver::Ublk => format!("ublk del -n {} (of ubdsrv)", self.number),
        }
    }

    /// Whether anything of it is left once it is removed.
    pub fn exists(self) -> bool {
        match self.driver {
            Driver::Loop => self.path().exists(),
            Driver::Ublk => ublk::exists(self.number),
        }
    }
}

/// All devices that whichfs attached, with what the kernel keeps of who did.
pub(crate) fn bound() -> Vec<(Node, Owner)> {
    let loops = loopdev::bound().unwrap_or_default().into_iter();
    let loops = loops.filter_map(|(number, bound)| {
        let owner = Owner::of_label(&bound.label)?;
        Some((Node::of_loop(number), owner))
    });
    let ublks = ublk::tags().into_iter();
    let ublks = ublks.filter_map(|(number, tag)| {
        let owner = Owner::of_tag(tag)?;
        Some((Node::of_ublk(number), owner))
    });
    loops.chain(ublks).collect()
}
