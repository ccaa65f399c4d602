//! A guest whose root wants to change the machine that it runs on. Each way out is a script; what
//! it would change is looked at from outside.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Trial, command, one_at_a_time};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use whichfs_lab::Userland;
use whichfs_trial::Step;

/// Scripts for root in the guest. `$V` is a directory of the host, `$P` a process of it, `$S` a
/// socket of a service, `$T` a TCP port, `$M` an empty directory of the guest.
const WAYS_OUT: [&str; 54] = [
    // Files, as they are seen.
    "echo x > $V/new",
    "rm -rf $V/kept",
    "rm -f $V/kept/file",
    "echo x >> $V/kept/file",
    "chmod 4755 $V/kept/file",
    "chown 12345 $V/kept/file",
    "ln $V/kept/file $V/linked",
    "mv -f $V/kept $V/moved",
    "touch -d 2000-01-01 $V/kept/file",
    "mkdir $V/directory",
    "rmdir $V/empty",
    "ln -s / $V/link",
    "mknod $V/pipe p",
    "mknod $V/device c 1 3",
    "truncate -s 0 $V/kept/file",
    "setfattr -n user.x -v y $V/kept/file",
    "fallocate -l 4096 $V/kept/file",
    // The same after the mount flag is gone, or through another mount.
    "mount -o remount,rw /; echo x > $V/new",
    "mount -o remount,bind,rw /; echo x > $V/new",
    "for m in $(cut -d ' ' -f 2 /proc/mounts); do mount -o remount,rw $m; echo x > $m$V/new; done",
    "mount -t hostfs none $M -o $V; echo x > $M/new",
    "mount -t hostfs none $M -o /; echo x > $M$V/new",
    "mount -t hostfs none $M -o rw,/; echo x > $M$V/new",
    "mount -t hostfs -o ../../../../../.. none $M; echo x > $M$V/new",
    "mount -t hostfs / $M; echo x > $M$V/new",
    "mount -t hostfs none $M; mount -o remount,rw $M; echo x > $M$V/new",
    "mount --bind $V $M; mount -o remount,bind,rw $M; echo x > $M/new",
    "mount --rbind / $M; mount -o remount,bind,rw $M; echo x > $M$V/new",
    "unshare -m sh -c \"mount -o remount,rw /; echo x > $V/new\"",
    "unshare -Ur sh -c \"mount -o remount,rw /; echo x > $V/new\"",
    "umount -l /; echo x > $V/new",
    "mkdir -p $M/u $M/w; mount -t overlay o $M -o lowerdir=$V,upperdir=$V,workdir=$M/w; \
     echo x > $M/new",
    "chroot /proc/1/root sh -c \"echo x > $V/new\"",
    "echo x > /proc/1/cwd$V/new; echo x > /proc/1/root$V/new",
    "for f in /proc/[0-9]*/fd/*; do echo x > $f$V/new; done",
    // Devices of the host, by the guest's names and numbers.
    "for d in /dev/[a-z]*; do case $d in /dev/vd*|/dev/null|/dev/console|/dev/tty*) ;; *) \
     test -f $d || timeout 1 dd if=/dev/zero of=$d bs=512 count=1 conv=notrunc;; esac; done",
    "mknod $M/mem c 1 1; dd if=/dev/zero of=$M/mem bs=4096 count=1 seek=1",
    "mknod $M/loop b 7 0; dd if=/dev/zero of=$M/loop bs=512 count=1",
    "mknod $M/ubd b 98 0; dd if=/dev/zero of=$M/ubd bs=512 count=1",
    "mknod $M/dsp c 14 3; timeout 1 sh -c \"echo x > $M/dsp\"; mknod $M/mixer c 14 0; \
     timeout 1 sh -c \"echo x > $M/mixer\"",
    "for n in 1 2 3 64 65 66; do mknod $M/t$n c 4 $n; timeout 1 sh -c \"echo x > $M/t$n\"; done",
    // Programs that the host would start, modules, the management console.
    "echo \"|/usr/bin/touch $V/new\" > /proc/sys/kernel/core_pattern; ulimit -c unlimited; \
     sh -c 'kill -SEGV $$'",
    "echo /usr/bin/touch > /proc/sys/kernel/modprobe; mount -t no_such_filesystem none $M",
    "for m in /lib/modules/*/kernel/fs/*/*.ko*; do insmod $m && break; done; modprobe loop",
    "for d in /tmp/whichfs-guest-* /dev/shm/whichfs-guest-*; do \
     C=$d/u/mconsole perl -MIO::Socket::UNIX -e \
     'IO::Socket::UNIX->new(Type => 2, Peer => $ENV{C})->send(qq(config ubd0=$ENV{V}/new))'; done",
    "echo x > /proc/mconsole; echo x > /proc/exitcode; echo x > /proc/sysemu",
    // Other processes and services.
    "kill -9 $P",
    "perl -e 'for my $p (1 .. 40, $ENV{P}) { syscall(101, 16, $p, 0, 0); \
     syscall(101, 5, $p, 0, 0) }'",
    "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => $ENV{S})->print(qq(x))'",
    "perl -MIO::Socket::INET -e \
     'IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => $ENV{T})->print(qq(x))'",
    "perl -e 'syscall(425, 8, q(x) x 120)'",
    "perl -e 'syscall(304, 3, q(x) x 64, 2)'",
    "echo 77 > /proc/sys/kernel/printk_ratelimit_burst; hostname whichfs-was-here",
    "echo 1 > /proc/sys/vm/overcommit_memory; echo x > /sys/kernel/uevent_helper",
];

