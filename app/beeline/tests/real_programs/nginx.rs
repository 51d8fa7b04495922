//! nginx with several workers, asked by wrk and curl.

use std::path::PathBuf;

use beeline_bench::BenchError;
use beeline_bench::programs::servers::{self, Pages, Server};
use beeline_bench::programs::{Ground, Job};

use super::both::{Carried, LARGE, LIMIT, Seen, both};

/// A folder of pages: a small one, and a large one of bytes that are not the same anywhere.
pub fn pages(ground: &Ground) -> Result<PathBuf, BenchError> {
    let folder = ground.folder("pages", None)?;
    ground.file("pages/index.html", "a page\n".repeat(88))?;
    let large: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    ground.file("pages/large", large)?;
    Ok(folder)
}

/// Asks for a page for a second by 20 connections; says that no request failed, and gives how many there were.
pub fn wrk(ground: &Ground, seen: &mut Seen, port: u16, is_kept: bool) -> Result<u64, BenchError> {
    let header = if is_kept { "Accept: */*" } else { "Connection: close" };
    let job = Job::new("wrk").words("-t2 -c20 -d1s -H").arg(header).arg(format!("http://127.0.0.1:{port}/"));
    let said = seen.run(ground, job)?;
    let faults: Vec<&str> =
        said.lines().filter(|line| line.contains("errors") || line.contains("Non-2xx")).collect();
    seen.says("faults of requests", faults.join("; "));
    let requests = said.lines().find_map(|line| line.trim().split_once(" requests in "));
    Ok(requests.unwrap_or_else(|| panic!("{said}")).0.parse().unwrap())
}

/// The hash of what curl fetches so many times by one connection.
pub fn fetched(ground: &Ground, seen: &mut Seen, port: u16, times: u32) -> Result<(), BenchError> {
    let file = ground.path("fetched");
    let url = format!("http://127.0.0.1:{port}/large?[1-{times}]");
    let curl = Job::new("curl").words("-sS --fail").arg(url);
    let said =
        seen.run(ground, curl.words("-o").arg(file.display()).words("-w %{http_code},%{size_download};"))?;
    seen.says("transfers", said);
    let sum = ground.run(Job::new("sha256sum").input(file), LIMIT)?;
    seen.says("large page", sum.out);
    Ok(())
}

fn served(ground: &Ground, seen: &mut Seen, http: &str, is_kept: bool) -> Result<(), BenchError> {
    let root = pages(ground)?;
    let server = servers::nginx(ground, Pages { root: &root, workers: 3, user: "root", http }, None)?;
    let requests = wrk(ground, seen, server.port, is_kept)?;
    logged(ground, server, requests)
}

/// Ends nginx. Its log has as many requests that went well as its client counted, and for each connection one more at most.
fn logged(ground: &Ground, server: Server, requests: u64) -> Result<(), BenchError> {
    server.end()?;
    let log = std::fs::read_to_string(ground.path("nginx/access.log"))?;
    let (good, others): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| line.contains("\" 200 "));
    // What wrk leaves in the middle is told as 499 at most.
    let is_left = |line: &&&str| !line.contains("\" 499 ");
    assert_eq!(others.iter().filter(is_left).count(), 0, "{others:?}");
    assert!((requests..=requests + 1000).contains(&(good.len() as u64)), "{requests}, {}", good.len());
    Ok(())
}

const BY_SENDFILE_AND_CORK: &str = "sendfile on; tcp_nopush on; keepalive_requests 100000;";

#[test]
fn nginx_serves_kept_connections() {
    let carried = Carried::ByWindows { at_least: 1_000_000 };
    let http = "keepalive_requests 100000;";
    both(&["nginx", "wrk"], carried, |ground, seen| served(ground, seen, http, true));
}

/// As Debian configures it: the workers are another user's than their clients.
#[test]
fn nginx_serves_clients_of_another_user() {
    const WORKERS: &str = "www-data";
    let carried = Carried::ByWindows { at_least: 1_000_000 };
    both(&["nginx", "wrk"], carried, |ground, seen| {
        ground.share_with(WORKERS)?;
        let (root, http) = (pages(ground)?, "keepalive_requests 100000;");
        let pages = Pages { root: &root, workers: 3, user: WORKERS, http };
        let server = servers::nginx(ground, pages, None)?;
        let requests = wrk(ground, seen, server.port, true)?;
        logged(ground, server, requests)
    });
}

#[test]
fn nginx_serves_kept_connections_by_sendfile_and_cork() {
    let carried = Carried::ByWindows { at_least: 1_000_000 };
    both(&["nginx", "wrk"], carried, |ground, seen| served(ground, seen, BY_SENDFILE_AND_CORK, true));
}

#[test]
fn nginx_serves_connections_that_carry_one_request() {
    let because = "A connection that ends before it has carried 16 messages or 64 KiB, such as one for each request, stays with the kernel";
    let carried = Carried::ByKernel { because };
    both(&["nginx", "wrk"], carried, |ground, seen| served(ground, seen, "", false));
}

#[test]
fn nginx_serves_large_pages() {
    for http in ["", BY_SENDFILE_AND_CORK] {
        both(&["nginx", "curl"], LARGE, |ground, seen| {
            let root = pages(ground)?;
            let server = servers::nginx(ground, Pages { root: &root, workers: 3, user: "root", http }, None)?;
            fetched(ground, seen, server.port, 10)?;
            logged(ground, server, 10)
        });
    }
}
