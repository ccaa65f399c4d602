//! Rows to HTML, Markdown and tables. Pure.
