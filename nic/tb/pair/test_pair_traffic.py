"""Frames of every size through both engines: unchanged, in a queue's order, and counted once."""

from __future__ import annotations

from typing import Any

import cocotb

from pair.bench import QUEUES, Bench

SIZES = [14, 55, 56, 57, 64, 119, 120, 121, 300]


def longest(bench: Bench) -> int:
    """A message must fit a window."""
    return bench.window * 64 - 8


def fill(bench: Bench, count: int) -> None:
    """Random frames for random queues."""
    for _ in range(count):
        size = bench.random.choice(SIZES + [bench.random.randrange(14, longest(bench))])
        bench.senders[bench.random.choice(list(bench.senders))].put(bench.random.randbytes(size), bench.random)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Lines out of order and in parts, wires that wait, pairs that are half empty."""
    bench = Bench(dut)
    await bench.open()
    for queue in range(QUEUES):
        await bench.start(queue, epoch=queue)
    frames = 0
    # How often each wire takes a beat, a place of a pair is used, and a line comes in two parts.
    habits = [([1.0, 1.0], 1.0, 0.0), ([0.5, 1.0], 1.0, 0.3), ([0.9, 0.2], 0.6, 0.3), ([1.0, 0.7], 0.2, 1.0)]
    for wires, full, split in habits:
        bench.wire_share, bench.full_share, bench.split_share = wires, full, split
        count = 12 * QUEUES
        fill(bench, count)
        frames += count
        await bench.drained()
    assert not bench.failed
    lines = sum(len(sender.lines) for sender in bench.senders.values())
    split_lines = bench.counters["split_lines"]
    dut._log.info("%d frames, %d lines, %s", frames, lines, dict(bench.counters))
    assert bench.counters["tx_messages"] == frames == sum(sender.left for sender in bench.senders.values())
    assert split_lines > 0 and bench.counters["tx_writes"] == lines + split_lines
    assert bench.counters["tx_write_bytes"] == lines * 64
    assert bench.counters["reordered_writes"] > 0
    for queue, sender in bench.senders.items():
        assert await bench.next_start(queue) == len(sender.lines)


@cocotb.test()
async def one_wire_that_stands(dut: Any) -> None:
    """The queues of the other parity go on: what waits for a wire waits in its engine, as long as there are credits."""
    bench = Bench(dut)
    await bench.open()
    for queue in range(QUEUES):
        await bench.start(queue)
    bench.wire_share = [0.0, 1.0]
    for _ in range(30):
        for sender in bench.senders.values():
            sender.put(bench.random.randbytes(56), bench.random)
    for _ in range(3000):
        await bench.cycles(1)
        if all(sender.is_done() for queue, sender in bench.senders.items() if queue % 2 == 1):
            break
    assert all(sender.is_done() == (queue % 2 == 1) for queue, sender in bench.senders.items())
    bench.wire_share = [1.0, 1.0]
    await bench.drained()


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Nothing of before is seen after it."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(3):
        for queue in range(QUEUES):
            await bench.start(queue)
        fill(bench, 10 * QUEUES)
        await bench.cycles(bench.random.randrange(20, 120))
        await bench.reset()
    for queue in range(QUEUES):
        await bench.start(queue)
    fill(bench, 4 * QUEUES)
    await bench.drained()
