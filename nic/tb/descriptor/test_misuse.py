"""Descriptors, doorbells, settings and memory that make no sense: counted, contained, never harmful."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import (
    BASE,
    CAUSE_BAD_LENGTH,
    CAUSE_DMA_ERROR,
    MAX_FRAME,
    MIN_FRAME,
    RING_AT,
    SLOT_BYTES,
    Bench,
    Queue,
)
from dma.host import PAGE_BYTES, Read


@cocotb.test()
async def bad_descriptors_are_counted_and_completed_in_turn(dut: SimHandleBase) -> None:
    bench = Bench(dut, 100)
    await bench.begin()
    queue = await bench.start(0, 64)
    fine = queue.slot(20)
    bench.post(queue, 64)
    bench.describe(queue, fine, 0)
    bench.post(queue, 64)
    bench.describe(queue, fine, MIN_FRAME - 1)
    bench.describe(queue, fine, MAX_FRAME + 1)
    bench.describe(queue, fine, 0xFFFF_FFC0)
    bench.post(queue, MAX_FRAME, shift=33)
    bench.describe(queue, 64, 64)
    bench.describe(queue, (1 << 64) - 100, 4000)
    bench.post(queue, 15)
    await bench.ring(0, queue.posted)
    await bench.settle()
    assert (bench.counters["bad_lengths"], bench.counters["runts"]) == (3, 1)
    assert bench.counters["dma_errors"] == 2 and not bench.failed
    assert queue.received == 4 and bench.head(queue) == 10


@cocotb.test()
async def a_ring_of_bad_descriptors_alone_is_completed(dut: SimHandleBase) -> None:
    bench = Bench(dut, 101)
    await bench.begin()
    queue = await bench.start(0, 256, tx_moderation_frames=64)
    for _ in range(256):
        bench.describe(queue, queue.slot(0), 0)
    await bench.ring(0, 256)
    await bench.settle()
    assert bench.counters["bad_lengths"] == 256 and bench.counters["completions"] <= 4


@cocotb.test()
async def doorbells_that_make_no_sense_are_counted_and_ignored(dut: SimHandleBase) -> None:
    bench = Bench(dut, 102)
    await bench.begin()
    queue = await bench.start(0, 64)
    for _ in range(3):
        bench.post(queue, 100)
    # After three frames the ring has room up to 67.
    for tail in (65, 1 << 63, (1 << 64) - 1, 1 << 32, 3, 2, 68, 3):
        await bench.ring(0, tail)
        await bench.cycles(20)
    await bench.settle()
    assert bench.counters["bad_accesses"] == 6
    fetches = bench.counters["descriptor_fetches"]
    if bench.count > 1:
        await bench.ring(bench.count - 1, 1)
        await bench.cycles(100)
    assert bench.counters["descriptor_fetches"] == fetches, "a queue that was not started"
    assert bench.counters["bad_accesses"] == 6 and queue.received == 3


@cocotb.test()
async def doorbells_in_every_cycle_lose_nothing_of_other_queues(dut: SimHandleBase) -> None:
    bench = Bench(dut, 103)
    await bench.begin()
    queues = [await bench.start(number, 64) for number in range(min(bench.count, 4))]
    for queue in queues:
        for _ in range(5):
            bench.post(queue, 80)
    for queue in queues[1:]:
        await bench.ring(queue.number, queue.posted)
        for _ in range(20):
            await bench.ring(0, bench.rng.choice([1000, 77777, 1 << 40]))
    await bench.ring(0, 5)
    await bench.settle()


@cocotb.test()
async def a_ring_that_cannot_be_read_fails_its_queue_alone(dut: SimHandleBase) -> None:
    bench = Bench(dut, 108)
    await bench.begin()
    if bench.count < 2:
        return
    await bench.start(0, 64, tx_ring_address=0x1000)
    good = await bench.start(1, 64)
    bench.queues.pop(0)
    for _ in range(10):
        bench.post(good, 500)
    await bench.ring(0, 64)
    await bench.ring(1, 10)
    await bench.settle()
    assert bench.failed == [(0, CAUSE_DMA_ERROR)], bench.failed
    assert bench.counters["dma_errors"] >= 1
    requests = len(bench.reads.requests)
    await bench.ring(0, 64)
    await bench.cycles(200)
    assert len(bench.reads.requests) == requests, "a failed queue asks for nothing"
    await bench.stop(0)
    revived = await bench.start(0, 64)
    for _ in range(10):
        bench.post(revived, 500)
    await bench.ring(0, 10)
    await bench.settle()
    assert len(bench.failed) == 1


@cocotb.test()
async def an_answer_of_another_length_is_no_answer(dut: SimHandleBase) -> None:
    for beats in (-1, 1):
        bench = Bench(dut, 109)
        await bench.begin()
        queue = await bench.start(0, 64)

        def wrong(read: Read, queue: Queue = queue, beats: int = beats) -> int:
            return beats if queue.slot(1) <= read.address < queue.slot(1) + SLOT_BYTES else 0

        bench.habits.beats_more = wrong
        for _ in range(4):
            bench.post(queue, 1000, shift=5)
        del queue.expected[1]
        await bench.ring(0, 4)
        await bench.settle()
        assert bench.counters["dma_errors"] == 1 and not bench.failed


@cocotb.test()
async def a_frame_of_which_a_part_cannot_be_read_is_left_out(dut: SimHandleBase) -> None:
    bench = Bench(dut, 110)
    await bench.begin()
    queue = await bench.start(0, 64)
    first, second = queue.slot(1) + 100, queue.slot(2)

    def fails(read: Read) -> bool:
        # The middle read of the second frame and the first of the third.
        middle = first < read.address < first + MAX_FRAME and read.length == PAGE_BYTES
        return middle or read.address == second

    bench.habits.fails = fails
    bench.post(queue, 700)
    bench.post(queue, MAX_FRAME, shift=100)
    bench.post(queue, 9000)
    for _ in range(20):
        bench.post(queue, MAX_FRAME)
    del queue.expected[1]
    del queue.expected[1]
    await bench.ring(0, queue.posted)
    await bench.settle()
    assert bench.counters["dma_errors"] >= 2 and bench.head(queue) == 23


@cocotb.test()
async def settings_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = Bench(dut, 111)
    await bench.begin()
    ring = BASE + RING_AT
    wrong: list[tuple[int, dict[str, int], int]] = [
        (0, {}, CAUSE_BAD_LENGTH),
        (48, {}, CAUSE_BAD_LENGTH),
        (1 << 17, {}, CAUSE_BAD_LENGTH),
        ((1 << 31) + 64, {}, CAUSE_BAD_LENGTH),
        (64, {"tx_ring_address": ring + 8}, CAUSE_BAD_LENGTH),
        (64, {"tx_ring_address": (1 << 64) - 64 * 16}, CAUSE_BAD_LENGTH),
        (64, {"tx_head_address": BASE + 4}, CAUSE_DMA_ERROR),
    ]
    for entries, more, _ in wrong:
        await bench.start(0, entries, **more)
        await bench.ring(0, 1)
        await bench.cycles(30)
    assert bench.failed == [(0, cause) for _, _, cause in wrong], bench.failed
    assert bench.counters["bad_lengths"] == 6
    await bench.start(0, 64, iface=1)
    await bench.ring(0, 1)
    await bench.cycles(100)
    assert not bench.reads.requests and len(bench.failed) == len(wrong)
    # The last ring that still lies inside the address space starts.
    await bench.start(0, 64, tx_ring_address=(1 << 64) - 65 * 16)
    await bench.cycles(30)
    assert len(bench.failed) == len(wrong)
    await bench.stop(0)
