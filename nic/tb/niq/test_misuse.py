"""What a sender may get wrong: every case fails its queue with its cause, or is counted and done in its turn."""

from __future__ import annotations

from collections.abc import Callable

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import LINE_BYTES, Habits

from niq.bench import ADDRESS, ALL_BYTES, LINES, MAX_FRAME, WHOLE, Bench, Queue, header
from seeds import seeds


async def fails(dut: SimHandleBase, cause: str, act: Callable[[Bench, Queue], None], **settings: int) -> None:
    """Starts a queue, lets `act` store what is wrong, and looks for the failure; then the queue works again."""
    bench = Bench(dut, 40)
    await bench.begin()
    entry_lines = settings.pop("entry_lines", 1)
    queue = await bench.start(0, entry_lines, **settings)
    act(bench, queue)
    await bench.store(queue)
    await bench.cycles(40)
    assert bench.failed == [(0, cause)], bench.failed
    plural = {"clobber": "clobbers", "overrun": "overruns", "hole_timeout": "hole_timeouts"}
    plural |= {"bad_header": "bad_headers", "bad_length": "bad_lengths"}
    assert bench.counters[plural.get(cause, cause)] == 1, bench.counters
    dropped = bench.counters["quarantined_writes"]
    bench.put_piece(0, 0, bytes(LINE_BYTES), ALL_BYTES)
    assert await bench.taken()
    await bench.cycles(20)
    assert bench.counters["quarantined_writes"] == dropped + 1 and len(bench.failed) == 1
    bench.check_frames()
    await bench.stop(0)
    # Frames that had begun to leave still do.
    bench.frame_ready = 1.0
    await bench.cycles(30)
    bench.frames.clear()
    again = await bench.start(0, entry_lines, epoch=9)
    bench.send(again, 20)
    await bench.store(again)
    await bench.settle()


def wrong_word(change: Callable[[int], int]) -> Callable[[Bench, Queue], None]:
    def act(bench: Bench, queue: Queue) -> None:
        bench.send(queue, 30)
        bench.send(queue, 30)
        queue.expected.pop()
        queue.written -= 1
        while len(queue.stores) and queue.stores[-1][0] == queue.line(1):
            queue.stores.pop()
        word = change(header(20, WHOLE, queue.epoch, 1))
        queue.stores.extend(bench.entry(queue, word, 0, b""))

    return act


@cocotb.test()
async def a_head_of_another_epoch_place_or_kind_fails_the_queue(dut: SimHandleBase) -> None:
    for change in (
        lambda word: word ^ 1 << 24,
        lambda word: word + (1 << 32),
        lambda word: word | 1 << 63,
        lambda word: word | 1 << 21,
        lambda word: word ^ 5 << 16,
        lambda word: 0,
    ):
        await fails(dut, "bad_header", wrong_word(change))


@cocotb.test()
async def a_whole_frame_longer_than_its_entry_fails_the_queue(dut: SimHandleBase) -> None:
    await fails(dut, "bad_length", wrong_word(lambda word: word & ~0xFFFF | 49))


@cocotb.test()
async def a_byte_that_comes_twice_fails_the_queue(dut: SimHandleBase) -> None:
    def act(bench: Bench, queue: Queue) -> None:
        bench.put_piece(0, 0, bytes(LINE_BYTES), 0)
        queue.stores.append((0, bytes(LINE_BYTES), 0xFF0))
        queue.stores.append((0, bytes(LINE_BYTES), 0x010))

    await fails(dut, "clobber", act)


@cocotb.test()
async def an_entry_before_its_turn_fails_the_queue(dut: SimHandleBase) -> None:
    def act(bench: Bench, queue: Queue) -> None:
        queue.stores.append((1, bytes(LINE_BYTES), ALL_BYTES))

    await fails(dut, "span_exceeded", act)


@cocotb.test()
async def an_entry_in_a_place_that_is_not_free_fails_the_queue(dut: SimHandleBase) -> None:
    def act(bench: Bench, queue: Queue) -> None:
        bench.frame_ready = 0.0
        for _ in range(queue.entries + 1):
            bench.send(queue, 20)
        queue.expected.pop()

    await fails(dut, "overrun", act)


@cocotb.test()
async def a_hole_that_stands_too_long_fails_the_queue(dut: SimHandleBase) -> None:
    bench = Bench(dut, 41)
    await bench.begin()
    queue = await bench.start(0, hole_timeout_ns=4000)
    for _ in range(3):
        bench.send(queue, 40)
        await bench.store(queue)
        await bench.settle()
    await bench.cycles(2000)
    assert not bench.failed, "nothing is missing"
    bench.put_piece(0, queue.line(3), bytes(LINE_BYTES), 0xFFFF)
    assert await bench.taken()
    await bench.cycles(900)
    assert not bench.failed, "it is not time yet"
    await bench.cycles(200)
    assert bench.failed == [(0, "hole_timeout")] and bench.counters["hole_timeouts"] == 1
    await bench.stop(0)
    await bench.start(0, hole_timeout_ns=4000)
    await bench.cycles(1200)
    assert len(bench.failed) == 1


