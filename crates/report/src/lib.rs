//! Rows to HTML, Markdown and tables. Pure.
//!
//! [`terminal`] writes a verdict for a terminal of a given width, [`html`] one
//! self-contained page, [`csv`], [`json`] and [`markdown`] the rows behind it. All are
//! functions of their arguments: the same rows give the same bytes.

mod chart;
mod crash;
mod excluded;
mod number;
mod page;
mod rows;
mod terminal;
mod text;

pub use crash::{
    ConditionCount, Count, CrashGroup, CrashLine, CrashPage, CrashRow, Promises, WorstCase,
    crash_csv, crash_html, milliseconds, ratio,
};
pub use page::{Item, Page, html};
pub use rows::{csv, json, markdown};
pub use terminal::{Look, terminal};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
