//! Programs that wait for connections in sets, polls and selects, natively and with the library.

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#[allow(dead_code, reason = "each test uses a part of it")]
mod ground;

use std::process::Command;

use ground::{Ground, Run};

/// Runs a program as it is, and with connections that leave the kernel, however a call waits.
fn same_whatever_the_wait(name: &str, connections: usize) {
    let ground = Ground::new();
    let program = ground.compile(name, &["-pthread", "-Wno-stringop-overflow"]);
    let native = Run::of(&mut Command::new(&program));
    assert!(native.ended_well() && native.out.matches("-1 EINTR").count() == 6, "{native:?}");
    for spin in ["0us", "50us", "forever"] {
        let mut command = ground.at_once(&program);
        let ours = Run::of(command.env("BEELINE_SOCKETS_SPIN", spin).env("SAY_WHETHER_CARRIED", "1"));
        assert_eq!(ours.out, native.out, "{name}, spin {spin}");
        assert_eq!(ours.err, "carried\n".repeat(connections), "{name}, spin {spin}");
        assert!(ours.ended_well(), "{ours:?}");
    }
}

#[test]
fn sets_tell_of_connections_what_they_tell_natively() {
    same_whatever_the_wait("sets.c", 5);
}

#[test]
fn polls_and_selects_tell_of_connections_what_they_tell_natively() {
    same_whatever_the_wait("polls.c", 1);
}

const EVENT_LOOP: &str = "
import asyncio

async def answer(reader, writer):
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()
    writer.close()

async def ask(port, number):
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    total = 0
    for turn in range(200):
        writer.write(bytes([number]) * (turn + 1))
        total += sum(await reader.readexactly(turn + 1))
    writer.close()
    await writer.wait_closed()
    return total

async def main():
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(ask(port, number) for number in range(20))))

asyncio.run(asyncio.wait_for(main(), 60))
";

#[test]
fn event_loop_serves_many_connections() {
    let ground = Ground::new();
    let native = Run::of(Command::new("python3").args(["-c", EVENT_LOOP]));
    let ours = Run::of(ground.at_once("python3").args(["-c", EVENT_LOOP]));
    assert!(native.ended_well(), "{native:?}");
    assert_eq!(ours, native);
}
