//! A board that can lose its power: an ssh server of the test's own with process and mount
//! name spaces of its own, a number of its boot that changes, and a card with a volatile cache.
//!
//! The card is a loop device over a file of an XFS of its own. What a flush of the device has not
//! made durable there is gone when that XFS is shut down without its log
//! (`xfs_io -x -c shutdown`), and from that instant nothing more reaches it. Then the first process
//! of the board is killed, which ends all the others at once, and the board begins anew.

use crate::skip;
use crate::sshd::{program, write_client, write_keys};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Size of the disk that the board sees: 160 MiB.
pub const CARD_BYTES: u64 = 160 << 20;

/// Begins the board: as its first process, and as who made its name spaces.
const BEGIN: &str = r#"
begin() {
    cat /proc/sys/kernel/random/uuid > "$home/boot_id"
    setsid unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mkdir /run/sshd &&
        mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id &&
        exec "$1" -D -e -p "$2" -f "$0/sshd_config"' "$home" "$sshd" "$port" \
        </dev/null >/dev/null 2>"$home/sshd.log" &
    echo $! > "$home/board.pid"
}
end() {
    pid=$(cat "$home/board.pid")
    first=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || first=
    kill -9 "$pid" 2>/dev/null || true
    for one in $pid $first; do
        status="/proc/$one/status"
        again "[ ! -e $status ] || grep -q '^State:.Z' $status"
    done
}
again() {
    tries=0
    until eval "$1" 2>/dev/null; do
        tries=$((tries + 1)); [ $tries -lt 300 ] || { echo "never: $1" >&2; exit 9; }
        sleep 0.1
    done
}
# Name spaces of others, as sandboxes have, may hold what is no longer mounted here; mount -o loop
# would take their loop device again, with the XFS on it that was shut down. So this one is another,
# and there are two of that UUID.
mount_flash() {
    loop=$(losetup --find --show "$home/flash.img")
    mount -o nouuid "$loop" "$home/flash"
    losetup -d "$loop"
}
insert() {
    mount_flash
    plug
}
plug() {
    free_device
    losetup "$device" "$home/flash/card.img"
}
free_device() {
    losetup -d "$device"
    again '! losetup "$device" >/dev/null'
}
take_out() {
    again 'partx -d "$device"; [ ! -e ${device}p1 ]'
    free_device
    # So that no other test takes the device meanwhile.
    losetup "$device" "$home/no-card"
    umount -l "$home/flash"
    # The name spaces of the board hold it a moment longer: what is under way there would come upon
    # what is mounted anew. Those of others may hold it for ever.
    tries=50
    while [ $tries -gt 0 ] && [ -n "$(losetup --associated "$home/flash.img")" ]; do
        tries=$((tries - 1)); sleep 0.1
    done
}
# What was flushed must be there after a cut, else nothing can be tested with this card.
mark() {
    cat /proc/sys/kernel/random/uuid > "$home/mark"
    dd if="$home/mark" of="$home/flash/mark" conv=fsync status=none
}
marked() {
    cmp -s "$home/mark" "$home/flash/mark" || {
        echo "the card of the test is not honest" >&2
        exit 8
    }
}
"#;

/// What takes the power.
const OFF: &str = "mark\nxfs_io -x -c shutdown \"$home/flash\"\nend\ntake_out\n";
/// What gives it again.
const ON: &str = "insert\nmarked\nbegin\n";

/// The same with a card that says of a second's writes that they are durable, and loses them.
const LYING_CUT: &str = "xfs_freeze -f \"$home/flash\"\n\
    cp --sparse=always \"$home/flash/card.img\" \"$home/old.img\"\n\
    xfs_freeze -u \"$home/flash\"\nsleep 1\n\
    xfs_io -x -c shutdown \"$home/flash\"\nend\ntake_out\n\
    mount_flash\n\
    cp --sparse=always \"$home/old.img\" \"$home/flash/card.img\"\n\
    plug\nbegin\n";

