//! Finished trials in SQLite: the only SQL.
