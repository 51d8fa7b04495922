//! Programs of Debian as users start them, natively and with both ends by `beeline run`: what they say is the same, and at least 95 % of the bytes
//! went by windows wherever the fast path should be taken.
//!
//! `cargo xtask real-programs` installs them. Where one is missing its test fails and says so.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod real_programs {
    mod both;
    mod curl;
    mod haproxy;
    mod iperf3;
    mod java;
    mod memcached;
    mod nginx;
    mod node;
    mod postgres;
    mod python;
    mod redis;
    mod sockperf;
}
