//! Workloads: seeded operation streams and their metrics. No I/O.
