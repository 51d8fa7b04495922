//! redis: values by a pipe, calls by its benchmark; over TCP, and over a stream of `AF_UNIX`.

use std::fmt::Write;

use beeline_bench::programs::Job;
use beeline_bench::programs::servers::{self, Server};

use super::both::{Carried, LIMIT, after, both};

const CALLS: u32 = 20_000;

/// Values of 1 to 400 bytes.
fn commands() -> String {
    let mut text = String::new();
    for number in 0..20_000 {
        let value = format!("{number}-").repeat(1 + number % 70);
        let _ = writeln!(text, "SET key:{number} {value}\r");
    }
    text
}

#[test]
fn redis_has_every_value_and_every_call() {
    let carried = Carried::ByWindows { at_least: 8_000_000 };
    both(&["redis-server", "redis-cli", "redis-benchmark"], carried, |ground, seen| {
        let server = servers::redis(ground, None)?;
        let cli = |words: &str| Job::new("redis-cli").arg("-p").arg(server.port).words(words);
        // A client that only sends is ahead of its server, and the kernel carries a part: not counted.
        let piped = ground.run(cli("--pipe").input(ground.file("commands", commands())?), LIMIT)?;
        seen.says("pipe", piped.out.lines().last().unwrap_or_default());
        let benchmark = Job::new("redis-benchmark").arg("-p").arg(server.port).words("--csv -c 20 -n");
        let tests = seen.run(ground, benchmark.arg(CALLS).words("-t set,get,lpush,lrange_100"))?;
        let names: Vec<&str> = tests.lines().filter_map(|line| line.split(',').next()).collect();
        seen.says("benchmarks", names.join(" "));
        seen.says("values", ground.run(cli("DEBUG DIGEST"), LIMIT)?.out);
        seen.says("one value", seen_value(&ground.run(cli("GET key:19999"), LIMIT)?.out));
        let calls = ground.run(cli("INFO commandstats"), LIMIT)?.out;
        for command in ["set", "get", "lpush", "lrange"] {
            let line = after(&calls, &format!("cmdstat_{command}:"));
            let counts = line.split(',').filter(|field| field.contains("calls=")).collect::<Vec<_>>();
            seen.says(command, counts.join(" "));
        }
        server.end()?;
        Ok(())
    });
}

#[test]
fn redis_has_every_value_and_every_call_over_a_stream_of_unix() {
    let carried = Carried::ByWindows { at_least: 8_000_000 };
    both(&["redis-server", "redis-cli", "redis-benchmark"], carried, |ground, seen| {
        let name = ground.folder("named", None)?.join("redis.sock");
        let by_name = |program: &str| Job::new(program).env("BEELINE_SOCKETS_UNIX", "true");
        let server = Server::start(ground, |port| {
            let job =
                by_name("redis-server").words("--bind 127.0.0.1 --enable-debug-command yes --unixsocket");
            job.arg(name.display()).arg("--save").arg("").arg("--port").arg(port)
        })?;
        let cli = |words: &str| by_name("redis-cli").arg("-s").arg(name.display()).words(words);
        // A client that only sends is ahead of its server, and the kernel carries a part: not counted.
        let piped = ground.run(cli("--pipe").input(ground.file("commands", commands())?), LIMIT)?;
        seen.says("pipe", piped.out.lines().last().unwrap_or_default());
        let benchmark = by_name("redis-benchmark").arg("-s").arg(name.display()).words("--csv -c 20 -n");
        let tests = seen.run(ground, benchmark.arg(CALLS).words("-t set,get,lpush,lrange_100"))?;
        let names: Vec<&str> = tests.lines().filter_map(|line| line.split(',').next()).collect();
        seen.says("benchmarks", names.join(" "));
        seen.says("values", ground.run(cli("DEBUG DIGEST"), LIMIT)?.out);
        seen.says("one value", seen_value(&ground.run(cli("GET key:19999"), LIMIT)?.out));
        server.end()?;
        Ok(())
    });
}

fn seen_value(said: &str) -> String {
    assert!(said.starts_with("19999-19999-"), "{said}");
    said.to_owned()
}
