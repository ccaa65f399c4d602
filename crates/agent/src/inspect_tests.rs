//! Trees that are told whole, with what cannot be read.
#![allow(clippy::unwrap_used)]
use super::*;
use rustix::fs::CWD;
use std::fs;

#[derive(Default)]
struct Heard(Vec<Event>);

impl Sink for Heard {
    fn send(&mut self, event: &Event) -> Result<(), AgentError> {
        self.0.push(event.clone());
        Ok(())
    }
}

fn entries(heard: &Heard) -> Vec<DirectoryEntry> {
    let found = heard.0.iter().filter_map(|event| match event {
        Event::Found { entries } => Some(entries.clone()),
        _ => None,
    });
    found.flatten().collect()
}

#[test]
fn everything_is_told_with_its_content() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/a"), b"hello").unwrap();
    std::os::unix::fs::symlink("d/a", dir.path().join("l")).unwrap();
    let mut heard = Heard::default();
    inspect(dir.path(), &[], &mut Room::default(), &mut heard).unwrap();
    let found = entries(&heard);
    let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(paths, ["d", "d/a", "l"]);
    let digest = content_digest(b"hello");
    assert_eq!(found[1].node, Node::File { size: 5, digest });
    let target = "d/a".to_owned();
    assert_eq!(found[2].node, Node::Symlink { target });
}

/// The sectors of `path` as they were told.
fn sectors(heard: &Heard, path: &str) -> Vec<u32> {
    let mut told = Vec::new();
    for event in &heard.0 {
        match event {
            Event::Sectors {
                path: of,
                first,
                digests,
            } if of == path => {
                assert_eq!(*first, told.len() as u64);
                told.extend(digests);
            }
            Event::Found { entries } => {
                let of = entries.iter().filter(|found| found.path == path);
                of.for_each(|found| told.extend(&found.sectors));
            }
            _ => {}
        }
    }
    told
}

#[test]
fn sectors_are_told_where_they_are_wanted() {
    let dir = tempfile::tempdir().unwrap();
    // With an entry; in events of their own; the same with a last event that is full.
    for (name, bytes) in [("a", 300_000_u32), ("b", 5 << 20), ("c", 8 << 20)] {
        let content: Vec<u8> = (0..bytes).map(|n| (n / 512) as u8).collect();
        fs::write(dir.path().join(name), &content).unwrap();
        let mut heard = Heard::default();
        inspect(
            dir.path(),
            &[name.to_owned()],
            &mut Room::default(),
            &mut heard,
        )
        .unwrap();
        let right: Vec<u32> = content.chunks(512).map(sector_digest).collect();
        assert!(sectors(&heard, name) == right, "{name}");
        assert!(sectors(&heard, "other").is_empty());
    }
    let mut heard = Heard::default();
    inspect(dir.path(), &[], &mut Room::default(), &mut heard).unwrap();
    assert!(sectors(&heard, "a").is_empty());
}

#[test]
fn sectors_of_zeros_are_told_where_no_digests_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut content = vec![7_u8; 400_100];
    content[..512].fill(0);
    // Over the end of the first read.
    content[65_024..66_048].fill(0);
    // Not a whole sector; then what the file has of its last.
    content[200_000..200_300].fill(0);
    content[399_872..].fill(0);
    fs::write(dir.path().join("a"), &content).unwrap();
    let zeros = |wanted: &[String]| {
        let mut heard = Heard::default();
        inspect(dir.path(), wanted, &mut Room::default(), &mut heard).unwrap();
        entries(&heard)[0].zeros.clone()
    };
    assert_eq!(zeros(&[]), [(0, 1), (127, 2), (781, 1)]);
    assert_eq!(zeros(&["a".to_owned()]), []);
    // Every other sector: no more than are told.
    for sector in content.chunks_mut(1024) {
        sector[..512].fill(0);
    }
    fs::write(dir.path().join("a"), &content).unwrap();
    assert_eq!(zeros(&[]).len(), ZERO_RUNS);
}

#[test]
fn a_large_tree_is_told_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut right = BTreeSet::new();
    for d in 0..40 {
        let sub = format!("{}d{d}", "up/".repeat(d / 10));
        fs::create_dir_all(dir.path().join(&sub)).unwrap();
        for f in 0..d * 7 {
            let path = format!("{sub}/file with a long name {f}");
            fs::write(dir.path().join(&path), vec![f as u8; d * 5_000]).unwrap();
            right.insert((path, content_digest(&vec![f as u8; d * 5_000])));
        }
    }
    let many = dir.path().join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..3_000 {
        let target = format!("{n:060}");
        std::os::unix::fs::symlink(target, many.join(format!("{n:060}"))).unwrap();
    }
    rustix::fs::mknodat(
        CWD,
        many.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let mut heard = Heard::default();
    inspect(dir.path(), &[], &mut Room::default(), &mut heard).unwrap();
    let found = entries(&heard);
    let names: BTreeSet<&str> = found.iter().map(|found| found.path.as_str()).collect();
    assert_eq!(names.len(), found.len(), "each once");
    let files = found.iter().filter_map(|found| match &found.node {
        Node::File { digest, .. } => Some((found.path.clone(), *digest)),
        _ => None,
    });
    assert!(files.collect::<BTreeSet<_>>() == right);
    let links = found.iter().filter(
        |found| matches!(&found.node, Node::Symlink { target } if found.path.ends_with(target)),
    );
    assert_eq!(links.count(), 3_000);
    let others = found.iter().filter(|found| found.node == Node::Other);
    assert_eq!(others.count(), 1);
    let dirs = found.iter().filter(|found| found.node == Node::Directory);
    assert_eq!(dirs.count(), 40 + 3 + 1);
}

#[test]
fn a_directory_that_is_gone_is_told() {
    let mut heard = Heard::default();
    inspect(
        Path::new("/nowhere/at/all"),
        &[],
        &mut Room::default(),
        &mut heard,
    )
    .unwrap();
    let found = entries(&heard);
    assert!(
        matches!(found[0].node, Node::Unreadable { .. }),
        "{found:?}"
    );
}
