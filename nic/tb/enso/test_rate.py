"""Cycles a frame. The host answers in order, at full rate and after a fixed time."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import Habits
from enso.bench import PipeBench, lines_of


async def rate(dut: SimHandleBase, length: int, frames: int, count: int, latency: int) -> float:
    """Cycles a frame, for `count` queues of a host that answers after `latency` cycles."""
    habits = Habits(
        latency=(latency, latency), request_ready=1.0, write_ready=1.0, answer=1.0, shuffles=False
    )
    bench = PipeBench(dut, 400, habits)
    bench.frame_ready = 1.0
    await bench.begin()
    queues = []
    for number in range(count):
        queues.append(await bench.start(number, 4096, tx_moderation_frames=64, tx_moderation_ns=1000))
    began, many = bench.cycle, 16
    while sum(len(queue.expected) for queue in queues) < frames:
        for queue in queues:
            if bench.room(queue) >= many * lines_of(length):
                for _ in range(many):
                    bench.post(queue, length)
                await bench.ring(queue.number, queue.posted)
        await bench.cycles(1)
    while len(bench.frames) < frames:
        await bench.cycles(1)
    return (bench.last_frame_cycle - began - latency - 20) / len(bench.frames)


@cocotb.test()
async def the_rate_is_that_of_a_good_rival(dut: SimHandleBase) -> None:
    cases = [(64, 2000, 1, 30, 4.5), (64, 2000, 4, 30, 4.5), (1514, 300, 1, 30, 28.0), (1514, 300, 4, 250, 28.0)]
    for length, frames, count, latency, limit in cases:
        if count > 1 << len(dut.start_queue_i):
            continue
        cycles = await rate(dut, length, frames, count, latency)
        case = f"{length} bytes, {count} queues, {latency} cycles away"
        dut._log.info("%s: %.2f cycles a frame", case, cycles)
        assert cycles <= limit, f"{case}: {cycles:.2f} cycles a frame"
