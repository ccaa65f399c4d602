//! Devices with faults and devices with contents.
