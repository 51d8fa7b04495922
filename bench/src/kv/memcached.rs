//! memcached: one worker thread, a Unix socket, and its three protocols.
//!
//! `get` with many keys in one line, meta GETs, and binary GETs; which is the fastest depends on the depth. The number
//! of requests that a worker takes from one connection before it looks at others (`-R`) is raised, as there is one
//! connection only, and the threads that tidy are off.

use std::path::Path;

use super::protocol::{Asker, Protocol};
use super::{ClientKind, Connection, KEY_BYTES, Keys, KvRival, KvServer, VALUE_BYTES};
use crate::BenchError;

const NAME: &str = "memcached";

/// How the server is started and spoken to.
pub const RIVAL: KvRival = KvRival {
    name: NAME,
    serve,
    package: "memcached",
    clients: &[
        ClientKind {
            name: "get",
            connect: |socket| Ok(Box::new(Asker::new(Connection::open(NAME, socket)?, GET))),
        },
        ClientKind {
            name: "meta",
            connect: |socket| Ok(Box::new(Asker::new(Connection::open(NAME, socket)?, META))),
        },
        ClientKind {
            name: "binary",
            connect: |socket| Ok(Box::new(Asker::new(Connection::open(NAME, socket)?, BINARY))),
        },
    ],
};

/// `get KEY KEY …`, answered by `VALUE KEY 0 32`, the value, …, `END`.
const GET: Protocol = Protocol {
    ask: |keys, out| {
        out.extend(b"get");
        for key in keys {
            out.push(b' ');
            out.extend(key);
        }
        out.extend(b"\r\n");
    },
    first: |_| 0,
    before: "VALUE ".len() + KEY_BYTES + " 0 32\r\n".len(),
    mark: b"VALUE ",
    after: 2,
    last: "END\r\n".len(),
};

/// `mg KEY v` for each, answered by `VA 32` and the value.
const META: Protocol = Protocol {
    ask: |keys, out| {
        for key in keys {
            out.extend(b"mg ");
            out.extend(key);
            out.extend(b" v\r\n");
        }
    },
    first: |_| 0,
    before: "VA 32\r\n".len(),
    mark: b"VA 32\r\n",
    after: 2,
    last: 0,
};

/// Bytes of a binary header.
const HEADER_BYTES: usize = 24;
/// A binary GET up to its key: magic, opcode, length of the key, …, length of the rest.
const BINARY_GET: [u8; HEADER_BYTES] = {
    let mut header = [0; HEADER_BYTES];
    (header[0], header[3], header[11]) = (0x80, KEY_BYTES as u8, KEY_BYTES as u8);
    header
};

/// A binary GET for each, answered by a header, four bytes of flags, and the value.
const BINARY: Protocol = Protocol {
    ask: |keys, out| {
        for key in keys {
            out.extend(BINARY_GET);
            out.extend(key);
        }
    },
    first: |_| 0,
    before: HEADER_BYTES + 4,
    // Magic of an answer, opcode, no key, four bytes of flags, any type, status 0.
    mark: &[0x81, 0, 0, 0, 4, 0, 0, 0],
    after: 0,
    last: 0,
};

fn serve(core: usize, folder: &Path) -> Result<Option<KvServer>, BenchError> {
    let socket = folder.join(NAME);
    let path = socket.to_string_lossy().into_owned();
    let tidy = "no_lru_crawler,no_lru_maintainer";
    let user = if rustix::process::geteuid().is_root() { ["-u", "root"].as_slice() } else { &[] };
    let arguments = [&["-s", &path, "-t", "1", "-m", "64", "-R", "1024", "-o", tidy], user].concat();
    let Some(server) = KvServer::start(NAME, &arguments, core, socket)? else { return Ok(None) };
    let mut connection = Connection::open(NAME, server.socket())?;
    for (key, value) in Keys::new().pairs() {
        connection.send(|out| {
            out.extend(b"set ");
            out.extend(key);
            out.extend(format!(" 0 0 {VALUE_BYTES}\r\n").bytes());
            out.extend(value);
            out.extend(b"\r\n");
        })?;
        let said = connection.receive("STORED\r\n".len())?.to_vec();
        if said != b"STORED\r\n" {
            return Err(connection.failed(&format!("stores nothing: {:?}", String::from_utf8_lossy(&said))));
        }
    }
    Ok(Some(server))
}
