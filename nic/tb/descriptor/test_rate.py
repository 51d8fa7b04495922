"""Cycles a frame. The host answers in order, at full rate and after a fixed time."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import Bench
from dma.host import Habits


async def rate(dut: SimHandleBase, length: int, frames: int, count: int, latency: int) -> float:
    """Cycles a frame, for `count` queues of a host that answers after `latency` cycles."""
    habits = Habits(
        latency=(latency, latency), request_ready=1.0, write_ready=1.0, answer=1.0, shuffles=False
    )
    bench = Bench(dut, 400, habits)
    bench.frame_ready = 1.0
    await bench.begin()
    entries = 256
    queues = []
    for number in range(count):
        queues.append(await bench.start(number, entries, tx_moderation_frames=32, tx_moderation_ns=1000))
    began = bench.cycle
    while sum(queue.posted for queue in queues) < frames:
        for queue in queues:
            if entries - (queue.posted - bench.head(queue)) >= 64:
                for _ in range(64):
                    bench.describe(queue, queue.slot(queue.posted), length)
                await bench.ring(queue.number, queue.posted)
        await bench.cycles(1)
    while len(bench.frames) < frames:
        await bench.cycles(1)
    assert all(len(frame) == length for _, frame in bench.frames)
    # The first frame needs two round trips, which are not the rate.
    return (bench.last_frame_cycle - began - 2 * latency - 20) / len(bench.frames)


@cocotb.test()
async def the_rate_is_that_of_a_good_rival(dut: SimHandleBase) -> None:
    """A microsecond is 250 cycles: there the 128 reads under way are the limit. Then the engine alone."""
    cases = [
        (64, 2000, 1, 250, 2.7),
        (64, 3000, 4, 250, 2.3),
        (1514, 300, 1, 250, 25.0),
        (64, 4000, 4, 30, 1.6),
    ]
    for length, frames, count, latency, limit in cases:
        if count > 1 << len(dut.start_queue_i):
            continue
        cycles = await rate(dut, length, frames, count, latency)
        case = f"{length} bytes, {count} queues, {latency} cycles away"
        dut._log.info("%s: %.2f cycles a frame", case, cycles)
        assert cycles <= limit, f"{cycles:.2f} cycles a frame of {length} bytes"


@cocotb.test()
async def an_idle_engine_answers_in_the_cycles_of_its_header(dut: SimHandleBase) -> None:
    bench = Bench(dut, 401, Habits(latency=(1, 1), request_ready=1.0, write_ready=1.0, answer=1.0))
    bench.frame_ready = 1.0
    await bench.begin()
    queue = await bench.start(0, 64)
    bench.post(queue, 64)
    await bench.cycles(50)
    seen: dict[str, int] = {}

    def note(name: str, happened: bool) -> None:
        if happened and name not in seen:
            seen[name] = bench.cycle

    bench.dut.doorbell_tail_i.value = 1
    bench.dut.doorbell_queue_i.value = 0
    bench.dut.doorbell_valid_i.value = 1
    for _ in range(120):
        await bench.cycles(1)
        note("doorbell", bool(int(dut.doorbell_valid_i.value)))
        dut.doorbell_valid_i.value = 0
        is_read, is_answer = bool(int(dut.rdreq_valid_o.value)), bool(int(dut.rdcpl_valid_i.value))
        note("descriptor read", is_read)
        note("payload read", is_read and "descriptor" in seen)
        note("payload", is_answer and "payload read" in seen)
        note("descriptor", is_answer)
        note("frame", bool(int(dut.frame_valid_o.value)))
        note("completion", bool(int(dut.dmawr_valid_o.value)))
    steps = [
        ("doorbell", "descriptor read", 18),
        ("descriptor", "payload read", 16),
        ("payload", "frame", 9),
        ("frame", "completion", 10),
    ]
    for begin, end, limit in steps:
        dut._log.info("%s to %s: %d cycles", begin, end, seen[end] - seen[begin])
    for begin, end, limit in steps:
        assert seen[end] - seen[begin] <= limit, f"{begin} to {end}: {seen}"
