//! haproxy in front of nginx: each byte goes over two connections of three programs.

use beeline_bench::programs::servers::{self, Pages};

use super::both::{LARGE, both};
use super::nginx::{fetched, pages, wrk};

#[test]
fn haproxy_hands_on_what_nginx_serves() {
    both(&["haproxy", "nginx", "wrk", "curl"], LARGE, |ground, seen| {
        let root = pages(ground)?;
        let http = "keepalive_requests 100000;";
        let behind = servers::nginx(ground, Pages { root: &root, workers: 2, user: "root", http }, None)?;
        let front = servers::haproxy(ground, behind.port, None)?;
        fetched(ground, seen, front.port, 5)?;
        wrk(ground, seen, front.port, true)?;
        // Its connections to nginx, which no client counts.
        seen.counts(&front.end()?);
        behind.end()?;
        Ok(())
    });
}
