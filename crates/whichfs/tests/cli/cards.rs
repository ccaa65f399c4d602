//! Cards: lists, curves, fits, life, and what the probe finds on modelled ones.

use super::sandbox::Sandbox;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_list_is_searched_and_sorted() {
    let sandbox = Sandbox::new();
    let found = sandbox.run(&["card", "list", "emmc", "--json"]);
    let found = json(found.succeeds());
    let names: Vec<&str> = found
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| name.contains("emmc")),
        "{names:?}"
    );
    let sorted = sandbox.run(&["card", "list", "--sort", "write", "--json"]);
    let sorted = json(sorted.succeeds());
    let rates: Vec<u64> = sorted
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|card| card["write_bytes_per_s"].as_u64())
        .collect();
    assert!(rates.windows(2).all(|two| two[0] >= two[1]), "{rates:?}");
    sandbox
        .run(&["card", "list", "no such thing"])
        .fails(1, &["card list"]);
}

#[test]
fn curves_of_a_card_are_fitted_and_the_profile_is_a_card() {
    let sandbox = Sandbox::new();
    let curves = sandbox.run(&["card", "curves", "class4-4gb", "--json"]);
    let document = json(curves.succeeds());
    let of = &document["class4-4gb"];
    for part in ["al", "lin", "rnd", "fat"] {
        assert!(
            of[part].as_object().is_some_and(|part| !part.is_empty()),
            "{part}"
        );
    }
    sandbox.file("curves.json", curves.succeeds());
    let fitted = sandbox.run(&[
        "card",
        "fit",
        "curves.json",
        "--block-sizes",
        "4096,65536,1048576",
        "--out",
        "fit.toml",
        "--plot",
        "fit.svg",
        "--json",
    ]);
    let fitted = json(fitted.succeeds());
    assert_eq!(fitted["family"], "log-block");
    assert!(
        fitted["unfitted"]["median"].as_f64().unwrap() < 0.08,
        "{fitted}"
    );
    assert!(
        std::fs::read_to_string(sandbox.path().join("fit.svg"))
            .unwrap()
            .contains("<svg")
    );
    let shown = sandbox.run(&["card", "show", "./fit.toml", "--json"]);
    assert_eq!(json(shown.succeeds())["family"], "log-block");
}

#[test]
fn text_of_flashbench_goes_round_and_is_interpreted() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["card", "curves", "class4-4gb", "--flashbench"]);
    sandbox.file("flashbench.log", text.succeeds());
    let found = sandbox.run(&["probe", "--from", "flashbench.log", "--json"]);
    let found = json(found.succeeds());
    assert_eq!(found["au_bytes"]["value"], 4 << 20);
    assert_eq!(found["open_aus_linear"]["value"], 3);
    let probed = sandbox.run(&["probe", "class4-4gb", "--write=destroy", "--json"]);
    let probed = json(probed.succeeds());
    let rate = |of: &Value| of["write_mb_s"]["value"].as_f64().unwrap();
    assert!((rate(&found) / rate(&probed) - 1.0).abs() < 0.02, "{found}");
    assert!(found["read_mb_s"]["value"].is_null() && found["read_mb_s"]["reason"].is_string());
}

#[test]
fn logs_of_one_card_are_fitted_together() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["card", "curves", "class4-4gb", "--json"]);
    let curves = json(text.succeeds());
    let mut parts = curves["class4-4gb"].clone();
    let parts = parts.as_object_mut().unwrap();
    for test in ["al", "lin", "rnd"] {
        let part = serde_json::json!({ format!("part {test}"): { test: parts[test] } });
        sandbox.file(&format!("{test}.json"), part.to_string());
    }
    sandbox.file("all.json", curves.to_string());
    let profile = |files: &[&str]| {
        let arguments = [&["card", "fit", "--json"], files].concat();
        let fitted = sandbox.run(&arguments);
        assert!(fitted.code <= 1, "{}", fitted.stderr);
        json(&fitted.stdout)["families"].clone()
    };
    let together = profile(&["al.json", "lin.json", "rnd.json"]);
    assert_eq!(together, profile(&["lin.json", "al.json", "rnd.json"]));
    // Also where only one of the files has the run.
    profile(&["al.json", "all.json", "--run", "class4-4gb"]);
    sandbox.run(&["card", "fit", "all.json", "lin.json"]).fails(
        2,
        &["both have flashbench -O", "all.json", "choose one run"],
    );
    sandbox
        .run(&["card", "fit", "al.json", "lin.json", "--run", "x"])
        .fails(2, &["al.json", "x"]);
}

#[test]
fn bad_logs_are_refused_with_file_and_line() {
    let sandbox = Sandbox::new();
    sandbox.file("foreign.log", "hello\nworld\n");
    sandbox.file("cut.log", "align 4194304\tpre 645µs\ton 1.0");
    sandbox.file("empty.log", "");
    sandbox
        .run(&["card", "fit", "foreign.log"])
        .fails(2, &["foreign.log:1", "flashbench"]);
    sandbox
        .run(&["card", "fit", "cut.log"])
        .fails(2, &["cut.log:1"]);
    sandbox
        .run(&["card", "fit", "empty.log"])
        .fails(2, &["empty.log"]);
    sandbox
        .run(&["card", "fit", "none.log"])
        .fails(2, &["none.log", "No such file"]);
    sandbox
        .run(&["probe", "--from", "foreign.log"])
        .fails(2, &["foreign.log:1"]);
}

