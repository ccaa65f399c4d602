//! A filesystem's process in user space, as trials run it.

use crate::error::Error;
use crate::prepare_error::PrepareError;
use whichfs_fs::{Helper, Recipe};
use whichfs_study::Variant;

/// Starts a helper and waits until it is there ($1), for half a minute at most. What it says on its
/// standard output later, nobody reads.
const BEGIN: &str = r#"
ready=$1
shift
"$@" > /dev/null || exit
tries=0
until $ready > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || { echo "$1: it does not begin" >&2; exit 1; }
    sleep 0.01
done
"#;

/// Asks a helper to end until nobody hears it any more, for half a minute at most.
const END: &str = r#"
"$@" || exit
tries=0
while "$@" > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { echo "$1: it does not end" >&2; exit 1; }
    sleep 0.05
done
"#;

/// Has trials run the helper of `recipe`, if `variant` asks for it.
///
/// # Errors
/// If there is none.
pub fn apply_variant(
    recipe: &mut Recipe,
    variant: &Variant,
    name: &str,
) -> Result<(), PrepareError> {
    let Some(arguments) = &variant.helper else {
        return Ok(());
    };
    let Some(helper) = &mut recipe.helper else {
        let which = "nilfs2 has nilfs_cleanerd, ntfs3 has ntfs-3g; name them in the variant's only";
        return Err(PrepareError::Failed(Error::input(format!(
            "{name}, {}: helper: {name} has no process in user space: {which}",
            variant.name
        ))));
    };
    helper.run_with(arguments);
    recipe.tools.extend(
        [helper.tool]
            .into_iter()
            .chain(helper.stop.first().copied()),
    );
    Ok(())
}

/// What trials of `recipe` run beside the filesystem on `device`, mounted on `target`.
pub fn of(recipe: &Recipe, device: &str, target: &str) -> Option<whichfs_workload::StepHelper> {
    let helper = recipe.helper.as_ref().filter(|helper| helper.runs)?;
    let on_device = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Recipe::on_device(&words, device)
    };
    let script = |text: &str| ["/bin/sh", "-c", text, "sh"].map(str::to_owned).to_vec();
    let start = placed(&helper.argv, recipe, device, target);
    Some(whichfs_workload::StepHelper {
        start: match helper.mounts {
            true => start,
            false => [
                script(BEGIN),
                vec![on_device(helper.ready).join(" ")],
                start,
            ]
            .concat(),
        },
        mounts: helper.mounts,
        stop: [script(END), on_device(helper.stop)].concat(),
    })
}

/// The command of the helper that trials of `recipe` run, for their identity.
pub fn command(recipe: &Recipe) -> Option<Vec<String>> {
    let helper = recipe.helper.as_ref().filter(|helper| helper.runs)?;
    Some(helper.argv.clone())
}

/// What figures of `candidate`, made by `recipe`, leave out for its helper: that it does not run,
/// or, if it mounts, what it computes where that is `free`.
pub fn caveat(candidate: &str, recipe: &Recipe, free: bool) -> Option<String> {
    let helper = recipe.helper.as_ref()?;
    match (helper.runs, helper.mounts) {
        (false, _) => whichfs_fs::never_reclaims(candidate).map(|care| {
            format!(
                "{candidate} was measured without {}, which it needs in use: {}",
                helper.tool, care.how
            )
        }),
        (true, true) => free.then(|| {
            format!(
                "what {} computes in user space is free in the lab: by it, it takes at least so \
                 long",
                helper.tool
            )
        }),
        (true, false) => None,
    }
}

