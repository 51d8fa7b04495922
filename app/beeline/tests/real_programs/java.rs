//! A virtual machine of Java: an echo, by a selector at one end and by threads at the other.

use beeline_bench::programs::Job;
use beeline_bench::programs::servers::Server;

use super::both::{Carried, LIMIT, both};

#[test]
fn java_gets_every_byte_back() {
    let carried = Carried::ByWindows { at_least: 10_000_000 };
    both(&["java", "javac"], carried, |ground, seen| {
        let source = ground.file("Echo.java", include_str!("Echo.java"))?;
        let folder = source.parent().unwrap().display().to_string();
        ground.run(Job::new("javac").arg("-d").arg(&folder).arg(source.display()), LIMIT)?;
        let java =
            |mode: &str, port: u16| Job::new("java").arg("-cp").arg(&folder).arg("Echo").arg(mode).arg(port);
        let server = Server::start(ground, |port| java("server", port))?;
        let said = seen.run(ground, java("client", server.port))?;
        seen.says("answers", said);
        server.end()?;
        Ok(())
    });
}
