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
# Name spaces of others may hold what is no longer mounted here: then there are two of that UUID.
insert() {
    mount -o loop,nouuid "$home/flash.img" "$home/flash"
    losetup "$device" "$home/flash/card.img"
}
take_out() {
    again 'partx -d "$device"; [ ! -e ${device}p1 ]'
    losetup -d "$device"
    again '! losetup "$device" >/dev/null'
    umount -l "$home/flash"
    # Until no name space of the board holds it: what is under way there would come upon what is
    # mounted anew. Those of others may hold it for ever.
    (again '[ -z "$(losetup --associated "$home/flash.img")" ]') || true
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
    mount -o loop,nouuid \"$home/flash.img\" \"$home/flash\"\n\
    cp --sparse=always \"$home/old.img\" \"$home/flash/card.img\"\n\
    losetup \"$device\" \"$home/flash/card.img\"\nbegin\n";

/// Whether ext4 keeps on this card what was flushed, with nothing of ours; the card is new then.
const KEEPS: &str = "mkfs.ext4 -q \"$device\"\nsync \"$device\"\n\
    mkdir \"$home/try\"\nmount \"$device\" \"$home/try\"\n\
    cp \"$home/boot_id\" \"$home/kept\"\n\
    dd if=\"$home/kept\" of=\"$home/try/kept\" conv=fsync status=none\n\
    xfs_io -x -c shutdown \"$home/flash\"\numount \"$home/try\"\n\
    end\ntake_out\ninsert\n\
    keeps=0\nmount \"$device\" \"$home/try\" || keeps=1\n\
    cmp \"$home/kept\" \"$home/try/kept\" || keeps=1\n\
    umount \"$home/try\" || true\ntake_out\n\
    mount -o loop,nouuid \"$home/flash.img\" \"$home/flash\"\n\
    size=$(stat -c %s \"$home/flash/card.img\")\n\
    truncate -s 0 \"$home/flash/card.img\"\ntruncate -s \"$size\" \"$home/flash/card.img\"\n\
    losetup \"$device\" \"$home/flash/card.img\"\nbegin\nexit $keeps\n";

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
        let flash = "cd \"$0\" && truncate -s 512M flash.img && mkfs.xfs -q flash.img && \
                     mkdir flash && mount -o loop flash.img flash";
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
        board.script("end", "end\ntake_out");
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
        let output = Command::new(self.path("keeps"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.path("keeps.log")).unwrap())
            .status();
        self.is_up();
        let keeps = output.unwrap().success();
        if !keeps {
            let said = std::fs::read_to_string(self.path("keeps.log")).unwrap_or_default();
            skip::skip(format!("no honest card can be made here: {}", said.trim()));
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
            assert!(begun.elapsed() < Duration::from_secs(120), "no server");
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