/// What of the host could be changed.
struct Victim {
    home: tempfile::TempDir,
    process: Child,
    service: UnixListener,
    port: std::net::TcpListener,
}

impl Victim {
    fn new() -> Victim {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        for directory in ["kept", "empty"] {
            fs::create_dir(home.path().join(directory)).unwrap();
        }
        fs::write(home.path().join("kept/file"), "what was there").unwrap();
        let service = UnixListener::bind(home.path().join("socket")).unwrap();
        service.set_nonblocking(true).unwrap();
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        port.set_nonblocking(true).unwrap();
        let process = Command::new("sleep").arg("1000").spawn().unwrap();
        Victim {
            home,
            process,
            service,
            port,
        }
    }

    /// `way` as a script that knows it, with the empty directory `own`.
    fn script(&self, way: &str, own: &str) -> String {
        let home = self.home.path().display();
        let (process, port) = (self.process.id(), self.port.local_addr().unwrap().port());
        format!("export V={home} P={process} S={home}/socket T={port} M={own}; mkdir -p $M; {way}")
    }

    /// All that could have been changed.
    fn state(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let mut places = vec![self.home.path().to_path_buf()];
        while let Some(place) = places.pop() {
            let meta = fs::symlink_metadata(&place).unwrap();
            let what = (meta.mode(), meta.uid(), meta.mtime(), meta.nlink());
            let text = match meta.is_file() {
                true => fs::read_to_string(&place).unwrap(),
                false => String::new(),
            };
            found.push(format!("{} {what:?} {text}", place.display()));
            if meta.is_dir() {
                let entries = fs::read_dir(&place).unwrap().flatten();
                places.extend(entries.map(|entry| entry.path()));
            }
        }
        found.sort();
        for setting in [
            "printk_ratelimit_burst",
            "hostname",
            "core_pattern",
            "modprobe",
        ] {
            let path = Path::new("/proc/sys/kernel").join(setting);
            found.push(fs::read_to_string(path).unwrap_or_default());
        }
        found.push(format!("{:?}", self.process.try_wait()));
        let called = |error: std::io::Error| error.kind() != ErrorKind::WouldBlock;
        let service = self.service.accept().map_or_else(called, |_| true);
        let port = self.port.accept().map_or_else(called, |_| true);
        found.push(format!("called: {service} {port}"));
        found
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `script` for at most ten seconds, whatever becomes of it.
fn attempt(script: &str) -> Step {
    let mut step = command(&["timeout", "10", "sh", "-c", script]);
    if let Step::Run { any_status, .. } = &mut step {
        *any_status = true;
    }
    step
}

#[test]
fn lab_attack_root_in_a_guest_that_sees_the_host_finds_no_way_out() {
    find_no_way_out(None);
}

#[test]
fn lab_attack_root_in_a_sealed_guest_finds_no_way_out() {
    if let Some(userland) = common::userland() {
        find_no_way_out(Some(&userland));
    }
}

fn find_no_way_out(userland: Option<&Userland>) {
    let _one = one_at_a_time();
    let mut victim = Victim::new();
    let before = victim.state();
    // Several guests: a way may break the guest that tries it.
    for (number, ways) in WAYS_OUT.chunks(9).enumerate() {
        let mut steps = vec![command(&[
            "sh",
            "-c",
            "mount -t tmpfs none /mnt && mkdir -p /mnt/test && echo ready",
        ])];
        steps.extend(
            ways.iter()
                .map(|way| attempt(&victim.script(way, "/mnt/own"))),
        );
        let seed = 700 + number as u64;
        let Some(mut trial) = Trial::new(seed, steps) else {
            return;
        };
        trial.userland = userland.cloned();
        let life = trial.run();
        let said = common::text_of(&life);
        assert!(said.contains("ready"), "{said} {:?}", life.console);
        assert_eq!(victim.state(), before, "one of {ways:#?}: {said}");
    }
}

/// Scripts for root in the guest that print what is in the file `$F` of the host.
const WAYS_IN: [&str; 8] = [
    "cat $F",
    "umount -l /; cat $F",
    "mount -t hostfs none $M; cat $M$F",
    "mount -t hostfs none $M -o /; cat $M$F",
    "for n in 0 1 2 3 4 5 6 7 8 9; do mount -t hostfs none $M -o /proc/self/fd/20$n/. && \
     cat $M/$F $M/file; umount $M; done",
    "mount -t hostfs none $M -o /proc/self/root/.; cat $M$F",
    "mount --rbind / $M; cat $M$F",
    "cat /proc/[0-9]*/root$F /proc/[0-9]*/cwd$F",
];

/// What guests read of the file `name` in `directory`, by all ways in.
fn read_by_guests(userland: Option<Userland>, file: &Path) -> Option<String> {
    let begin = "mount -t tmpfs none /mnt && mkdir -p /mnt/test /mnt/own";
    let mut steps = vec![command(&["sh", "-c", begin])];
    let file = file.display();
    steps.extend(WAYS_IN.map(|way| attempt(&format!("export F={file} M=/mnt/own; {way}"))));
    let mut trial = Trial::new(720, steps)?;
    trial.userland = userland;
    Some(common::text_of(&trial.run()))
}

#[test]
fn lab_a_sealed_guest_reads_no_file_of_the_host_and_another_no_secret() {
    let _one = one_at_a_time();
    let Some(userland) = common::userland() else {
        return;
    };
    const CONTENT: &str = "found-the-file-of-the-host";
    let open = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = open.path().join("file");
    fs::write(&file, CONTENT).unwrap();
    let Some(read) = read_by_guests(Some(userland), &file) else {
        return;
    };
    assert!(!read.contains(CONTENT), "{read}");
    // The planted fault: a guest that sees the host does read it, but no secret.
    let read = read_by_guests(None, &file).unwrap();
    assert!(read.contains(CONTENT), "{read}");
    let is_root = rustix::process::geteuid().is_root();
    if is_root && whichfs_lab::confinement().1.is_empty() {
        let secret = tempfile::tempdir_in("/root").unwrap();
        let file = secret.path().join("file");
        fs::write(&file, CONTENT).unwrap();
        let read = read_by_guests(None, &file).unwrap();
        assert!(!read.contains(CONTENT), "{read}");
    }
}

/// The planted fault: on the host itself the same scripts do change what they are after. Those that
/// would mount, or touch this machine's devices, are left out.
#[test]
fn attack_planted_fault_the_ways_to_files_lead_out_on_the_host() {
    let mut out = 0;
    let plain = |way: &&&str| {
        !["mount", "/dev/", "mknod $M", "/proc/", "insmod", "syscall("]
            .iter()
            .any(|word| way.contains(word))
    };
    for way in WAYS_OUT.iter().filter(plain) {
        let mut victim = Victim::new();
        let own = tempfile::tempdir().unwrap();
        let script = victim.script(way, own.path().to_str().unwrap());
        let before = victim.state();
        let mut command = Command::new("timeout");
        command
            .args(["10", "sh", "-c", &script])
            .stdin(Stdio::null());
        let _ = command.output().unwrap();
        out += usize::from(victim.state() != before);
    }
    assert!(out >= 17, "{out} led out");
}
