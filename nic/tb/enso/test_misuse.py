"""Pipes, doorbells, settings and memory that make no sense: counted, contained, never harmful."""

from __future__ import annotations

from collections.abc import Callable

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import BASE, QUEUE_BYTES, RING_AT
from dma.host import Read
from enso.bench import CAUSE_BAD_HEADER, CAUSE_BAD_LENGTH, CAUSE_DMA_ERROR, MAX_FRAME, PipeBench
from seeds import seeds


async def until(bench: PipeBench, done: Callable[[], object]) -> None:
    """Until it is done, and some time more."""
    for _ in range(2000):
        await bench.cycles(10)
        bench.check_frames()
        if done():
            await bench.cycles(400)
            return
    raise AssertionError("it does not end")


@cocotb.test()
async def a_head_that_makes_no_sense_fails_its_queue_alone(dut: SimHandleBase) -> None:
    wrong = [
        (0, CAUSE_BAD_LENGTH, "bad_lengths"),
        (MAX_FRAME + 1, CAUSE_BAD_LENGTH, "bad_lengths"),
        (0xFFFF, CAUSE_BAD_LENGTH, "bad_lengths"),
        (1 << 16 | 64, CAUSE_BAD_HEADER, "bad_headers"),
        (1 << 63, CAUSE_BAD_HEADER, "bad_headers"),
    ]
    for word, cause, counter in wrong:
        bench = PipeBench(dut, 10)
        await bench.begin()
        queue = await bench.start(0, 64)
        others = [await bench.start(number, 64) for number in range(1, min(bench.count, 2))]
        for _ in range(3):
            bench.post(queue, 100)
        good = queue.posted
        bench.header(queue, word)
        bench.post(queue, 100)
        queue.expected.pop()
        await bench.ring(0, queue.posted)
        for other in others:
            for _ in range(5):
                bench.post(other, 200)
            await bench.ring(other.number, other.posted)
        await until(bench, lambda: bench.failed and not queue.expected)  # noqa: B023
        assert bench.failed == [(0, cause)], f"{word:#x}: {bench.failed}"
        assert bench.counters[counter] == 1 and bench.head(queue) == good
        requests = len(bench.reads.requests)
        await bench.ring(0, queue.posted + 1)
        await bench.cycles(200)
        assert len(bench.reads.requests) == requests, "a failed queue asks for nothing"
        await bench.stop(0)
        revived = await bench.start(0, 64)
        for _ in range(3):
            bench.post(revived, 300)
        await bench.ring(0, revived.posted)
        await bench.settle()
        assert len(bench.failed) == 1


@cocotb.test()
async def runts_are_counted_and_passed_over(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 11)
    await bench.begin()
    queue = await bench.start(0, 64)
    for length in (1, 13, 14, 5, 60):
        bench.post(queue, length)
    queue.expected = type(queue.expected)(frame for frame in queue.expected if len(frame) >= 14)
    await bench.ring(0, queue.posted)
    await bench.settle()
    assert bench.counters["runts"] == 3 and queue.received == 2 and not bench.failed


@cocotb.test()
async def doorbells_that_make_no_sense_are_counted_and_ignored(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 12)
    await bench.begin()
    queue = await bench.start(0, 64)
    for _ in range(3):
        bench.post(queue, 20)
    for tail in (65, 1 << 63, (1 << 64) - 1, 1 << 32, 3, 2, 68, 3):
        await bench.ring(0, tail)
        await bench.cycles(20)
    await bench.settle()
    assert bench.counters["bad_accesses"] == 6
    fetches = bench.counters["payload_fetches"]
    if bench.count > 1:
        await bench.ring(bench.count - 1, 1)
        await bench.cycles(100)
    assert bench.counters["payload_fetches"] == fetches, "a queue that was not started"


@cocotb.test()
async def a_pipe_that_cannot_be_read_fails_its_queue_alone(dut: SimHandleBase) -> None:
    for length, bad_line in ((100, 7), (MAX_FRAME, 100), (MAX_FRAME, 3)):
        bench = PipeBench(dut, 13)
        await bench.begin()
        bad = await bench.start(0, 1024)
        others = [await bench.start(number, 1024) for number in range(1, min(bench.count, 2))]

        def fails(read: Read, at: int = bench.pipe_line(bad, bad_line)) -> bool:
            return read.address <= at < read.address + read.length

        bench.habits.fails = fails
        for _ in range(5):
            bench.post(bad, length)
            for other in others:
                bench.post(other, MAX_FRAME)
        await bench.ring(0, bad.posted)
        for other in others:
            await bench.ring(other.number, other.posted)
        await until(bench, lambda: bench.failed and not any(other.expected for other in others))  # noqa: B023
        assert bench.failed == [(0, CAUSE_DMA_ERROR)] and bench.counters["dma_errors"] == 1
        assert bench.head(bad) <= bad_line
        await bench.stop(0)
        bench.habits.fails = lambda read: False
        revived = await bench.start(0, 1024)
        for _ in range(5):
            bench.post(revived, length)
        await bench.ring(0, revived.posted)
        await bench.settle()


@cocotb.test()
async def settings_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 14)
    await bench.begin()
    ring = BASE + RING_AT
    wrong: list[tuple[int, dict[str, int], int]] = [
        (0, {}, CAUSE_BAD_LENGTH),
        (48, {}, CAUSE_BAD_LENGTH),
        (1 << 23, {}, CAUSE_BAD_LENGTH),
        ((1 << 31) + 64, {}, CAUSE_BAD_LENGTH),
        (64, {"tx_ring_address": ring + 32}, CAUSE_BAD_LENGTH),
        (64, {"tx_ring_address": (1 << 64) - 64 * 64}, CAUSE_BAD_LENGTH),
        (64, {"tx_head_address": BASE + 4}, CAUSE_DMA_ERROR),
    ]
    for entries, more, _ in wrong:
        await bench.start(0, entries, **more)
        await bench.ring(0, 1)
        await bench.cycles(30)
    assert bench.failed == [(0, cause) for _, _, cause in wrong], bench.failed
    assert bench.counters["bad_lengths"] == 6
    await bench.start(0, 64, iface=3)
    await bench.ring(0, 1)
    await bench.cycles(100)
    assert not bench.reads.requests and len(bench.failed) == len(wrong)
    await bench.start(0, 64, tx_ring_address=(1 << 64) - 65 * 64)
    await bench.cycles(30)
    assert len(bench.failed) == len(wrong)
    await bench.stop(0)


@cocotb.test()
async def a_pipe_of_noise_harms_nobody(dut: SimHandleBase) -> None:
    for seed in seeds(6):
        bench = PipeBench(dut, 20 + seed)
        await bench.begin()
        noisy = await bench.start(0, 256)
        good = [await bench.start(number, 256) for number in range(1, min(bench.count, 2))]
        low, high = noisy.at, noisy.at + QUEUE_BYTES
        for _ in range(60):
            word = bench.rng.choice([bench.rng.randrange(1, 300), bench.rng.randrange(14, MAX_FRAME)])
            bench.header(noisy, word)
        del bench.queues[0]
        await bench.ring(0, noisy.posted)
        for queue in good:
            for _ in range(20):
                bench.post(queue, bench.rng.randrange(14, 600))
            await bench.ring(queue.number, queue.posted)
        for _ in range(4000):
            bench.frames = [frame for frame in bench.frames if frame[0] != 0]
            bench.check_frames()
            if all(not queue.expected for queue in good):
                break
            await bench.cycles(1)
        assert all(not queue.expected for queue in good)
        assert not any(low <= a < high and not low + RING_AT <= a for a, _, _ in bench.reads.requests)
