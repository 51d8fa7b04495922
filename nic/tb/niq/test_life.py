"""Stop, start and reset in the middle of traffic."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import Habits

from niq.bench import LINES, MIN_FRAME, QUEUE_BYTES, Bench, Queue
from seeds import seeds


async def fill(bench: Bench, queues: list[Queue], longest: int) -> None:
    """Entries for every queue that has room, the last of each perhaps not whole."""
    for queue in queues:
        for _ in range(min(12, bench.room(queue))):
            bench.send(queue, bench.rng.randrange(MIN_FRAME, longest), shift=bench.rng.randrange(64))
    while any(queue.stores for queue in queues):
        queue = bench.rng.choice([queue for queue in queues if queue.stores])
        await bench.store(queue, bench.rng.randrange(1, 4))
        if bench.rng.random() < 0.05 and len(queues[0].stores) < 4:
            return


@cocotb.test()
async def a_stop_ends_everything_of_its_queue_and_nothing_of_the_others(dut: SimHandleBase) -> None:
    for seed in seeds(12):
        bench = Bench(dut, 200 + seed, Habits(latency=(1, 150)))
        await bench.begin()
        size = bench.rng.choice([size for size in (1, 2, 4) if size * 2 <= LINES])
        queues = [await bench.start(number, size) for number in range(min(bench.count, 3))]
        victim = queues[0]
        low, high = victim.at, victim.at + QUEUE_BYTES
        for life in range(4):
            # A wire that takes nothing for a while must not keep a stop waiting.
            bench.frame_ready = bench.rng.choice([0.0, 0.5, 1.0])
            await fill(bench, queues, bench.rng.choice([48, 3000]))
            await bench.cycles(bench.rng.randrange(200))
            await bench.stop(0)
            begun, requests, writes = len(bench.frames), len(bench.reads.requests), len(bench.writes.log)
            assert not any(low <= read.address < high for read in bench.reads.waiting)
            bench.frame_ready = 0.9
            await bench.cycles(400)
            assert not any(low <= address < high for address, _, _ in bench.reads.requests[requests:])
            assert not any(low <= address < high for address, _ in bench.writes.log[writes:])
            late = [number for number, _ in bench.frames[begun:]].count(0)
            assert late <= 3, f"seed {seed}, life {life}: {late} frames of a stopped queue left"
            bench.check_frames()
            assert bench.head(victim) <= victim.received
            victim = queues[0] = await bench.start(0, size, epoch=life + 4)
        for queue in queues:
            await bench.store(queue)
        await fill(bench, queues, 48)
        for queue in queues:
            await bench.store(queue)
        await bench.settle()
        assert not bench.failed


@cocotb.test()
async def reset_in_the_middle_of_traffic_leaves_nothing_behind(dut: SimHandleBase) -> None:
    bench = Bench(dut, 300, Habits(latency=(1, 100)))
    await bench.begin()
    for _ in range(12):
        queues = [await bench.start(number) for number in range(min(bench.count, 3))]
        await fill(bench, queues, 2000)
        await bench.cycles(bench.rng.randrange(10, 300))
        await bench.reset()
        bench.check_frames()
        bench.interrupts.clear()
    queues = [await bench.start(number) for number in range(min(bench.count, 3))]
    await fill(bench, queues, 300)
    for queue in queues:
        await bench.store(queue)
    await bench.settle()
    assert not bench.failed
