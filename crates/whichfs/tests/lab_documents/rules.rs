//! How commands of the documents are made short, each in one line of a table. What they are about
//! stays: the lab, the filesystem, the workload, the way they are called.

/// What is done to the commands that begin so. Of several rules the first counts.
pub struct Rule {
    /// Begin of the command, after `sudo` and `whichfs`.
    pub begins: &'static str,
    /// What stands in place of what.
    pub change: &'static [(&'static str, &'static str)],
    /// Arguments behind it.
    pub add: &'static str,
    /// Whether exit status 1, "the answer is no", is an answer here.
    pub no: bool,
}

const fn add(begins: &'static str, add: &'static str) -> Rule {
    let (change, no): (&'static [_], bool) = (&[], false);
    Rule {
        begins,
        change,
        add,
        no,
    }
}

const fn change(
    begins: &'static str,
    change: &'static [(&'static str, &'static str)],
    add: &'static str,
) -> Rule {
    let no = false;
    Rule {
        begins,
        change,
        add,
        no,
    }
}

/// The same, where the answer may be no.
const fn or_no(rule: Rule) -> Rule {
    Rule { no: true, ..rule }
}

/// One candidate, one seed, no rest: of each kind of command.
const ONE: &str = "--fs ext4 --seeds 1";
const ONE_HERE: &str = "--for logger --fs ext4 --seeds 1 --settle 0";
const ONE_TRIAL: &str = "--fs vfat --seeds 1 --jobs 1 --budget 1s";

const MINE: &[(&str, &str)] = &[("pandora --quick", "./mine.toml")];

/// README.md and docs/*.md. The tutorials and the guides run as they stand.
pub const RULES: &[Rule] = &[
    // On a card.
    add(
        "choose --card /dev/sdX --write",
        "--for logger --fs ext4 --seeds 1",
    ),
    add(
        "choose --card /dev/sdX --destroy ID --confirm",
        "--for logger --fs ext4,ext3 --seeds 1 --settle 0",
    ),
    add("choose --on /dev/sdX --dry-run", "--fs ext4"),
    add("choose --on /dev/sdX", ONE_HERE),
    add(
        "choose --for logger --on /dev/sdX",
        "--fs ext4 --seeds 1 --settle 0",
    ),
    // The study itself takes minutes on a device.
    change(
        "study run pandora --quick --on /dev/sdX --dry-run",
        MINE,
        "",
    ),
    change(
        "study run pandora --quick --on /dev/sdX",
        MINE,
        "--settle 0",
    ),
    change(
        "study run pandora --quick --on /media/card --dry-run",
        MINE,
        "",
    ),
    change(
        "study run pandora --quick --on /media/card",
        MINE,
        "--settle 0",
    ),
    // In the lab.
    add("choose --for exchange", "--fs vfat --seeds 1"),
    add(
        "choose --for rootfs-readonly",
        "--fs squashfs-zstd --seeds 1",
    ),
    change(
        "choose --for fio",
        &[("--for fio", "--for ./fio.toml")],
        ONE,
    ),
    add("choose", ONE),
    change("card rank", &[("sandisk", "sandisk-ultra-16gb")], ONE),
    change(
        "study run pandora --budget",
        &[("10m", "1s --quick")],
        "--fs vfat --seeds 1 --jobs 1",
    ),
    add("study run bootlin --fs", "--quick --jobs 1 --budget 1s"),
    add(
        "study run bootlin",
        "--fs ext4 --seeds 1 --jobs 1 --budget 1s",
    ),
    change(
        "study run elc2015-power",
        &[("--cuts 40", "--cuts 1")],
        "--fs ext4",
    ),
    add("study run sync-mounts --fs", "--cuts 1"),
    add("study run sync-mounts", "--fs vfat --cuts 1"),
    add("study run pandora --dry-run", ""),
    add("study run pandora", ONE_TRIAL),
    add(
        "study run linuxplanet --tree",
        "--quick --fs vfat --seeds 1 --jobs 1 --budget 1s",
    ),
    add("study run linuxplanet", ONE_TRIAL),
    add("study run alignment", ONE_TRIAL),
    add("study run limits", ONE_TRIAL),
    change(
        "crash run --fs ext4,f2fs",
        &[("--cuts 100", "--cuts 1")],
        "--size 16M",
    ),
    change(
        "crash run --fs ext4,xfs,btrfs,f2fs",
        &[("--cuts 226", "--cuts 1")],
        "--size 16M",
    ),
    or_no(add(
        "crash run --fs ext4 --card emmc-8gb",
        "--cuts 2 --size 16M",
    )),
    add("crash run --fs ext4 --cuts 226 --only", "--size 16M"),
    or_no(add("crash run --fs vfat", "--cuts 2")),
    add("crash run --fs ext4 --script", "--cuts 2"),
    add("crash run --fs f2fs --script", ""),
    add("crash run --fs ext4", "--cuts 2 --size 16M"),
    or_no(add("crash replay", "")),
    add("crash minimise", "--budget 5"),
    change(
        "lab exec --card a1-32gb",
        &[("-s 256M -r 64M -n 4", "-s 16M -r 4M -n 1")],
        "",
    ),
    or_no(add("check sdcard.img --au 8M", "")),
    or_no(add("fs why", "")),
];

/// The rule of a line, and what is then run: with `places` (placeholder, what is there) filled in.
pub fn of<'a>(
    rules: &'a [Rule],
    line: &str,
    places: &[(&str, String)],
) -> (Option<&'a Rule>, String) {
    let call = line.strip_prefix("sudo ").unwrap_or(line);
    let call = call.strip_prefix("whichfs ").unwrap_or(call);
    let rule = rules.iter().find(|rule| call.starts_with(rule.begins));
    let mut text = line.to_owned();
    if let Some(rule) = rule {
        for (from, to) in rule.change {
            assert!(text.contains(from), "no '{from}' in '{line}'");
            text = text.replace(from, to);
        }
        text = format!("{text} {}", rule.add).trim_end().to_owned();
        if rule.no {
            text.push_str(" || test $? = 1");
        }
    }
    for (from, to) in places {
        text = text.replace(from, to);
    }
    (rule, text)
}

#[test]
fn the_first_rule_counts_and_changes_what_it_says() {
    let places = [("/srv/app.tar", "/x/app.tar".to_owned())];
    let run = |line| of(RULES, line, &places).1;
    assert_eq!(
        run("whichfs choose --command 'tar -xf /srv/app.tar'"),
        "whichfs choose --command 'tar -xf /x/app.tar' --fs ext4 --seeds 1"
    );
    assert_eq!(
        run("whichfs fs why zfs"),
        "whichfs fs why zfs || test $? = 1"
    );
    assert_eq!(
        run("whichfs crash run --fs ext4,f2fs --cuts 100"),
        "whichfs crash run --fs ext4,f2fs --cuts 1 --size 16M"
    );
    assert_eq!(run("whichfs doctor"), "whichfs doctor");
}
