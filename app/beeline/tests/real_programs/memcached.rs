//! memcached, whose first thread accepts connections and hands them to four others, and a client in Python.

use beeline_bench::programs::{Job, servers};

use super::both::{Carried, after, both};

const CLIENT: &str = r#"
import hashlib, socket, sys, threading
port = int(sys.argv[1])
digests = [None] * 8

def client(number):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as peer, peer.makefile("rwb") as stream:
        digest = hashlib.sha256()
        for key in range(1500):
            value = (b"%d-%d " % (number, key)) * (1 + key * key % 700)
            stream.write(b"set k%d-%d 0 0 %d\r\n%s\r\n" % (number, key, len(value), value)); stream.flush()
            assert stream.readline() == b"STORED\r\n"
            stream.write(b"get k%d-%d\r\n" % (number, key)); stream.flush()
            words = stream.readline().split()
            assert words[:2] == [b"VALUE", b"k%d-%d" % (number, key)], words
            got = stream.read(int(words[3]))
            assert got == value and stream.readline() == b"\r\n" and stream.readline() == b"END\r\n"
            digest.update(got)
        digests[number] = digest.hexdigest()

threads = [threading.Thread(target=client, args=(number,)) for number in range(len(digests))]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
print("values", digests)
with socket.create_connection(("127.0.0.1", port), timeout=30) as peer, peer.makefile("rwb") as stream:
    stream.write(b"stats\r\n"); stream.flush()
    while (line := stream.readline()) != b"END\r\n":
        print(line.decode().strip())
"#;

#[test]
fn memcached_has_every_value() {
    let carried = Carried::ByWindows { at_least: 3_000_000 };
    both(&["memcached", "python3"], carried, |ground, seen| {
        let server = servers::memcached(ground, None)?;
        let client = Job::new("python3").arg(ground.file("client.py", CLIENT)?.display()).arg(server.port);
        let said = seen.run(ground, client)?;
        seen.says("values", after(&said, "values"));
        for count in ["cmd_get", "cmd_set", "get_hits", "get_misses", "curr_items", "bytes", "bytes_read"] {
            seen.says(count, after(&said, &format!("STAT {count} ")));
        }
        server.end()?;
        Ok(())
    });
}
