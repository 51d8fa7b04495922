"""Cycles a push, and cycles an entry of the ring. The host answers in order, at full rate and after a fixed time."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import Habits
from inline.bench import HEAD_BYTES, LINE_BYTES, EntryBench

KIND = Habits(latency=(30, 30), request_ready=1.0, write_ready=1.0, answer=1.0, shuffles=False)
FRAMES = 400


async def rate(dut: SimHandleBase, length: int, pushed: bool) -> float:
    """Cycles a frame of one queue."""
    bench = EntryBench(dut, 400, KIND)
    bench.frame_ready = 1.0
    await bench.begin()
    queue = await bench.start(0, 1024, tx_moderation_frames=64, tx_moderation_ns=1000)
    lines = -(-(HEAD_BYTES + length) // LINE_BYTES)
    began, sent = bench.cycle, 0
    while sent < FRAMES:
        many = min(32, FRAMES - sent)
        if bench.room(queue) >= many * lines and len(bench.pieces) < 64:
            for _ in range(many):
                entry = bench.entry(queue, length)
                if pushed:
                    bench.push(queue, sent % 2, entry)
                sent += 1
            if not pushed:
                await bench.ring(0, queue.posted)
        await bench.cycles(1)
    while len(bench.frames) < FRAMES:
        await bench.cycles(1)
    assert bench.counters["push_taken"] == (FRAMES if pushed else 0), bench.counters
    return (bench.last_frame_cycle - began) / FRAMES


@cocotb.test()
async def the_rate_is_that_of_the_header(dut: SimHandleBase) -> None:
    for length, pushed, limit in ((48, True, 17), (64, True, 18), (240, True, 22), (64, False, 8), (400, False, 16)):
        cycles = await rate(dut, length, pushed)
        case = f"{length} bytes, {'pushed' if pushed else 'from the ring'}"
        dut._log.info("%s: %.2f cycles a frame", case, cycles)
        assert cycles <= limit, f"{case}: {cycles:.2f} cycles a frame"
