//! JUnit's XML, which build servers read: a test case for each candidate or comparison.

use std::fmt::Write as _;
use whichfs_study::Verdict;

/// What became of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It passed.
    Passed,
    /// It was not run, and why.
    Skipped(String),
    /// It failed, and why.
    Failed(String),
}

/// A test case.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What it belongs to.
    pub class: String,
    /// Name of the test case, for people.
    pub name: String,
    /// Seconds it took; 0 where that means nothing.
    pub seconds: f64,
    /// What became of it.
    pub told: Told,
    /// More of it, as text.
    pub output: String,
}

/// A file with the suite `name`.
pub fn junit(name: &str, cases: &[Case]) -> String {
    junit_with(name, &[], cases)
}

/// A file with the suite `name` about `verdict`, whose properties say where its figures come from.
pub fn junit_of(name: &str, verdict: &Verdict) -> String {
    let mut properties = vec![("origin".to_owned(), verdict.origin.word().to_owned())];
    if let Some(fit) = verdict.fit_error {
        properties.push(("fit_error".to_owned(), fit.median.to_string()));
        properties.push(("fit_error_p90".to_owned(), fit.p90.to_string()));
    }
    junit_with(name, &properties, &verdict_cases(verdict))
}

/// A file with the suite `name` and what is to be known of all of it, as names and values.
pub fn junit_with(name: &str, properties: &[(String, String)], cases: &[Case]) -> String {
    let count = |wanted: fn(&Told) -> bool| cases.iter().filter(|case| wanted(&case.told)).count();
    let failed = count(|told| matches!(told, Told::Failed(_)));
    let skipped = count(|told| matches!(told, Told::Skipped(_)));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" \
         skipped=\"{skipped}\">",
        escaped(name),
        cases.len()
    );
    if !properties.is_empty() {
        out.push_str("<properties>\n");
        for (name, value) in properties {
            let (name, value) = (escaped(name), escaped(value));
            let _ = writeln!(out, "<property name=\"{name}\" value=\"{value}\"/>");
        }
        out.push_str("</properties>\n");
    }
    for case in cases {
        let (class, name) = (escaped(&case.class), escaped(&case.name));
        let _ = write!(
            out,
            "<testcase classname=\"{class}\" name=\"{name}\" time=\"{:.3}\">",
            case.seconds
        );
        let _ = match &case.told {
            Told::Passed => Ok(()),
            Told::Skipped(why) => write!(out, "<skipped message=\"{}\"/>", escaped(why)),
            Told::Failed(why) => write!(out, "<failure message=\"{}\"/>", escaped(why)),
        };
        if !case.output.is_empty() {
            let _ = write!(out, "<system-out>{}</system-out>", escaped(&case.output));
        }
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// A verdict's candidates: judged ones pass, those that gave no figures fail, those that a rule
/// excludes are skipped.
pub fn verdict_cases(verdict: &Verdict) -> Vec<Case> {
    let class = format!("{}.{}", verdict.card, verdict.needs);
    let ranked = verdict.ranking.iter().zip(crate::number::p_best(verdict));
    let ranked = ranked.map(|(one, p_best)| Case {
        class: class.clone(),
        name: one.candidate.clone(),
        seconds: 0.0,
        told: Told::Passed,
        output: format!(
            "score {:.2}, best with a probability of {p_best}. {}",
            one.score,
            one.reasons.join(". ")
        ),
    });
    let excluded = verdict.excluded.iter().map(|one| Case {
        class: class.clone(),
        name: one.candidate.clone(),
        seconds: 0.0,
        told: match one.rule.as_deref() {
            Some("failed" | "requires") => Told::Failed(one.why.clone()),
            _ => Told::Skipped(one.why.clone()),
        },
        output: one.source.clone().unwrap_or_default(),
    });
    ranked.chain(excluded).collect()
}

/// `text` as XML: markup escaped, characters that XML does not have replaced.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_a_case_and_hostile_names_stay_text() {
        let verdict = crate::fixture::verdict();
        let mut cases = verdict_cases(&verdict);
        cases[0].name = "<x>\u{1b}\"".into();
        cases[1].told = Told::Failed("a & b".into());
        let text = junit("choose", &cases);
        let all = verdict.ranking.len() + verdict.excluded.len();
        assert_eq!(text.matches("<testcase ").count(), all);
        assert!(text.contains(&format!("tests=\"{all}\" failures=\"1\" skipped=\"4\"")));
        assert!(text.contains("name=\"&lt;x&gt;\u{fffd}&quot;\""));
        assert!(text.contains("<failure message=\"a &amp; b\"/>"));
        assert!(!text.contains("<properties>"));
        let text = junit_of("choose", &verdict);
        assert!(text.contains("<property name=\"origin\" value=\"modelled\"/>"));
        assert!(text.contains("<property name=\"fit_error\" value=\"0.062\"/>"));
    }
}