#[test]
fn a_probe_reads_only_unless_told_and_its_profile_is_a_card() {
    let sandbox = Sandbox::new();
    let read = json(sandbox.run(&["probe", "a1-32gb", "--json"]).succeeds());
    assert_eq!(read["bytes_written"], 0);
    assert_eq!(read["au_bytes"]["value"], 4 << 20);
    assert!(read["open_aus_linear"]["value"].is_null());
    let write = sandbox.run(&[
        "probe",
        "class4-4gb",
        "--write=destroy",
        "--save",
        "probed.toml",
        "--plot",
        "p.svg",
        "--json",
    ]);
    let write = json(write.succeeds());
    assert_eq!(write["open_aus_linear"]["value"], 3);
    assert!(write["bytes_written"].as_u64().unwrap() > 0);
    let show = sandbox.run(&["card", "show", "./probed.toml", "--json"]);
    // The first use of the file infers the cards; a note says so.
    assert!(show.code == 0 && show.stderr.contains("inferring"));
    assert_eq!(json(&show.stdout)["basis"], "inferred");
    assert!(
        std::fs::read_to_string(sandbox.path().join("p.svg"))
            .unwrap()
            .contains("<svg")
    );
}

#[test]
fn a_probe_is_kept_and_goes_on() {
    let sandbox = Sandbox::new();
    let arguments = [
        "probe",
        "class4-4gb",
        "--write=destroy",
        "--resume",
        "state.json",
        "--json",
    ];
    let first = json(sandbox.run(&arguments).succeeds());
    let again = json(sandbox.run(&arguments).succeeds());
    assert_eq!(first["au_bytes"], again["au_bytes"]);
    // The same file with another card, or another state of the same.
    for other in [
        &["probe", "class4-4gb", "--seed", "2"][..],
        &["probe", "a1-32gb"],
    ] {
        sandbox
            .run(&[other, &["--resume", "state.json"]].concat())
            .fails(2, &["state.json", "another device"]);
    }
    sandbox.file("state.json", "{");
    sandbox
        .run(&arguments)
        .fails(2, &["state.json", "remove it"]);
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    for flag in ["--save", "--plot", "--resume"] {
        sandbox
            .run(&["probe", "a1-32gb", flag, "no/such/x"])
            .fails(2, &["no/such/x"]);
    }
    // A drawing may go to what is no file.
    sandbox
        .run(&["probe", "a1-32gb", "--plot", "/dev/null", "--json"])
        .succeeds();
}

#[test]
fn a_list_of_nothing_is_a_list() {
    let listed = Sandbox::new().run(&["card", "list", "nothing", "--json"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (1, "[]\n"));
}

#[test]
fn what_cannot_be_probed_is_refused_with_the_remedy() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["probe", "/dev/null"])
        .fails(2, &["character device", "lsblk"]);
    sandbox.run(&["probe", "/tmp"]).fails(2, &["directory"]);
    sandbox
        .run(&["probe", "/dev/none"])
        .fails(2, &["No such file"]);
    sandbox.run(&["probe", "a1-32g"]).fails(2, &["a1-32gb"]);
    sandbox
        .run(&["probe", "a1-32gb", "--budget", "lots"])
        .fails(2, &["640M"]);
    sandbox
        .run(&["probe", "a1-32gb", "--for", "databse"])
        .fails(2, &["database"]);
    sandbox
        .run(&["probe", "--from", "some.log", "--for", "database"])
        .fails(2, &["--for"]);
    sandbox.run(&["probe"]).fails(2, &[]);
}

#[test]
fn a_life_is_a_range() {
    let sandbox = Sandbox::new();
    let life = sandbox.run(&["card", "life", "class4-4gb", "--per-day", "200M", "--json"]);
    let life = json(life.succeeds());
    let years = ["p10_years", "p25_years", "p75_years", "p90_years"]
        .map(|key| life["life"][key].as_f64().unwrap());
    assert!(years.windows(2).all(|two| two[0] < two[1]), "{years:?}");
    // Ends of two ranges, and nothing in between that could be taken for the answer.
    assert_eq!(life["life"].as_object().unwrap().len(), 4, "{life}");
    assert_eq!(life["cells"], "planar TLC");
    sandbox
        .run(&["card", "life", "class4-4gb", "--per-day", "much"])
        .fails(2, &["200M"]);
}

#[test]
fn what_is_no_card_says_nothing_of_itself() {
    let sandbox = Sandbox::new();
    let image = sandbox.file("card.img", "");
    let identify = |device: &str| sandbox.run(&["card", "identify", device]);
    identify(image.to_str().unwrap()).fails(2, &["is a file", "lsblk"]);
    identify("/dev/no-such-disk").fails(2, &["/dev/no-such-disk", "lsblk"]);
    identify("/dev/null").fails(2, &["character device", "lsblk"]);
    let arguments = ["card", "identify", "/dev/null", "--per-day", "2G"];
    sandbox.run(&arguments).fails(2, &["--card"]);
}
