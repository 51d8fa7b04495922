//! Python's asyncio: a server and its clients, each an event loop.

use beeline_bench::programs::Job;
use beeline_bench::programs::servers::Server;

use super::both::{Carried, both};

const SERVER: &str = r#"
import asyncio, sys

async def answer(reader, writer):
    while head := await reader.read(4):
        head += await reader.readexactly(4 - len(head))
        body = await reader.readexactly(int.from_bytes(head, "big"))
        writer.write(head + body[::-1])
        await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"#;

const CLIENT: &str = r#"
import asyncio, hashlib, sys

async def ask(number):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    digest = hashlib.sha256()
    for turn in range(300):
        body = bytes([number, turn % 251]) * (1 + (turn * turn * 7919) % 20000)
        writer.write(len(body).to_bytes(4, "big") + body)
        got = await reader.readexactly(4 + len(body))
        assert got[4:] == body[::-1]
        digest.update(got)
    writer.close()
    await writer.wait_closed()
    return digest.hexdigest()

async def main():
    print(await asyncio.gather(*(ask(number) for number in range(10))))

asyncio.run(asyncio.wait_for(main(), 50))
"#;

#[test]
fn asyncio_answers_every_request() {
    let carried = Carried::ByWindows { at_least: 50_000_000 };
    both(&["python3"], carried, |ground, seen| {
        let server = ground.file("server.py", SERVER)?;
        let server = Server::start(ground, |port| Job::new("python3").arg(server.display()).arg(port))?;
        let client = Job::new("python3").arg(ground.file("client.py", CLIENT)?.display()).arg(server.port);
        let said = seen.run(ground, client)?;
        seen.says("answers", said);
        server.end()?;
        Ok(())
    });
}
