"""Starts, stops, failures and resets between lines that come two a cycle."""

from __future__ import annotations

from typing import Any

import cocotb

from pair.bench import ALL_BYTES, NIC_PKG, PARAMETERS, QUEUES, pack
from pair.port import LANES, Port
from usplus.host import constant


def fill(port: Port, least: int) -> None:
    """Enough frames for every queue."""
    for sender in port.senders.values():
        while len(sender.expected) < least:
            sender.put(port.random.randbytes(port.random.randrange(14, 300)), port.random)


@cocotb.test()
async def a_line_right_behind_the_start(dut: Any) -> None:
    """In the same pair as the register write that starts its queue, or the next one: none is lost, in either lane."""
    port = Port(dut)
    await port.open()
    for n in range(6):
        # Which lane the register write is in hangs on how many lines came before it.
        for _ in range(n % 2):
            port.write(constant("MacOffset"), port.random.getrandbits(16))
        for queue in range(QUEUES):
            sender = port.start(queue)
            sender.put(port.random.randbytes(56 + 64 * (n % 3)), port.random)
            # The lines stand right behind the write.
            for at in range(len(sender.lines)):
                sender.written.add(at)
                port.next_lines += port.lines_of(queue, at, [ALL_BYTES])
            sender.first_open, sender.written = len(sender.lines), set()
        await port.drained()
        assert await port.counter("QuarantinedWrites") == 0
        for queue in range(QUEUES):
            # The last lines of the old life and its end in one pair.
            await port.stop(queue)
    assert await port.counter("TxFrames") == 6 * QUEUES


@cocotb.test()
async def stop_and_start_under_load(dut: Any) -> None:
    """In new epochs, while the other queues of both parities go on; credits begin anew."""
    port = Port(dut)
    await port.open()
    for queue in range(QUEUES):
        port.start(queue)
    port.wire_share = [0.8] * LANES
    for _ in range(12):
        fill(port, 30)
        await port.cycles(port.random.randrange(50, 200))
        queue = port.random.randrange(QUEUES)
        await port.stop(queue)
        sender = port.start(queue, credit_lines=port.random.randrange(1, 6))
        sender.put(port.random.randbytes(200), port.random)
    await port.drained()
    for queue, sender in port.senders.items():
        assert await port.status(queue) == (True, "None")
        assert sender.freed == len(sender.lines), "all lines have come back"


@cocotb.test()
async def failures_of_both_parities(dut: Any) -> None:
    """Two lines of one pair spoil their queues: each fails with its cause, the others go on, and a new epoch heals."""
    port = Port(dut)
    await port.open()
    for queue in range(QUEUES):
        port.start(queue)
    fill(port, 4)
    await port.drained()
    spoiled = {queue: port.senders.pop(queue) for queue in (2, 3, 7)}
    fill(port, 30)
    await port.cycles(20)
    for queue, sender in spoiled.items():
        port.senders[queue] = sender
        sender.lines.append(b"\xff" * 64)
        port.next_lines += port.lines_of(queue, len(sender.lines) - 1, [ALL_BYTES])
        del port.senders[queue]
    for queue in spoiled:
        assert await port.status(queue) == (False, "BadHeader")
    assert await port.read(constant("StatusOffset")) == pack(NIC_PKG, "reg_status_t", active=1, attention=1)
    # What comes now is dropped and counted.
    for queue, sender in spoiled.items():
        port.senders[queue] = sender
        sender.lines.append(bytes(64))
        port.next_lines += port.lines_of(queue, len(sender.lines) - 1, [ALL_BYTES])
        del port.senders[queue]
    assert await port.counter("QuarantinedWrites") == len(spoiled)
    assert await port.counter("BadHeaders") == len(spoiled)
    await port.drained()
    for queue in spoiled:
        port.set(queue, "Control", 0)
        assert not (await port.status(queue))[0]
        port.start(queue).put(port.random.randbytes(500), port.random)
    await port.drained()
    for queue in range(QUEUES):
        assert await port.status(queue) == (True, "None")


@cocotb.test()
async def reset_of_the_device_under_load(dut: Any) -> None:
    """A frame that it cuts short ends with an abort, on either wire; nothing of before is seen after it."""
    port = Port(dut)
    await port.open()
    port.may_abort = True
    for n in range(64):
        # Whether a wire is in a frame just then is chance.
        if n >= 8 and all(port.aborted):
            break
        for queue in range(QUEUES):
            port.start(queue)
        port.wire_share = [0.4] * LANES
        for sender in port.senders.values():
            for _ in range(6):
                sender.put(port.random.randbytes(port.random.randrange(300, 1500)), port.random)
        await port.cycles(port.random.randrange(700, 1500))
        port.is_held = True
        port.control(reset=1)
        assert await port.read(constant("ControlOffset")) == 0
        await port.cycles(40)
        assert port.partial == [b""] * LANES, f"a frame without an end, {n}"
        port.senders.clear()
        port.is_held = False
        port.control(enable=1)
    assert all(port.aborted), port.aborted
    for queue in range(QUEUES):
        port.start(queue)
    fill(port, 3)
    await port.drained()


@cocotb.test()
async def a_queue_needs_its_half_of_the_pool(dut: Any) -> None:
    """With room for one window in each half, a second queue of the same parity cannot start, one of the other can."""
    port = Port(dut)
    await port.open(pool_lines=2 * PARAMETERS["WindowLines"] + 2)
    port.start(0)
    port.start(2)
    port.start(1)
    assert await port.status(0) == (True, "None")
    assert await port.status(2) == (False, "NoPool")
    assert await port.status(1) == (True, "None")
    assert await port.counter("NoPool") == 1
    del port.senders[2]
    fill(port, 5)
    await port.drained()
