"""Starts and stops of queues, and resets, in the middle of traffic."""

from __future__ import annotations

from typing import Any

import cocotb

from kpio.bench import ALL_BYTES, LINES, QUEUES, Bench, default_eop, stuffed

EOP = default_eop()


def frame(count: int, seed: int) -> bytes:
    """A frame of `count` bytes that has no signature."""
    return bytes((seed * 7 + i) & 0xFF for i in range(count))


@cocotb.test()
async def a_stopped_queue_forgets_everything(dut: Any) -> None:
    """Frames, an open packet and pieces of the earlier life never come out; counts begin again."""
    bench = Bench(dut)
    await bench.open()
    for life in range(40):
        bench.frames.clear()
        await bench.start(0)
        bench.ready_share = 0.0
        await bench.cycles(2)
        held = bench.random.randrange(LINES)
        at = 0
        for n in range(held):
            at = await bench.lines(0, at, stuffed(frame(48, n + 100 * life), EOP))
        if at < LINES:
            await bench.piece(0, at, bytes(64), 0xFF)
            at += 1
        await bench.cycles(bench.random.randrange(12))
        stop = cocotb.start_soon(bench.stop(0))
        delay = bench.random.randrange(1, 40)
        await bench.cycles(delay)
        bench.ready_share = 0.7
        await stop
        await bench.cycles(2)
        went_out = len(bench.frames)
        # At most the frames that the egress has begun to read, and those that leave while the stop comes through.
        most = 3 + max(0, 16 - delay)
        assert went_out <= most, f"{went_out} frames of {held} left after {delay} cycles"
        assert bench.frames == [(0, frame(48, n + 100 * life)) for n in range(went_out)]
        await bench.quiet()
        assert len(bench.frames) == went_out, "nothing leaves after the stop"
        await bench.start(0)
        await bench.lines(0, 0, stuffed(frame(56, life), EOP))
        await bench.quiet()
        assert bench.frames[went_out:] == [(0, frame(56, life))]
        assert bench.freed[0] == 1
        await bench.stop(0)
    assert not bench.failed


@cocotb.test()
async def writes_to_a_queue_that_is_not_started_are_dropped_and_counted(dut: Any) -> None:
    """Whole lines and pieces alike."""
    bench = Bench(dut)
    await bench.open()
    await bench.piece(0, 0, bytes(64))
    await bench.piece(0, 0, bytes(64), 0xFF)
    await bench.start(0)
    await bench.lines(0, 0, stuffed(frame(16, 1), EOP))
    await bench.quiet()
    await bench.stop(0)
    await bench.piece(0, 0, bytes(64))
    await bench.quiet()
    assert bench.taken_counters() == {"quarantined_writes": 3, "kpio_lines": 1, "kpio_frames": 1}
    assert bench.frames == [(0, frame(16, 1))]


@cocotb.test()
async def a_stop_frees_a_line_that_waits_for_room(dut: Any) -> None:
    """The host can stop a queue with back-pressure although the wire stands still."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(0, backpressure=1)
    bench.ready_share = 0.0
    await bench.cycles(2)
    fill = [line for n in range(LINES + 40) for line in stuffed(frame(16, n), EOP)]
    writer = cocotb.start_soon(bench.lines(0, 0, fill))
    await bench.cycles(LINES + 100)
    assert not writer.done()
    stop = cocotb.start_soon(bench.stop(0))
    await bench.cycles(60)
    assert writer.done(), "the lines behind are let go"
    bench.ready_share = 1.0
    await stop
    await writer
    await bench.quiet()
    assert len(bench.frames) <= 3
    assert not bench.failed


@cocotb.test()
async def a_reset_in_the_middle_of_traffic_leaves_nothing(dut: Any) -> None:
    """After it the engine works as new, whatever was under way."""
    bench = Bench(dut)
    await bench.open()
    for n in range(30):
        for queue in range(QUEUES):
            await bench.start(queue, backpressure=1, hole_timeout_ns=100)
        bench.ready_share = bench.random.random()
        for at in range(bench.random.randrange(1, 3 * LINES)):
            queue = bench.random.randrange(QUEUES)
            enables = bench.random.choice([ALL_BYTES, ALL_BYTES, 0xFF << 8 * bench.random.randrange(8)])
            bench.offer(queue, at, stuffed(frame(56, n), EOP)[0], enables)
            await bench.cycles(1)
        await bench.cycles(bench.random.randrange(20))
        await bench.reset()
        bench.ready_share = 1.0
        assert not bench.frames, "nothing of before"
        bench.failed.clear()
        queue = n % QUEUES
        await bench.start(queue)
        await bench.lines(queue, 0, stuffed(frame(56, n), EOP))
        await bench.quiet()
        assert bench.frames == [(queue, frame(56, n))]
        assert bench.freed == {queue: 1}
        assert not bench.failed
        await bench.stop(queue)
        await bench.reset()
