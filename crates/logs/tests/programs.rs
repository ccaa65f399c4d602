//! Figures of dd, hdparm, iozone, fio and bonnie++ as people paste them: what they are of, and
//! why some are not the card's alone.

#![allow(clippy::unwrap_used)]

use whichfs_logs::{Problem, read};

const IOZONE: &str = include_str!("logs/iozone.txt");
const PROGRAMS: &str = include_str!("logs/programs.txt");

/// `Read` or `Write` of each rate.
fn directions(text: &str) -> Vec<String> {
    let first = |rate: String| rate.split(' ').next().unwrap().to_owned();
    summaries(text).into_iter().map(first).collect()
}

/// Rates of a log: operation, order, block, MB/s, and whether they have a caveat.
fn summaries(text: &str) -> Vec<String> {
    let runs = read("log", text).unwrap();
    let rates = runs.iter().flat_map(|run| &run.rates);
    let summary = |rate: &whichfs_logs::Rate| {
        let block = rate
            .block_bytes
            .map_or("?".to_owned(), |bytes| (bytes >> 10).to_string());
        let direct = if rate.direct { " direct" } else { "" };
        let caveat = rate
            .caveat
            .map_or(String::new(), |caveat| format!(": {:.20}", caveat.why));
        let (operation, order) = (rate.operation, rate.order);
        let rate = rate.bytes_per_s / 1e6;
        format!("{operation:?} {order:?} {block} KiB{direct} {rate:.2}{caveat}")
    };
    rates.map(summary).collect()
}

#[test]
fn fio_as_people_read_it_is_read_with_its_command() {
    let expected = [
        "Read Random 4 KiB direct 8.19",
        "Write Sequential 16 KiB direct 4.19",
        "Read Random 4 KiB direct 0.31: other requests at th",
        "Write Random 4 KiB direct 0.10: other requests at th",
        "Write Sequential 1024 KiB 94.37: written without a sy",
        "Write Sequential 4096 KiB direct 12.29",
        "Write Random 4 KiB direct 0.82",
        "Read Random 4 KiB direct 6.14",
        "Write Sequential ? KiB 6.29: of a filesystem (bon",
        "Read Sequential ? KiB 3.15: of a filesystem (bon",
    ];
    let mut found = summaries(PROGRAMS);
    found.sort_by_key(|rate| rate.contains("(bon"));
    assert_eq!(found, expected);
    assert_eq!(
        read("f", PROGRAMS).unwrap()[0].card.device.as_deref(),
        Some("/dev/mmcblk0")
    );
    // Without its command nobody knows whether it went through the page cache.
    let job = PROGRAMS
        .lines()
        .skip(2)
        .take(6)
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(
        summaries(&format!("{job}\n")),
        ["Read Random 4 KiB 8.19: fio without its comm"]
    );
    let two = format!("fio --bs=4k --direct=1 --numjobs=2 --rw=randread\n{job}\n{job}\n");
    assert!(
        summaries(&two)
            .iter()
            .all(|rate| rate.contains("other requests")),
        "{two}"
    );
    let words: Vec<&str> = PROGRAMS
        .lines()
        .filter(|line| line.contains(" speed "))
        .collect();
    let expected = [
        "Write Sequential 512 KiB direct 12.29",
        "Write Random 4 KiB direct 0.82",
    ];
    assert_eq!(summaries(&(words.join("\n") + "\n")), expected);
}

