"""Stop, start and reset in the middle of pushes and reads."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import MIN_FRAME, QUEUE_BYTES
from dma.host import Habits
from inline.bench import ADDRESS, MAX_IN_RING, EntryBench
from seeds import seeds


def work(bench: EntryBench, number: int, frames: int) -> None:
    """Entries of a queue, many of them pushed."""
    queue = bench.queues[number]
    for turn in range(frames):
        if bench.room(queue) < 8:
            return
        if bench.rng.random() < 0.2:
            entry = bench.entry(queue, bench.rng.randrange(MIN_FRAME, 3000), ADDRESS)
        else:
            entry = bench.entry(queue, bench.rng.randrange(MIN_FRAME, MAX_IN_RING))
        if bench.rng.random() < 0.6 and len(entry) <= 256:
            bench.send(number, bench.stores(turn % 2, entry))


@cocotb.test()
async def a_stop_ends_everything_of_its_queue_and_nothing_of_the_others(dut: SimHandleBase) -> None:
    for seed in seeds(6):
        bench = EntryBench(dut, 200 + seed, Habits(latency=(1, 150)))
        await bench.begin()
        count = min(bench.count, 3)
        for number in range(count):
            await bench.start(number, 256, hole_timeout_ns=300)
        for life in range(4):
            victim = bench.queues[0]
            low, high = victim.at, victim.at + QUEUE_BYTES
            # A wire that takes nothing for a while must not keep a stop waiting.
            bench.frame_ready = bench.rng.choice([0.0, 0.5, 1.0])
            for number in range(count):
                work(bench, number, 20)
                await bench.ring(number, bench.queues[number].posted)
            await bench.cycles(bench.rng.randrange(600))
            await bench.stop(0)
            begun, requests, writes = len(bench.frames), len(bench.reads.requests), len(bench.writes.log)
            assert not any(low <= read.address < high for read in bench.reads.waiting)
            bench.frame_ready = 0.9
            await bench.ring(0, victim.posted)
            await bench.arrived()
            await bench.cycles(400)
            assert not any(low <= address < high for address, _, _ in bench.reads.requests[requests:])
            assert not any(low <= address < high for address, _ in bench.writes.log[writes:])
            late = [number for number, _ in bench.frames[begun:]].count(0)
            assert late <= 3, f"seed {seed}, life {life}: {late} frames of a stopped queue left"
            bench.check_frames()
            await bench.start(0, 256, hole_timeout_ns=300)
        for number in range(count):
            work(bench, number, 5)
            await bench.arrived()
            await bench.ring(number, bench.queues[number].posted)
        await bench.settle()
        assert not bench.failed


@cocotb.test()
async def reset_in_the_middle_of_traffic_leaves_nothing_behind(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 300, Habits(latency=(1, 100)))
    await bench.begin()
    for _ in range(8):
        for number in range(min(bench.count, 3)):
            await bench.start(number, 256)
            work(bench, number, 20)
            await bench.ring(number, bench.queues[number].posted)
        await bench.cycles(bench.rng.randrange(10, 500))
        bench.pieces.clear()
        await bench.reset()
        bench.check_frames()
        bench.queues.clear()
        requests, writes = len(bench.reads.requests), len(bench.writes.log)
        await bench.cycles(200)
        assert not bench.frames and len(bench.reads.requests) == requests and len(bench.writes.log) == writes
    queue = await bench.start(0, 64)
    bench.push(queue, 0, bench.entry(queue, 100))
    await bench.arrived()
    await bench.settle()
    assert bench.counters["push_taken"] >= 1
