"""Starts, stops and failures of queues of both engines, told as if by one."""

from __future__ import annotations

from typing import Any

import cocotb

from pair.bench import ALL_BYTES, PARAMETERS, QUEUES, Bench


def spoil(bench: Bench, queue: int) -> None:
    """A line that is no message."""
    bench.next_pieces.append((queue, len(bench.senders[queue].lines), b"\xff" * 64, ALL_BYTES))


@cocotb.test()
async def failures_of_both_engines_at_once(dut: Any) -> None:
    """Each is told once, with its queue and cause, and stands still until it is taken."""
    bench = Bench(dut)
    await bench.open()
    for queue in range(QUEUES):
        await bench.start(queue)
    dut.failed_ready_i.value = 0
    # Piece 0 and piece 1 of one pair: both engines look at them in the same cycle.
    spoil(bench, 2)
    spoil(bench, 3)
    await bench.cycles(200)
    assert not bench.failed and int(dut.failed_valid_o.value)
    assert not int(dut.is_settled_o.value), "what failed was not told yet"
    for _ in range(2):
        dut.failed_ready_i.value = 1
        await bench.cycles(1)
        dut.failed_ready_i.value = 0
        await bench.cycles(20)
    assert sorted(bench.failed) == [(2, "BadHeader"), (3, "BadHeader")]
    dut.failed_ready_i.value = 1
    del bench.senders[2], bench.senders[3]
    for sender in bench.senders.values():
        for _ in range(20):
            sender.put(bench.random.randbytes(100), bench.random)
    await bench.drained()
    assert len(bench.failed) == 2, "the others have nothing to do with it"


@cocotb.test()
async def stop_and_start_again(dut: Any) -> None:
    """In a new epoch, while queues of either parity go on; the count of freed lines begins anew."""
    bench = Bench(dut)
    await bench.open()
    for queue in range(QUEUES):
        await bench.start(queue)
    for epoch in range(1, 6):
        for sender in bench.senders.values():
            while len(sender.expected) < 40:
                sender.put(bench.random.randbytes(bench.random.randrange(14, 300)), bench.random)
        await bench.cycles(bench.random.randrange(20, 80))
        queue = bench.random.randrange(QUEUES)
        await bench.stop(queue)
        await bench.start(queue, epoch=epoch)
        bench.senders[queue].put(bench.random.randbytes(200), bench.random)
    await bench.drained()
    assert not bench.failed


@cocotb.test()
async def a_half_of_the_pool_is_all_there_is(dut: Any) -> None:
    """With room for one window in each half, a second queue of the same parity cannot start; one of the other can."""
    bench = Bench(dut)
    await bench.open()
    dut.pool_lines_i.value = 2 * PARAMETERS["WindowLines"] + 2
    await bench.reset()
    await bench.start(0)
    assert not bench.failed
    await bench.start(2)
    await bench.cycles(20)
    assert bench.failed == [(2, "NoPool")]
    await bench.start(1)
    await bench.cycles(20)
    assert bench.failed == [(2, "NoPool")]
    del bench.senders[2]
    for sender in bench.senders.values():
        sender.put(bench.random.randbytes(100), bench.random)
    await bench.drained()