/// Whether ext4 keeps on this card what was flushed, with nothing of ours; the card is new then.
/// Status 7: it does not. The filesystem is mounted in name spaces of its own each time: whoever
/// copied those of this machine meanwhile, as sandboxes of other tests do, would hold the card for
/// as long as it lives.
const KEEPS: &str = r#"
mkfs.ext4 -q "$device"
sync "$device"
mkdir "$home/try"
unshare --mount sh -ec '
    mount "$1" "$0/try"
    cp "$0/boot_id" "$0/kept"
    dd if="$0/kept" of="$0/try/kept" conv=fsync status=none
    xfs_io -x -c shutdown "$0/flash"
    umount "$0/try"' "$home" "$device"
end
take_out
insert
keeps=0
unshare --mount sh -ec '
    mount "$1" "$0/try"
    cmp "$0/kept" "$0/try/kept"' "$home" "$device" || keeps=7
take_out
mount_flash
size=$(stat -c %s "$home/flash/card.img")
truncate -s 0 "$home/flash/card.img"
truncate -s "$size" "$home/flash/card.img"
plug
begin
exit $keeps
"#;

/// The board's serial line with a root shell, which begins anew with the board, and a TCP port for
/// it.
const CONSOLE: &str = r#"
if [ "${1:-}" = shell ]; then
    while :; do
        pid=$(cat "$home/board.pid")
        first=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || { sleep 0.2; continue; }
        setsid -w -c nsenter -t $first -m -p -w/ bash --norc -i || true
    done
fi
socat "PTY,link=$home/tty,raw,echo=0" "EXEC:$0 shell,pty,stderr,sane" &
echo $! > "$home/console.pid"
again '[ -e "$home/tty" ]'
# Keeps the line open between two connections.
sleep 100000 <> "$home/tty" &
echo $! >> "$home/console.pid"
socat "TCP-LISTEN:$1,reuseaddr,fork,max-children=1" "FILE:$home/tty,raw,echo=0" &
echo $! >> "$home/console.pid"
"#;

/// A board; it ends with the test.
pub struct Powered {
    home: tempfile::TempDir,
    port: u16,
    /// Path of the loop device that stands for the card.
    pub device: String,
}

