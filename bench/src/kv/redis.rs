//! redis: one thread, a Unix socket, no persistence; GETs pipelined, and MGET of many keys.

use std::path::Path;

use super::protocol::{Asker, Protocol};
use super::{ClientKind, Connection, Keys, KvRival, KvServer};
use crate::BenchError;

const NAME: &str = "redis";
const PROGRAM: &str = "redis-server";

/// How the server is started and spoken to.
pub const RIVAL: KvRival = KvRival {
    name: NAME,
    serve,
    package: "redis-server",
    clients: &[
        ClientKind {
            name: "get",
            connect: |socket| Ok(Box::new(Asker::new(Connection::open(NAME, socket)?, GET))),
        },
        ClientKind {
            name: "mget",
            connect: |socket| Ok(Box::new(Asker::new(Connection::open(NAME, socket)?, MGET))),
        },
    ],
};

/// `GET KEY` for each, answered by a string of 32 bytes.
const GET: Protocol = Protocol {
    ask: |keys, out| {
        for key in keys {
            out.extend(b"*2\r\n$3\r\nGET\r\n$16\r\n");
            out.extend(key);
            out.extend(b"\r\n");
        }
    },
    first: |_| 0,
    before: "$32\r\n".len(),
    mark: b"$32\r\n",
    after: 2,
    last: 0,
};

/// `MGET KEY KEY …`, answered by a list of strings.
const MGET: Protocol = Protocol {
    ask: |keys, out| {
        out.extend(format!("*{}\r\n$4\r\nMGET\r\n", keys.len() + 1).bytes());
        for key in keys {
            out.extend(b"$16\r\n");
            out.extend(key);
            out.extend(b"\r\n");
        }
    },
    // `*COUNT`, whose length is that of its digits.
    first: |keys| 1 + keys.ilog10() as usize + 1 + 2,
    ..GET
};

fn serve(core: usize, folder: &Path) -> Result<Option<KvServer>, BenchError> {
    let socket = folder.join(NAME);
    let (path, dir) = (socket.to_string_lossy().into_owned(), folder.to_string_lossy());
    let arguments = [
        ["--port", "0"],
        ["--unixsocket", &path],
        ["--dir", &dir],
        ["--save", ""],
        ["--appendonly", "no"],
        ["--io-threads", "1"],
        ["--daemonize", "no"],
    ];
    let Some(server) = KvServer::start(PROGRAM, arguments.as_flattened(), core, socket)? else {
        return Ok(None);
    };
    let mut connection = Connection::open(NAME, server.socket())?;
    for (key, value) in Keys::new().pairs() {
        connection.send(|out| {
            out.extend(b"*3\r\n$3\r\nSET\r\n$16\r\n");
            out.extend(key);
            out.extend(b"\r\n$32\r\n");
            out.extend(value);
            out.extend(b"\r\n");
        })?;
        let said = connection.receive("+OK\r\n".len())?.to_vec();
        if said != b"+OK\r\n" {
            return Err(connection.failed(&format!("stores nothing: {:?}", String::from_utf8_lossy(&said))));
        }
    }
    Ok(Some(server))
}
