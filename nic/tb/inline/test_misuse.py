"""Pushes, entries, doorbells, settings and memory that make no sense: counted, contained, never harmful."""

from __future__ import annotations

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import BASE, MIN_FRAME, RING_AT
from dma.host import Read
from inline.bench import (
    ADDRESS,
    CAUSE_BAD_HEADER,
    CAUSE_BAD_LENGTH,
    CAUSE_DMA_ERROR,
    EPOCH,
    MAX_FRAME,
    NOTHING,
    WHOLE,
    WINDOW_LINES,
    EntryBench,
    header,
)
from seeds import seeds


async def failed(bench: EntryBench) -> None:
    """Until a queue has failed, and some time more."""
    for _ in range(400):
        await bench.cycles(10)
        bench.check_frames()
        if bench.failed:
            await bench.cycles(200)
            bench.check_frames()
            return
    raise AssertionError("it does not fail")


@cocotb.test()
async def an_entry_that_makes_no_sense_fails_its_queue_alone(dut: SimHandleBase) -> None:
    wrong = [
        (header(64, 5), CAUSE_BAD_HEADER),
        (header(64, 4, epoch=EPOCH + 1), CAUSE_BAD_HEADER),
        (header(64, 4, kind=0), CAUSE_BAD_HEADER),
        (header(64, 4, kind=4), CAUSE_BAD_HEADER),
        ((int.from_bytes(header(64, 4), "little") | 1 << 21).to_bytes(8, "little"), CAUSE_BAD_HEADER),
        ((int.from_bytes(header(64, 4), "little") | 1 << 63).to_bytes(8, "little"), CAUSE_BAD_HEADER),
        (header(497, 4), CAUSE_BAD_LENGTH),
        (header(0xFFFF, 4), CAUSE_BAD_LENGTH),
    ]
    for word, cause in wrong:
        bench = EntryBench(dut, 10)
        await bench.begin()
        queue = await bench.start(0, 64)
        others = [await bench.start(number, 64) for number in range(1, min(bench.count, 2))]
        for _ in range(4):
            bench.entry(queue, 40)
        bench.append(queue, word)
        bench.entry(queue, 40)
        queue.expected.pop()
        await bench.ring(0, queue.posted)
        for other in others:
            for _ in range(5):
                bench.entry(other, 200)
            await bench.ring(other.number, other.posted)
        await failed(bench)
        assert bench.failed == [(0, cause)], f"{word.hex()}: {bench.failed}"
        assert bench.counters["bad_headers"] + bench.counters["bad_lengths"] == 1
        assert bench.head(queue) == 4 and not queue.expected
        requests = len(bench.reads.requests)
        await bench.ring(0, queue.posted + 1)
        bench.push(queue, 0, header(20, 4) + bytes(56))
        await bench.arrived()
        await bench.cycles(100)
        assert len(bench.reads.requests) == requests and not bench.counters["push_taken"]
        await bench.stop(0)
        revived = await bench.start(0, 64)
        bench.push(revived, 0, bench.entry(revived, 100))
        await bench.arrived()
        await bench.settle()
        assert len(bench.failed) == 1 and bench.counters["push_taken"] == 1


@cocotb.test()
async def frames_that_make_no_sense_are_done_in_turn(dut: SimHandleBase) -> None:
    for pushed in (False, True):
        bench = EntryBench(dut, 11)
        await bench.begin()
        queue = await bench.start(0, 64)
        bad_address = ((1 << 64) - 100).to_bytes(8, "little")
        for turn, (length, kind, address) in enumerate(
            [
                (0, WHOLE, bytes(8)),
                (MIN_FRAME - 1, WHOLE, bytes(8)),
                (0, ADDRESS, bytes(8)),
                (5, ADDRESS, bytes(8)),
                (MAX_FRAME + 1, ADDRESS, bytes(8)),
                (0xFFFF, ADDRESS, bytes(8)),
                (4000, ADDRESS, bad_address),
                (64, ADDRESS, (64).to_bytes(8, "little")),
                (0, NOTHING, bytes(8)),
                (64, NOTHING, bytes(8)),
            ]
        ):
            entry = bench.append(queue, header(length, queue.posted, kind) + address)
            if pushed:
                bench.push(queue, turn % 2, entry)
                await bench.arrived()
        bench.entry(queue, 100)
        await bench.ring(0, queue.posted)
        await bench.settle()
        counted = bench.counters
        assert (counted["bad_lengths"], counted["runts"], counted["dma_errors"]) == (4, 2, 2), counted
        assert queue.received == 1 and not bench.failed
        assert counted["push_taken"] == (10 if pushed else 0)


