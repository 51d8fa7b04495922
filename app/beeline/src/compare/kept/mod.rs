//! A run as a folder of CSV files: written by `--csv DIR`, read back by `--read DIR`.
//!
//! Every number is written with all its digits, so what is read back gives the same tables, sentences and page. `run.csv` has the
//! machine, the command, the store kernels and how many rows each of the other files has, so a file that lost some is found.

mod read;
mod row;
mod write;

pub use read::read;

/// Columns of each file.
mod columns {
    pub const STORES: &[&str] = &[
        "kind",
        "placement",
        "policy",
        "receiver",
        "kernel",
        "message_bytes",
        "messages_per_s",
        "goodput_gbps",
        "spread",
    ];
    pub const LATENCY: &[&str] = &[
        "kind",
        "placement",
        "interface",
        "way",
        "kernel",
        "frame_bytes",
        "samples",
        "p50_ns",
        "p99_ns",
        "p999_ns",
        "spread",
    ];
    pub const RATE: &[&str] = &[
        "kind",
        "placement",
        "interface",
        "kernel",
        "frame_bytes",
        "burst",
        "frames",
        "frames_per_s",
        "goodput_gbps",
        "host_ns_per_frame",
        "spread",
    ];
    pub const FLOOR: &[&str] = &["kind", "part", "placement", "rounds", "bare_line_ns", "bare_copy_ns"];
    pub const CHECK: &[&str] = &["kind", "interface", "frames", "bytes", "result"];
    pub const ROUNDS: &[&str] =
        &["kind", "part", "placement", "round", "bare_line_ns", "what", "kernel", "bytes", "value", "unit"];
    pub const RUN: &[&str] = &["what", "name", "value"];
}

/// What every row of a figure begins with.
const MEASURED: &str = "measured";

/// Files of rows, in the order in which they are written; `run.csv` has the number of rows of each.
const STORES: &str = "stores.csv";
const LATENCY: &str = "latency.csv";
const RATE: &str = "rate.csv";
const TRANSMIT: &str = "transmit.csv";
const FLOOR: &str = "floor.csv";
const CHECK: &str = "check.csv";
const ROUNDS: &str = "rounds.csv";
const RUN: &str = "run.csv";
