use std::time::Instant;

use beeline_domain::{Domain, DomainConfig};

use super::*;
use crate::shm::{Client, ClientOptions, Server, ServerOptions};
use crate::{Method, Replied, Reply, Request, Started};

/// Far longer than any test takes.
const WATCHDOG: Duration = Duration::from_secs(60);
/// More than a reply window takes.
const ANSWER: [u8; 4000] = [7; 4000];

fn answer(_request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    reply.send(&ANSWER)
}

#[test]
fn broken_client_keeps_no_other_from_its_last_answer() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let domain = Domain::open(&DomainConfig { root: Some(folder.path().into()), name: "calls".into() })?;
    let (_server, mut workers) = Server::offer(&domain, "server", ServerOptions::default())?;
    let worker = &mut workers[0];
    let options = ClientOptions { reply_lines: 16, ..ClientOptions::default() };
    let [mut bad, mut good] = [options.clone(), options].map(|options| {
        let mut client = Client::connect(&domain, "server", options).expect("a server");
        assert!(matches!(client.start(Method(1), b"", None), Ok(Started::Call(_))), "room for a call");
        client
    });
    let begun = Instant::now();
    while worker.sessions.iter().filter(|session| session.has_unsent()).count() < 2 {
        worker.poll(&mut answer);
        assert!(begun.elapsed() < WATCHDOG, "both clients have an answer that waits");
    }
    bad.transport_mut().forge_credits();
    // The thread is to end. The first of its clients turns out to be of no use only now.
    assert_eq!(worker.sessions[0].entry.peer.id(), worker.registry.clients()[0].peer.id());
    while worker.send_waiting(&mut answer) {
        assert!(good.poll().is_none(), "parts of the answer are left");
        assert!(begun.elapsed() < WATCHDOG, "the answers leave");
    }
    assert_eq!(worker.clients(), 1, "the broken one is gone");
    let mut completion = None;
    while completion.is_none() {
        completion = good.poll().map(|completion| completion.result.map(|mut body| body.to_vec()));
        assert!(begun.elapsed() < WATCHDOG, "the answer has come");
    }
    assert_eq!(completion, Some(Ok(ANSWER.to_vec())));
    Ok(())
}

#[test]
fn client_that_goes_between_a_poll_and_the_wait_is_no_reason_to_wait()
-> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let domain = Domain::open(&DomainConfig { root: Some(folder.path().into()), name: "calls".into() })?;
    let (_server, mut workers) = Server::offer(&domain, "server", ServerOptions::default())?;
    let mut worker = beeline_domain::Polled::new(workers.remove(0))?;
    let client = Client::connect(&domain, "server", ClientOptions::default())?;
    worker.poll(&mut answer);
    assert_eq!(worker.clients(), 1, "it has come");
    drop(client);
    let begun = Instant::now();
    while worker.registry.changes() == worker.seen_changes {
        assert!(begun.elapsed() < WATCHDOG, "it is gone");
        std::thread::yield_now();
    }
    assert_eq!(worker.arm(), Armed::Ready, "a poll is due");
    worker.poll(&mut answer);
    assert_eq!(worker.clients(), 0, "which finds it gone");
    assert_eq!(worker.arm(), Armed::Wait, "and leaves nothing to do");
    Ok(())
}