@cocotb.test()
async def doorbells_and_pushes_past_the_ring_are_counted_and_ignored(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 12)
    await bench.begin()
    queue = await bench.start(0, 8)
    bench.push(queue, 0, bench.entry(queue, 20))
    await bench.arrived()
    await bench.settle()
    for tail in (10, 0, 1, (1 << 64) - 1, 1 << 32):
        await bench.ring(0, tail)
        await bench.cycles(20)
    assert bench.counters["bad_accesses"] == 3, "what is behind says nothing"
    for position in (9, 1 << 29, (1 << 30) + 5, (1 << 31) - 1, 0):
        bench.push(queue, 1, header(20, position) + bytes(56))
        await bench.arrived()
    assert bench.counters["bad_accesses"] == 5 and bench.counters["push_unused"] == 5
    bench.push(queue, 0, bench.entry(queue, 20))
    await bench.arrived()
    await bench.settle()
    assert bench.counters["push_taken"] == 2


@cocotb.test()
async def nothing_that_is_stored_fails_the_queue_or_makes_a_frame(dut: SimHandleBase) -> None:
    for seed in seeds(6):
        bench = EntryBench(dut, 20 + seed)
        await bench.begin()
        queue = await bench.start(0, 64, hole_timeout_ns=400)
        for number in range(120):
            length = bench.rng.randrange(1, 200)
            at = bench.rng.randrange(WINDOW_LINES * 64 - length)
            data = bench.rng.randbytes(length)
            # Often a header that could be one, so that the rest of the path is reached; it names no entry of the ring.
            if bench.rng.random() < 0.5 and length >= 8:
                word = header(bench.rng.randrange(600), queue.posted + 1000 * number + 100, NOTHING)
                data = word + data[8:]
                at -= at % 256
            bench.store(0, at, data)
            await bench.cycles(bench.rng.randrange(40))
            if bench.rng.random() < 0.1 and bench.room(queue) >= 8:
                bench.entry(queue, 64)
                await bench.ring(0, queue.posted)
        await bench.arrived()
        await bench.settle()
        assert not bench.failed and not bench.counters["push_taken"], f"seed {seed}"


@cocotb.test()
async def a_ring_that_cannot_be_read_fails_its_queue_alone(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 13)
    await bench.begin()
    queue = await bench.start(0, 64)

    def fails(read: Read, at: int = bench.line_at(queue, 9)) -> bool:
        return read.address <= at < read.address + read.length

    bench.habits.fails = fails
    for _ in range(20):
        bench.entry(queue, 40)
    await bench.ring(0, queue.posted)
    await failed(bench)
    assert bench.failed == [(0, CAUSE_DMA_ERROR)] and bench.counters["dma_errors"] == 1
    assert queue.received <= 9
    await bench.stop(0)
    bench.habits.fails = lambda read: False
    revived = await bench.start(0, 64)
    bench.entry(revived, 60)
    await bench.ring(0, revived.posted)
    await bench.settle()


@cocotb.test()
async def a_blank_window_fills_halves_and_is_credited(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 14)
    await bench.begin()
    credit_at = BASE + 16
    queue = await bench.start(0, 64, fills=1, credit_address=credit_at, credit_lines=4)
    entry = bench.entry(queue, 20)
    bench.store(0, 0, entry)
    await bench.arrived()
    await bench.cycles(100)
    assert bench.memory.word(credit_at) == 0 and not queue.received
    bench.store(0, 64, bytes(192))
    await bench.arrived()
    bench.store(0, 256, b"\xff" * 256)
    await bench.arrived()
    await bench.settle()
    await bench.cycles(100)
    assert bench.memory.word(credit_at) == 8 and bench.counters["credit_pushes"] == 2
    assert bench.counters["push_taken"] == 1 and bench.counters["bad_headers"] == 1


@cocotb.test()
async def settings_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 15)
    await bench.begin()
    ring = BASE + RING_AT
    wrong: list[tuple[int, dict[str, int], int]] = [
        (0, {}, CAUSE_BAD_LENGTH),
        (4, {}, CAUSE_BAD_LENGTH),
        (48, {}, CAUSE_BAD_LENGTH),
        (1 << 23, {}, CAUSE_BAD_LENGTH),
        (64, {"tx_ring_address": ring + 32}, CAUSE_BAD_LENGTH),
        (64, {"tx_ring_address": (1 << 64) - 64 * 64}, CAUSE_BAD_LENGTH),
        (64, {"tx_head_address": BASE + 4}, CAUSE_DMA_ERROR),
        (64, {"credit_address": BASE + 4}, CAUSE_DMA_ERROR),
    ]
    for entries, more, _ in wrong:
        await bench.start(0, entries, **more)
        await bench.ring(0, 1)
        await bench.cycles(30)
    dut.window_mask_i.value = 3
    await bench.start(0, 64)
    dut.window_mask_i.value = WINDOW_LINES - 1
    causes = [cause for _, _, cause in wrong] + [CAUSE_BAD_LENGTH]
    assert bench.failed == [(0, cause) for cause in causes], bench.failed
    assert not bench.reads.requests
