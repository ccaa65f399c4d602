//! Does the operations of a trial: PID 1 in the lab.
