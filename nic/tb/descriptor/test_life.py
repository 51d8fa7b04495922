"""Stop, start and reset in the middle of traffic."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import MIN_FRAME, QUEUE_BYTES, Bench
from dma.host import Habits
from seeds import seeds


@cocotb.test()
async def a_stop_ends_everything_of_its_queue_and_nothing_of_the_others(dut: SimHandleBase) -> None:
    for seed in seeds(12):
        bench = Bench(dut, 200 + seed, Habits(latency=(1, 150)))
        await bench.begin()
        queues = [await bench.start(number, 64) for number in range(min(bench.count, 3))]
        victim = queues[0]
        low, high = victim.at, victim.at + QUEUE_BYTES
        for life in range(4):
            # A wire that takes nothing for a while must not keep a stop waiting.
            bench.frame_ready = bench.rng.choice([0.0, 0.5, 1.0])
            for queue in queues:
                for _ in range(min(25, bench.room(queue))):
                    bench.post(queue, bench.rng.randrange(MIN_FRAME, 3000), shift=bench.rng.randrange(64))
                await bench.ring(queue.number, queue.posted)
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
            assert bench.head(victim) <= victim.received
            victim = queues[0] = await bench.start(0, 64)
        for queue in queues:
            for _ in range(min(10, bench.room(queue))):
                bench.post(queue, 64)
            await bench.ring(queue.number, queue.posted)
        await bench.settle()
        assert not bench.failed


@cocotb.test()
async def reset_in_the_middle_of_traffic_leaves_nothing_behind(dut: SimHandleBase) -> None:
    bench = Bench(dut, 300, Habits(latency=(1, 100)))
    await bench.begin()
    for _ in range(12):
        queues = [await bench.start(number, 64) for number in range(min(bench.count, 3))]
        for queue in queues:
            for _ in range(30):
                bench.post(queue, bench.rng.randrange(MIN_FRAME, 2000))
            await bench.ring(queue.number, queue.posted)
        await bench.cycles(bench.rng.randrange(10, 500))
        await bench.reset()
        bench.check_frames()
        bench.queues.clear()
        requests, writes = len(bench.reads.requests), len(bench.writes.log)
        await bench.cycles(200)
        assert not bench.frames and len(bench.reads.requests) == requests and len(bench.writes.log) == writes
    queue = await bench.start(0, 64)
    bench.post(queue, 1000)
    await bench.ring(0, 1)
    await bench.settle()


@cocotb.test()
async def a_queue_that_stops_and_starts_all_the_time_delays_nobody_for_ever(dut: SimHandleBase) -> None:
    bench = Bench(dut, 310, Habits(latency=(1, 60)))
    await bench.begin()
    if bench.count < 2:
        return
    good = await bench.start(1, 64)
    sent = 0
    while sent < 60:
        restless = await bench.start(0, 64)
        for _ in range(5):
            bench.post(restless, 300)
        await bench.ring(0, 5)
        for _ in range(min(6, bench.room(good))):
            bench.post(good, 700)
            sent += 1
        await bench.ring(1, good.posted)
        await bench.stop(0)
        bench.check_frames()
    bench.queues.pop(0)
    await bench.settle(8000)