#[test]
fn a_rate_that_may_not_be_the_cards_says_why() {
    let out =
        "10+0 records in\n10+0 records out\n41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s\n";
    for (command, expected) in [
        (
            "dd if=/dev/zero of=f bs=4M",
            "Write Sequential 4096 KiB 4.00: written without a sy",
        ),
        (
            "dd if=/dev/zero of=f bs=4M conv=fsync",
            "Write Sequential 4096 KiB 4.00",
        ),
        (
            "dd if=/dev/zero of=/dev/sdb bs=4M",
            "Write Sequential 4096 KiB 4.00",
        ),
        (
            "dd if=/dev/urandom of=/dev/sdb",
            "Write Sequential 4096 KiB 4.00: the host makes rando",
        ),
        (
            "xzcat i.xz | dd of=/dev/sdb",
            "Write Sequential 4096 KiB 4.00: fed by another progr",
        ),
        (
            "dd if=/dev/zero of=f bs=4k oflag=dsync",
            "Write Sequential 4096 KiB 4.00: a sync after each wr",
        ),
        ("dd if=f of=/dev/zero", "Read Sequential 4096 KiB 4.00"),
        (
            "dd if=/dev/rdisk2 of=i.img bs=4m",
            "Read Sequential 4096 KiB direct 4.00",
        ),
    ] {
        assert_eq!(
            summaries(&format!("$ {command}\n{out}")),
            [expected],
            "{command}"
        );
    }
    for none in [
        "dd if=/dev/zero of=/dev/null",
        "dd if=/dev/zero of=/dev/shm/f",
    ] {
        assert!(read("log", format!("$ {none}\n{out}")).is_err(), "{none}");
    }
    let (to, from) = ("dd if=/dev/zero of=f conv=fsync", "dd if=f of=/dev/null");
    let again = summaries(&format!("$ {to}\n{out}$ {from}\n{out}"));
    assert!(again[1].ends_with("a file that was writ"), "{again:?}");
    let dropped = summaries(&format!(
        "$ {to}\n{out}# echo 3 > /proc/sys/vm/drop_caches\n$ {from}\n{out}"
    ));
    assert_eq!(dropped[1], "Read Sequential 4096 KiB 4.00");
    let buffered = IOZONE
        .replace("O_DIRECT feature enabled", "")
        .replace(" -I", "");
    let caveats = |text: &str| {
        summaries(text)
            .iter()
            .filter(|rate| rate.contains(": "))
            .count()
    };
    assert_eq!(
        [caveats(IOZONE), caveats(&buffered)],
        [0, 6],
        "reads of a file just written"
    );
}

#[test]
fn bonnie_tells_that_the_card_is_at_least_as_fast() {
    let rows = [
        "card    300M    48  99  6144  75  1782  37   124  99  3072  26 100.4   5",
        "card,300M,48,99,6144,75,1782,37,124,99,3072,26,100.4,5,16,233,99,6543,100,3690,89,235,99",
        "1.97,1.97,card,1,1408293244,300M,,48,99,6144,75,1782,37,124,99,3072,26,100.4,5,16,,,,,233",
        "card    300M    48k 99  6.0m  75  1782k 37   124k 99  3.0m  26 100.4   5",
    ];
    let expected = [
        "Write Sequential ? KiB 6.29: of a filesystem (bon",
        "Read Sequential ? KiB 3.15: of a filesystem (bon",
    ];
    for row in rows {
        assert_eq!(summaries(&format!("{row}\n")), expected, "{row}");
    }
    let unmeasured = "card 300M +++++ +++ 6144 75 1782 37 124 99 +++++ +++ 100.4 5\n";
    assert_eq!(summaries(unmeasured), expected[..1]);
    assert!(
        read("log", "a 3M 1 2 3 4 5 6 7 8 9 10 11\n").is_err(),
        "a field is missing"
    );
}

#[test]
fn results_below_a_list_of_commands_are_of_each_in_turn() {
    let (to, from) = (
        "dd if=/dev/zero of=test bs=1M",
        "dd if=test of=/dev/null bs=1M",
    );
    let out = "41943040 Bytes (42 MB) kopiert, 10,4858 s, 4,0 MB/s\n";
    let list = format!("{to}\n{from}\nThe results:\n");
    assert_eq!(
        directions(&format!("{list}{out}READ: {out}")),
        ["Write", "Read"]
    );
    // As many results as commands, or the last command right above its result.
    assert!(read("log", format!("{list}{out}")).is_err());
    assert_eq!(directions(&format!("$ {to}\n$ {from}\n{out}")), ["Read"]);
}

#[test]
fn rates_of_two_devices_are_not_mixed() {
    let of = |device: &str| {
        format!(
            "/dev/{device}:\n Timing buffered disk reads:  92 MB in  3.17 seconds =  29.02 MB/sec\n"
        )
    };
    let error = read("log", of("sda2") + &of("mmcblk0p2")).unwrap_err();
    assert_eq!((error.problem, error.line), (Problem::MixedCards, Some(3)));
    let one = read("log", of("mmcblk0p2") + &of("mmcblk0")).unwrap();
    assert_eq!(
        (one.len(), one[0].card.device.as_deref()),
        (1, Some("/dev/mmcblk0"))
    );
}