fn placed(argv: &[String], recipe: &Recipe, device: &str, target: &str) -> Vec<String> {
    let words = Recipe::on_device(argv, device).into_iter();
    words
        .map(|word| {
            let word = word.replace(Helper::MOUNT, target);
            word.replace(Helper::OPTIONS, &recipe.mount_options)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_fs::{Geometry, Purpose};

    fn recipe(name: &str) -> Recipe {
        let geometry = Geometry {
            partition_bytes: 1 << 30,
            page_bytes: 8 << 10,
            write_unit_bytes: 32 << 10,
            au_bytes: 4 << 20,
            discard: false,
            flush: false,
        };
        let candidate = whichfs_fs::find(name).unwrap();
        candidate.recipe(&geometry, Purpose::User).unwrap()
    }

    fn asked(arguments: &[&str]) -> Variant {
        Variant {
            name: "x".into(),
            helper: Some(arguments.iter().map(|word| (*word).to_owned()).collect()),
            ..Variant::default()
        }
    }

    #[test]
    fn a_helper_runs_where_it_is_asked_for() {
        let mut nilfs2 = recipe("nilfs2");
        apply_variant(&mut nilfs2, &Variant::default(), "nilfs2").unwrap();
        assert!(of(&nilfs2, "/dev/vda", "/mnt").is_none());
        assert_eq!(
            caveat("nilfs2", &nilfs2, true).unwrap(),
            "nilfs2 was measured without nilfs_cleanerd, which it needs in use: without its \
             cleaner space is never reclaimed: figures hold for a card that is not filled, and \
             deleted space stays used"
        );
        apply_variant(&mut nilfs2, &asked(&["-p", "0"]), "nilfs2").unwrap();
        let helper = of(&nilfs2, "/dev/vda", "/mnt").unwrap();
        let started = helper.start[4..].join("|");
        let expected = "nilfs-clean --status /dev/vda|nilfs_cleanerd|-p|0|/dev/vda|/mnt";
        assert_eq!(started, expected);
        assert_eq!(helper.stop[4..].join(" "), "nilfs-clean --quit /dev/vda");
        assert!(!helper.mounts && caveat("nilfs2", &nilfs2, true).is_none());
        assert!(nilfs2.tools.contains(&"nilfs_cleanerd"));

        let mut ntfs3 = recipe("ntfs3");
        assert_eq!(
            caveat("ntfs3", &ntfs3, true),
            None,
            "the kernel's driver lacks nothing"
        );
        apply_variant(&mut ntfs3, &asked(&[]), "ntfs3").unwrap();
        let helper = of(&ntfs3, "/dev/vda", "/mnt").unwrap();
        assert_eq!(helper.start.join(" "), "ntfs-3g /dev/vda /mnt -o noatime");
        assert!(helper.mounts);
        assert!(
            caveat("ntfs3", &ntfs3, true)
                .unwrap()
                .contains("ntfs-3g computes")
        );
        assert_eq!(caveat("ntfs3", &ntfs3, false), None);
    }

    #[test]
    fn what_has_no_helper_says_so() {
        let refused = apply_variant(&mut recipe("ext4"), &asked(&[]), "ext4").unwrap_err();
        let PrepareError::Failed(failure) = refused else {
            panic!("{refused:?}");
        };
        assert!(
            failure.message.contains("no process in user space"),
            "{failure}"
        );
    }

    #[test]
    fn a_helper_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let run = |helper: &str| {
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", BEGIN, "sh", "test -e up", "/bin/sh", "-c", helper]);
            command.current_dir(directory.path()).output().unwrap()
        };
        assert_eq!(run("exit 3").status.code(), Some(3), "why it did not begin");
        let late = "echo 1; (sleep 0.2; touch up; echo 2) & exit 0";
        let ended = run(late);
        assert!(
            ended.status.success() && ended.stdout.is_empty(),
            "{ended:?}"
        );
        assert!(directory.path().join("up").exists());
    }

    #[test]
    fn a_helper_is_asked_until_nobody_hears() {
        let directory = tempfile::tempdir().unwrap();
        let run = |script: &str| {
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", END, "sh", "/bin/sh", "-c", script]);
            command.current_dir(directory.path()).output().unwrap()
        };
        let twice = "[ ! -e b ] && if [ -e a ]; then touch b; else touch a; fi";
        assert!(run(twice).status.success());
        assert!(directory.path().join("b").exists(), "it was asked again");
        assert!(
            !run("exit 3").status.success(),
            "nobody is there to begin with"
        );
    }
}