impl Powered {
    /// A board that is on, with its card; `None`, and said why, where there cannot be one.
    pub fn new() -> Option<Powered> {
        if !can_be() {
            return None;
        }
        let home = tempfile::Builder::new()
            .prefix("powered")
            .tempdir()
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        write_keys(home.path());
        write_client(home.path(), port);
        let flash = "cd \"$0\" && truncate -s 1M no-card && truncate -s 512M flash.img && \
                     mkfs.xfs -q flash.img && mkdir flash && mount -o loop flash.img flash";
        let mut make = Command::new("sh");
        let made = make.args(["-c", flash]).arg(home.path()).output().unwrap();
        if !made.status.success() {
            skip::skip("loop devices and XFS are needed");
            return None;
        }
        let card = home.path().join("flash/card.img");
        std::fs::File::create(&card)
            .unwrap()
            .set_len(CARD_BYTES)
            .unwrap();
        let losetup = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&card)
            .output()
            .unwrap();
        let device = String::from_utf8_lossy(&losetup.stdout).trim().to_owned();
        // Whoever had this loop device before may have left it without a cache, and unflushed.
        let queue = device.replace("/dev/", "/sys/block/") + "/queue/write_cache";
        std::fs::write(queue, "write back").unwrap();
        let board = Powered { home, port, device };
        board.script("begin", "begin");
        board.script("end", "end\ntake_out\nfree_device");
        board.script("off", OFF);
        board.script("on", ON);
        board.script("cut", &format!("{OFF}{ON}"));
        board.script("lying-cut", LYING_CUT);
        board.run("begin");
        board.is_up();
        Some(board)
    }

    /// Whether this machine's loop devices, XFS and ext4 make an honest card; why not is said.
    pub fn keeps_what_was_flushed(&self) -> bool {
        self.script("keeps", KEEPS);
        let log = self.path("keeps.log");
        let status = Command::new(self.path("keeps"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .status()
            .unwrap();
        let said = std::fs::read_to_string(log).unwrap_or_default();
        let said = said.trim();
        let keeps = match status.code() {
            Some(0) => true,
            Some(7) => false,
            _ => panic!("the card could not be tried: {status}: {said}"),
        };
        self.is_up();
        if !keeps {
            skip::skip(format!("no honest card can be made here: {said}"));
        }
        keeps
    }

    /// From now on the power comes back `times` times, and then no more.
    pub fn comes_back(&self, times: usize) {
        let on = format!(
            "echo >> \"$home/ons\"\n[ \"$(wc -l < \"$home/ons\")\" -le {times} ] || exit 0\n{ON}"
        );
        let _ = std::fs::remove_file(self.path("ons"));
        self.script("on", &on);
    }

    /// A command that takes the power and gives it again.
    pub fn cut(&self) -> String {
        self.path("cut").display().to_string()
    }

    /// The same by a switch that takes the words `on` and `off`.
    pub fn switch(&self) -> impl Fn(bool) + Send + use<> {
        let (on, off) = (self.path("on"), self.path("off"));
        move |is_on| {
            let mut script = Command::new(if is_on { &on } else { &off });
            // Pipes would stay open as long as what it leaves running.
            let _ = script.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }

    /// The same of a card that lies about its flushes.
    pub fn lying_cut(&self) -> String {
        self.path("lying-cut").display().to_string()
    }

    /// What the card is called by.
    pub fn id(&self) -> String {
        self.path("flash/card.img").display().to_string()
    }

    /// Serves its serial console; the TCP port. `None`, and said why, where that cannot be.
    pub fn console(&self) -> Option<u16> {
        if program("socat").is_none() {
            skip::skip("socat is missing (apt-get install socat)");
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        self.script("console", CONSOLE);
        let status = Command::new(self.path("console"))
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        Some(port)
    }

    /// Blocks of 512 bytes that were ever written to the card.
    pub fn blocks(&self) -> u64 {
        let meta = std::fs::metadata(self.path("flash/card.img")).unwrap();
        std::os::unix::fs::MetadataExt::blocks(&meta)
    }

    /// Directory of the program `ssh` that connects to it.
    pub fn ssh(&self) -> PathBuf {
        self.path("bin")
    }

    /// Programs of agents on it, and directories of sessions.
    pub fn left(&self) -> Vec<String> {
        let pid = std::fs::read_to_string(self.path("board.pid")).unwrap();
        let children = format!("/proc/{0}/task/{0}/children", pid.trim());
        let first = std::fs::read_to_string(children).unwrap_or_default();
        let run = PathBuf::from(format!("/proc/{}/root/run", first.trim()));
        let entries = std::fs::read_dir(run).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("whichfs-")).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        let home = self.home.path().display();
        let sshd = program("sshd").unwrap();
        let head = format!(
            "#!/bin/sh\nset -e\nhome='{home}' device='{}' port={} sshd='{}'\n",
            self.device,
            self.port,
            sshd.display()
        );
        let path = self.path(name);
        std::fs::write(&path, format!("{head}{BEGIN}\n{text}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }

    fn run(&self, name: &str) {
        // Pipes would stay open as long as what it leaves running.
        let status = Command::new(self.path(name))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{name}: {status}");
    }

    fn is_up(&self) {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(120),
                "no server: {}",
                std::fs::read_to_string(self.path("sshd.log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Powered {
    fn drop(&mut self) {
        let consoles = std::fs::read_to_string(self.path("console.pid")).unwrap_or_default();
        let _ = Command::new("kill")
            .args(consoles.split_whitespace())
            .output();
        let _ = Command::new(self.path("end")).output();
    }
}

/// Whether all that it needs is there; what is not is said.
fn can_be() -> bool {
    let own = std::fs::metadata("/proc/self").unwrap();
    if std::os::unix::fs::MetadataExt::uid(&own) != 0 {
        skip::skip("root is needed");
        return false;
    }
    let needed = [
        ("sshd", "openssh-server"),
        ("ssh", "openssh-client"),
        ("xfs_io", "xfsprogs"),
        ("unshare", "util-linux"),
    ];
    let missing = needed.iter().find(|(name, _)| program(name).is_none());
    if let Some((name, package)) = missing {
        skip::skip(format!("{name} is missing (apt-get install {package})"));
    }
    missing.is_none()
}