@cocotb.test()
async def with_back_pressure_a_piece_waits_for_its_place(dut: SimHandleBase) -> None:
    bench = Bench(dut, 42)
    await bench.begin()
    bench.frame_ready = 0.0
    queue = await bench.start(0, backpressure=1)
    for _ in range(queue.entries):
        bench.send(queue, 20)
    await bench.store(queue)
    bench.send(queue, 20)
    bench.send(queue, 21)
    bench.offer(queue)
    assert await bench.taken(), "the first that waits is taken in"
    bench.offer(queue)
    assert not await bench.taken(200), "the next one waits outside"
    assert bench.counters["refused_writes"] == 1 and int(dut.is_settled_o.value)
    bench.frame_ready = 1.0
    assert await bench.taken()
    await bench.store(queue)
    await bench.settle()
    # A stop lets a piece that waits go.
    bench.frame_ready = 0.0
    for _ in range(queue.entries):
        bench.send(queue, 20)
    await bench.store(queue)
    bench.send(queue, 20)
    bench.offer(queue)
    assert await bench.taken()
    await bench.cycles(30)
    await bench.stop(0)
    await bench.cycles(30)
    dut.piece_valid_i.value = 0
    assert not bench.failed
    bench.check_frames()
    bench.frame_ready = 1.0
    await bench.cycles(30)
    bench.frames.clear()
    queue = await bench.start(0, backpressure=1)
    bench.send(queue, 33)
    await bench.store(queue)
    await bench.settle()


@cocotb.test()
async def frames_that_make_no_sense_are_counted_and_done_in_their_turn(dut: SimHandleBase) -> None:
    bench = Bench(dut, 43)
    await bench.begin()
    queue = await bench.start(0)

    def bad(length: int, kind: int, address: int = 0) -> None:
        queue.stores.extend(bench.entry(queue, header(length, kind, queue.epoch, queue.written), address, b""))

    cases = [
        (0, WHOLE, 0, "bad_lengths"),
        (13, WHOLE, 0, "runts"),
        (0, ADDRESS, queue.slot(0), "bad_lengths"),
        (5, ADDRESS, queue.slot(0), "runts"),
        (MAX_FRAME + 1, ADDRESS, queue.slot(0), "bad_lengths"),
        (65535, ADDRESS, queue.slot(0), "bad_lengths"),
        (100, ADDRESS, (1 << 64) - 100, "dma_errors"),
        (100, ADDRESS, (1 << 64) - 101, "dma_errors"),
        (9000, ADDRESS, 0x123, "dma_errors"),
    ]
    for length, kind, address, counter in cases:
        before = bench.counters[counter]
        while bench.room(queue) < 2:
            await bench.cycles(1)
        bad(length, kind, address)
        bench.send(queue, 30)
        await bench.store(queue)
        await bench.settle()
        await bench.cycles(20)
        assert bench.counters[counter] > before, (length, kind, address, counter)
    assert not bench.failed


@cocotb.test()
async def settings_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = Bench(dut, 44)
    await bench.begin()
    for settings, cause in (
        ({"entry_lines_log2": 3}, "bad_length"),
        ({"tx_head_address": 4}, "dma_error"),
    ):
        await bench.start(0, 1, **settings)
        assert bench.failed == [(0, cause)]
        bench.failed.clear()
        await bench.stop(0)
    too_large = (LINES.bit_length() - 1) if LINES <= 4 else 3
    await bench.start(0, 1, entry_lines_log2=too_large)
    assert bench.failed == [(0, "bad_length")]
    await bench.stop(0)
    assert bench.counters["bad_lengths"] == 2


@cocotb.test()
async def whatever_is_stored_ends_in_whole_entries_or_a_failed_queue(dut: SimHandleBase) -> None:
    for seed in seeds(60):
        bench = Bench(dut, 500 + seed, Habits(write_ready=1.0))
        rng = bench.rng
        await bench.begin()
        entry_lines = 2 if LINES >= 4 else 1
        queue = await bench.start(0, entry_lines, hole_timeout_ns=rng.choice([0, 300]))
        for _ in range(400):
            if bench.failed:
                break
            if rng.randrange(3) and bench.room(queue) > 0:
                bench.send(queue, rng.randrange(14, queue.room + 1))
                await bench.store(queue)
            else:
                mask = rng.choice([rng.getrandbits(64), 0xFF << rng.randrange(57)]) or 1
                bench.put_piece(0, rng.randrange(LINES), rng.randbytes(LINE_BYTES), mask)
                assert await bench.taken()
            bench.check_frames()
        await bench.cycles(300)
        assert [number for number, _ in bench.failed] == [0], bench.failed
        bench.check_frames()
