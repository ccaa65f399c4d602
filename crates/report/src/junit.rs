//! JUnit's XML, which build servers read: a test case for each candidate or comparison.

use crate::crash::CrashPage;
use crate::documents::crash::judged::{JudgedSeries, words};
use crate::page::Page;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::time::Duration;
use whichfs_crash::Harm;
use whichfs_decide::Verdict;

/// What became of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseResult {
    /// The test case is a success.
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
    pub told: CaseResult,
    /// More of it, as text.
    pub output: String,
}

/// A file with the suite `name`.
pub fn junit(name: &str, cases: &[Case]) -> String {
    junit_with(name, &[], cases)
}

/// A file with the suite `name` about the verdict of `page`, whose properties say when it was made
/// and what with. A test case takes the `seconds` of its candidate's trials, in virtual time where
/// they are modelled.
pub fn junit_of(name: &str, page: &Page, seconds: &BTreeMap<&str, f64>) -> String {
    let verdict = &page.verdict;
    let mut properties = page.run.items();
    properties.push(("origin".to_owned(), verdict.origin.word().to_owned()));
    if let Some(fit) = verdict.fit_error {
        properties.push(("fit_error".to_owned(), fit.median.to_string()));
        properties.push(("fit_error_p90".to_owned(), fit.p90.to_string()));
    }
    let items = page.environment.iter();
    properties.extend(items.map(|item| (item.label.clone(), item.value.clone())));
    let mut cases = verdict_cases(verdict);
    for case in &mut cases {
        case.seconds = seconds.get(case.name.as_str()).copied().unwrap_or(0.0);
    }
    junit_with(name, &properties, &cases)
}

/// A file with the suite `name` and what is to be known of all of it, as names and values.
pub fn junit_with(name: &str, properties: &[(String, String)], cases: &[Case]) -> String {
    let mut suite = TestSuite::new(name);
    for (name, value) in properties {
        suite.add_property(Property::new(name.as_str(), value.as_str()));
    }
    for case in cases {
        let mut status = match &case.told {
            CaseResult::Passed => TestCaseStatus::success(),
            CaseResult::Skipped(_) => TestCaseStatus::skipped(),
            CaseResult::Failed(_) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        };
        if let CaseResult::Skipped(why) | CaseResult::Failed(why) = &case.told {
            status.set_message(why.as_str());
        }
        let mut test = TestCase::new(case.name.as_str(), status);
        test.set_classname(case.class.as_str());
        // A negative or endless time is none.
        test.set_time(Duration::try_from_secs_f64(case.seconds).unwrap_or_default());
        if !case.output.is_empty() {
            test.set_system_out(case.output.as_str());
        }
        suite.add_test_case(test);
    }
    let all = cases.iter().map(|case| case.seconds.max(0.0)).sum::<f64>();
    let mut report = Report::new(name);
    if let Some(all) = Duration::try_from_secs_f64(all)
        .ok()
        .filter(|all| !all.is_zero())
    {
        suite.set_time(all);
        report.set_time(all);
    }
    report.add_test_suite(suite);
    let text = report.to_string();
    let text =
        text.unwrap_or_else(|error| unreachable!("writing to a String cannot fail: {error}"));
    whichfs_units::printable_lines(&text)
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
        told: CaseResult::Passed,
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
            Some("failed" | "requires") => CaseResult::Failed(one.why.clone()),
            _ => CaseResult::Skipped(one.why.clone()),
        },
        output: one.source.clone().unwrap_or_default(),
    });
    ranked.chain(excluded).collect()
}

/// A case for each series that was judged; of a page whose series nobody judges, one for each row,
/// which fails if a promise was broken. It takes the seconds of the run that was cut.
pub(crate) fn crash_cases(page: &CrashPage) -> Vec<Case> {
    let class = |fs: &str| format!("{}.{fs}", page.title);
    let judged = page.judged.iter().map(|one| Case {
        class: class(&one.fs),
        name: format!("{} cuts of {}", one.cuts, one.fs),
        seconds: one.seconds,
        told: match one.failed.is_empty() {
            true => CaseResult::Passed,
            false => CaseResult::Failed(one.failed.join("; ")),
        },
        output: harms_told(one),
    });
    let unjudged = page.groups.iter().flat_map(|group| {
        let own = group.rows.iter();
        own.map(move |row| (group, row))
    });
    let unjudged = unjudged.filter(|_| page.judged.is_empty());
    let rows = unjudged.map(|(group, row)| Case {
        class: class(&row.fs),
        name: format!("{}, {}, {}", row.name(), group.faults, group.workload),
        seconds: row.virtual_s,
        told: match row.broken.count {
            0 => CaseResult::Passed,
            broken => CaseResult::Failed(format!("broke a promise {broken} of {}", row.cuts)),
        },
        output: row.met.clone(),
    });
    judged.chain(rows).collect()
}

/// Each harm with its count and interval, a line each.
fn harms_told(one: &JudgedSeries) -> String {
    let harms = Harm::ALL.into_iter().zip(&one.harms);
    let lines = harms.map(|(harm, share)| format!("{}: {share}", words(harm)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_a_case_and_hostile_names_stay_text() {
        let verdict = crate::fixture::verdict();
        let mut cases = verdict_cases(&verdict);
        cases[0].name = "<x>\u{1b}\"".into();
        cases[1].told = CaseResult::Failed("a & b".into());
        let text = junit("choose", &cases);
        let all = verdict.ranking.len() + verdict.excluded.len();
        assert_eq!(text.matches("<testcase ").count(), all);
        assert_eq!(text.matches("<skipped ").count(), 4, "{text}");
        assert!(text.contains(&format!("tests=\"{all}\"")), "{text}");
        assert!(text.contains("failures=\"1\""), "{text}");
        assert!(text.contains("name=\"&lt;x&gt;"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains("<failure message=\"a &amp; b\""), "{text}");
        assert!(!text.contains("<properties>"));
        let page = crate::fixture::page();
        let (first, seconds) = (&page.verdict.ranking[0].candidate, 12.5);
        let text = junit_of(
            "choose",
            &page,
            &BTreeMap::from([(first.as_str(), seconds)]),
        );
        assert!(text.contains(&format!("name=\"{first}\"")), "{text}");
        assert_eq!(
            text.matches("time=\"12.500\"").count(),
            3,
            "case, suite, file: {text}"
        );
        assert!(text.contains("<property name=\"origin\" value=\"modelled\"/>"));
        assert!(text.contains("<property name=\"fit_error\" value=\"0.062\"/>"));
    }
}
