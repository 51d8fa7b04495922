"""Stop, start and reset in the middle of traffic."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import MIN_FRAME, QUEUE_BYTES
from dma.host import Habits
from enso.bench import PipeBench, lines_of
from seeds import seeds


def fill(bench: PipeBench, number: int, frames: int, longest: int) -> None:
    queue = bench.queues[number]
    for _ in range(frames):
        length = bench.rng.randrange(MIN_FRAME, longest)
        if bench.room(queue) >= lines_of(length):
            bench.post(queue, length)


@cocotb.test()
async def a_stop_ends_everything_of_its_queue_and_nothing_of_the_others(dut: SimHandleBase) -> None:
    for seed in seeds(6):
        bench = PipeBench(dut, 200 + seed, Habits(latency=(1, 150)))
        await bench.begin()
        count = min(bench.count, 3)
        for number in range(count):
            await bench.start(number, 1024)
        for life in range(4):
            victim = bench.queues[0]
            low, high = victim.at, victim.at + QUEUE_BYTES
            # A wire that takes nothing for a while must not keep a stop waiting.
            bench.frame_ready = bench.rng.choice([0.0, 0.5, 1.0])
            for number in range(count):
                fill(bench, number, 25, 9000 if seed % 2 else 900)
                await bench.ring(number, bench.queues[number].posted)
            await bench.cycles(bench.rng.randrange(400))
            await bench.stop(0)
            begun, requests, writes = len(bench.frames), len(bench.reads.requests), len(bench.writes.log)
            assert not any(low <= read.address < high for read in bench.reads.waiting)
            bench.frame_ready = 0.9
            await bench.ring(0, victim.posted)
            await bench.cycles(400)
            assert not any(low <= address < high for address, _, _ in bench.reads.requests[requests:])
            assert not any(low <= address < high for address, _ in bench.writes.log[writes:])
            late = [number for number, _ in bench.frames[begun:]].count(0)
            assert late <= 3, f"seed {seed}, life {life}: {late} frames of a stopped queue left"
            bench.check_frames()
            await bench.start(0, 1024)
        for number in range(count):
            fill(bench, number, 10, 500)
            await bench.ring(number, bench.queues[number].posted)
        await bench.settle()
        assert not bench.failed


@cocotb.test()
async def reset_in_the_middle_of_traffic_leaves_nothing_behind(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 300, Habits(latency=(1, 100)))
    await bench.begin()
    for _ in range(12):
        for number in range(min(bench.count, 3)):
            await bench.start(number, 1024)
            fill(bench, number, 30, 2000)
            await bench.ring(number, bench.queues[number].posted)
        await bench.cycles(bench.rng.randrange(10, 500))
        await bench.reset()
        bench.check_frames()
        bench.queues.clear()
        requests, writes = len(bench.reads.requests), len(bench.writes.log)
        await bench.cycles(200)
        assert not bench.frames and len(bench.reads.requests) == requests and len(bench.writes.log) == writes
    queue = await bench.start(0, 64)
    bench.post(queue, 1000)
    await bench.ring(0, queue.posted)
    await bench.settle()
