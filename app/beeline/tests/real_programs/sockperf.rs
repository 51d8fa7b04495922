//! sockperf: messages to and fro, none lost, doubled or out of order.

use beeline_bench::programs::{Job, servers};

use super::both::{Carried, after, both};

#[test]
fn sockperf_misses_no_message() {
    let carried = Carried::ByWindows { at_least: 50_000 };
    both(&["sockperf"], carried, |ground, seen| {
        let server = servers::sockperf(ground, None)?;
        let client = Job::new("sockperf").words("ping-pong --tcp -i 127.0.0.1 -m 64 -t 1 --mps 2000 -p");
        let said = seen.run(ground, client.arg(server.port))?;
        seen.says("messages", after(&said, "sockperf: # dropped messages"));
        server.end()?;
        Ok(())
    });
}
