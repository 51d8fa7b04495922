//! A domain of its own for each test, an echo server, and waiting with a watchdog.
#![allow(dead_code, reason = "shared by tests of which each uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub mod hostile;

use std::time::{Duration, Instant};

use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::shm::{Client, ClientOptions, Server, ServerOptions, Worker};
use beeline_rpc::{CallError, CallId, Method, Replied, Reply, Request, Started, Transport};

/// Far longer than any test takes.
pub const WATCHDOG: Duration = Duration::from_secs(60);

/// Answers with what was asked.
pub const ECHO: Method = Method(1);
/// Fails with code 7 and what was asked.
pub const FAIL: Method = Method(2);
pub const PANIC: Method = Method(3);
/// Says that the server is overloaded.
pub const BUSY: Method = Method(4);
/// Answers with as many bytes as the first word says, each with the value that `filling` gives its index.
pub const FILL: Method = Method(5);
/// As `FILL`, written piece by piece into a reservation.
pub const WRITE: Method = Method(6);
/// Begins an answer and does not commit it.
pub const ABANDON: Method = Method(7);

pub struct TestFolder {
    pub folder: tempfile::TempDir,
}

impl TestFolder {
    pub fn new() -> Self {
        TestFolder { folder: tempfile::tempdir().unwrap() }
    }

    pub fn domain(&self) -> Domain {
        Domain::open(&DomainConfig { root: Some(self.folder.path().into()), name: "calls".into() }).unwrap()
    }
}

/// Byte `index` of an answer to `FILL`.
pub fn filling(index: usize) -> u8 {
    (index * 31 % 251) as u8
}

pub fn handle(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    let mut asked = Vec::new();
    request.copy_to(&mut asked);
    match request.method() {
        ECHO => reply.send(&asked),
        FAIL => reply.fail(7, &asked),
        PANIC => panic!("as asked"),
        BUSY => reply.overloaded(),
        FILL => {
            let bytes: Vec<u8> = (0..request.word(0) as usize).map(filling).collect();
            reply.send(&bytes)
        }
        WRITE => {
            let bytes = request.word(0) as usize;
            let mut writer = reply.begin(bytes);
            for start in (0..bytes).step_by(13) {
                let piece: Vec<u8> = (start..bytes.min(start + 13)).map(filling).collect();
                writer.write(&piece).unwrap();
            }
            assert!(writer.write(&[0]).is_err(), "no more than was asked for");
            writer.commit()
        }
        ABANDON => {
            let mut writer = reply.begin(500);
            writer.write(&[1; 300]).unwrap();
            drop(writer);
            // The writer has told the client; a reply cannot be made again, so this handler gives up.
            panic!("abandoned")
        }
        _ => reply.unknown_method(),
    }
}

pub fn server(domain: &Domain, options: ServerOptions) -> (Server, Vec<Worker>) {
    Server::offer(domain, "echo", options).unwrap()
}

pub fn client(domain: &Domain, options: ClientOptions) -> Client {
    Client::connect(domain, "echo", options).unwrap()
}

/// Begins a call that has room.
pub fn start<T: Transport>(client: &mut beeline_rpc::Client<T>, method: Method, request: &[u8]) -> CallId {
    match client.start(method, request, None).unwrap() {
        Started::Call(id) => id,
        Started::Full => panic!("no room for a call"),
    }
}

/// Polls both sides until a call ends.
pub fn next_end(client: &mut Client, workers: &mut [Worker]) -> (CallId, Result<Vec<u8>, CallError>) {
    let begun = Instant::now();
    loop {
        workers.iter_mut().for_each(|worker| {
            worker.poll(&mut handle);
        });
        if let Some(completion) = client.poll() {
            return (completion.id, completion.result.map(|mut body| body.to_vec()));
        }
        assert!(begun.elapsed() < WATCHDOG, "no call ends");
    }
}

/// One call and its end.
pub fn ask(
    client: &mut Client,
    workers: &mut [Worker],
    method: Method,
    request: &[u8],
) -> Result<Vec<u8>, CallError> {
    let id = start(client, method, request);
    let (ended, result) = next_end(client, workers);
    assert_eq!(ended, id);
    result
}
