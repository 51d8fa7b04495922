//! Owners that keep no rule: what they answer to a sender, a client and a host that connect in good faith.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use beeline_domain::{Answer, Domain, Peer, Refusal, Reply, Service, StoreOptions, connect_window};
use beeline_link_shm::{ShmLink, ShmOptions};
use beeline_mmio::StoreKernel;
use beeline_rpc::shm::{Client, ClientOptions};
use beeline_spec::formats::port_device_memory;

use crate::descriptors::{BYTES, good, wrong};

/// What is answered to a connection, and to whatever it asks after that.
#[derive(Default)]
struct Script {
    payload: Vec<u8>,
    fds: Vec<OwnedFd>,
    later: Vec<OwnedFd>,
}

fn copies(fds: &[OwnedFd]) -> Vec<OwnedFd> {
    fds.iter().map(|fd| fd.as_fd().try_clone_to_owned().unwrap()).collect()
}

struct Owner(Arc<Mutex<Script>>);

impl Service for Owner {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let script = self.0.lock().unwrap();
        Ok(Reply { payload: script.payload.clone(), fds: copies(&script.fds) }.into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply { payload: Vec::new(), fds: copies(&self.0.lock().unwrap().later) }.into())
    }

    fn departed(&mut self, _: &Peer) {}
}

/// Somebody who connects in good faith, and the answer that makes sense to it.
struct Comer {
    name: &'static str,
    connects: fn(&Domain) -> bool,
    answer: &'static str,
    /// Bytes of the memory that comes with the answer.
    memories: &'static [usize],
    /// Whether a socket comes last.
    has_socket: bool,
}

const COMERS: [Comer; 3] = [
    Comer {
        name: "a sender",
        connects: |domain| {
            connect_window(domain, "evil", StoreOptions::with_kernel(StoreKernel::Cached)).is_ok()
        },
        answer: r#"{"lines":64,"bytes":8192,"blank":9223372036854775813,"epoch":0}"#,
        memories: &[2 * BYTES],
        has_socket: false,
    },
    Comer {
        name: "a client",
        connects: |domain| Client::connect(domain, "evil", ClientOptions::default()).is_ok(),
        answer: r#"{"window":{"lines":64,"bytes":8192,"blank":9223372036854775813,"epoch":0},"workers":1}"#,
        memories: &[2 * BYTES, 2 * BYTES],
        has_socket: false,
    },
    Comer {
        name: "a host",
        connects: |domain| {
            let options = ShmOptions { service: "evil".into(), ..ShmOptions::default() };
            ShmLink::connect(domain, &options).is_ok()
        },
        answer: r#"{"answer":"opened","queues":4}"#,
        memories: &[port_device_memory::BYTES + BYTES],
        has_socket: true,
    },
];

impl Comer {
    fn good(&self) -> Vec<OwnedFd> {
        let mut fds: Vec<OwnedFd> = self.memories.iter().map(|bytes| good(*bytes)).collect();
        fds.extend(self.has_socket.then(|| UnixStream::pair().unwrap().0.into()));
        fds
    }
}

/// Every answer with every wrong descriptor in each place, and answers that are none with descriptors that make sense.
pub fn attack(domain: &Domain) {
    let script = Arc::new(Mutex::new(Script::default()));
    let _offer = domain.offer("evil", Box::new(Owner(Arc::clone(&script)))).unwrap();
    let takes = |comer: &Comer, payload: &str, fds: Vec<OwnedFd>, later: Vec<OwnedFd>| {
        *script.lock().unwrap() = Script { payload: payload.as_bytes().to_vec(), fds, later };
        (comer.connects)(domain)
    };
    for comer in &COMERS {
        let (name, answer, page) = (comer.name, comer.answer, || vec![good(BYTES)]);
        assert!(takes(comer, answer, comer.good(), page()), "{name} takes what makes sense");
        for (place, bytes) in comer.memories.iter().enumerate() {
            for (what, fd) in wrong(*bytes) {
                println!("{name}: {what} in place {place}");
                let mut fds = comer.good();
                fds[place] = fd;
                assert!(!takes(comer, answer, fds, page()), "{name} takes {what} in place {place}");
            }
        }
        if name == "a client" {
            for (what, fd) in wrong(BYTES) {
                assert!(!takes(comer, answer, comer.good(), vec![fd]), "{name} takes {what} for credits");
            }
        }
        let (few, many) = (comer.good().split_off(1), (0..32).map(|_| good(BYTES)).collect());
        for fds in [vec![], few, many] {
            assert!(!takes(comer, answer, fds, page()), "{name} takes another number of descriptors");
        }
        for payload in wrong_answers() {
            let shown = &payload[..payload.len().min(100)];
            assert!(!takes(comer, &payload, comer.good(), page()), "{name} takes {shown}");
        }
    }
}

fn wrong_answers() -> Vec<String> {
    let mut answers: Vec<String> = [
        "",
        "null",
        "[]",
        "{}",
        r#"{"lines":0,"bytes":4096,"blank":9223372036854775813,"epoch":0}"#,
        r#"{"lines":64,"bytes":4096,"blank":5,"epoch":0}"#,
        r#"{"lines":16777216,"bytes":1073745920,"blank":9223372036854775813,"epoch":0}"#,
        r#"{"lines":4294967296,"bytes":4096,"blank":9223372036854775813,"epoch":0}"#,
        r#"{"lines":64,"bytes":18446744073709551615,"blank":9223372036854775813,"epoch":256}"#,
        r#"{"window":{"lines":64},"workers":1}"#,
        r#"{"answer":"opened","queues":0}"#,
        r#"{"answer":"opened","queues":4294967295}"#,
        r#"{"answer":"done"}"#,
    ]
    .map(str::to_owned)
    .into();
    for deep in ["[", "{\"window\":", "{\"answer\":["] {
        answers.push(deep.repeat(60_000 / deep.len()));
    }
    answers
}
