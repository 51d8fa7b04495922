"""What fails a queue, what waits, and what is dropped."""

from __future__ import annotations

from typing import Any

import cocotb

from kpio.bench import ALL_BYTES, LINES, Bench, default_eop, stuffed

EOP = default_eop()
LOW = (1 << 32) - 1
HIGH = ALL_BYTES ^ LOW


def frame(count: int, seed: int) -> bytes:
    """A frame of `count` bytes that has no signature."""
    return bytes((seed * 7 + i) & 0xFF for i in range(count))


@cocotb.test()
async def a_sender_that_overruns_fails_its_queue_and_what_is_complete_leaves(dut: Any) -> None:
    """Without credits and without back-pressure a line too many fails the queue."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(0)
    await bench.start(1)
    bench.ready_share = 0.0
    await bench.cycles(2)
    for n in range(LINES // 2):
        await bench.lines(0, 2 * n, stuffed(frame(64, n), EOP))
    await bench.piece(0, 0, bytes(64))
    await bench.piece(0, 0, bytes(64))
    await bench.lines(1, 0, stuffed(frame(16, 1), EOP))
    await bench.cycles(20)
    bench.ready_share = 1.0
    await bench.quiet()
    assert bench.failed == [(0, "overrun")]
    assert bench.frames == [(0, frame(64, n)) for n in range(LINES // 2)] + [(1, frame(16, 1))]
    counters = bench.taken_counters()
    assert (counters["overruns"], counters["quarantined_writes"]) == (1, 1)
    assert bench.freed == {0: LINES, 1: 1}


@cocotb.test()
async def with_back_pressure_a_line_waits_for_room(dut: Any) -> None:
    """A full queue holds the line until the wire has taken a frame; nothing is lost."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(2, backpressure=1)
    bench.ready_share = 0.0
    await bench.cycles(2)
    sent = [frame(56, n) for n in range(LINES + 20)]
    writer = cocotb.start_soon(bench.lines(2, 0, [line for one in sent for line in stuffed(one, EOP)]))
    await bench.cycles(200)
    assert not writer.done(), "the writer waits"
    bench.ready_share = 0.5
    await writer
    await bench.quiet()
    assert bench.frames == [(2, one) for one in sent]
    assert not bench.failed
    assert bench.taken_counters()["refused_writes"] >= 1
    assert bench.freed[2] == len(sent)


@cocotb.test()
async def a_hole_that_stands_too_long_fails_the_queue(dut: Any) -> None:
    """A line that stays incomplete behind others is a hole; one that closes in time is not fatal."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(0, hole_timeout_ns=1000)
    await bench.start(1, hole_timeout_ns=1000)
    await bench.start(3, hole_timeout_ns=0)
    for queue in (0, 1, 3):
        await bench.piece(queue, 0, bytes(64), LOW)
    await bench.cycles(500)
    assert not bench.failed and bench.counters["holes"] == 0, "a line that is on its way is no hole"
    for queue in (0, 1, 3):
        await bench.lines(queue, 1, stuffed(frame(56, queue), EOP))
    await bench.cycles(100)
    assert bench.counters["holes"] == 3
    await bench.piece(1, 0, bytes(64), HIGH)
    begun = bench.now_ns
    while not bench.failed:
        await bench.cycles(1)
        assert bench.now_ns < begun + 2000, "the time-out comes"
    await bench.cycles(500)
    assert bench.failed == [(0, "hole_timeout")]
    assert bench.taken_counters()["hole_timeouts"] == 1
    assert bench.frames == [(queue, frame(56, queue)) for queue in (0, 1, 3)]


@cocotb.test()
async def the_time_out_is_kept_to_the_scan(dut: Any) -> None:
    """A hole stands its whole time-out, and no longer than a scan over the queues more."""
    bench = Bench(dut)
    await bench.open()
    # Across a carry of each 16-bit part of the time.
    for base in (0, 0xFE00, 0xFFFF_FC00, (1 << 48) - 0x400):
        bench.now_ns = base
        await bench.start(1, hole_timeout_ns=0x600)
        bench.failed.clear()
        await bench.piece(1, 0, bytes(64), LOW)
        await bench.piece(1, 1, bytes(64), LOW)
        begun = bench.cycle
        while not bench.failed:
            await bench.cycles(1)
            bench.now_ns &= (1 << 48) - 1
            assert bench.cycle < begun + 800, f"the time-out comes from {base:#x}"
        waited = (bench.cycle - begun) * 4
        assert 0x600 - 40 <= waited <= 0x600 + 4 * (7 * 4 + 30), f"{waited} ns from {base:#x}"
        await bench.stop(1)


@cocotb.test()
async def a_byte_twice_and_an_eleventh_line_in_pieces_fail_the_queue(dut: Any) -> None:
    """Clobber and span_exceeded."""
    bench = Bench(dut)
    await bench.open()
    for queue in range(4):
        await bench.start(queue)
    await bench.piece(0, 5, bytes(64), LOW)
    await bench.piece(0, 5, bytes(64), 1 << 31)
    for line in range(11):
        await bench.piece(1, line, bytes(64), LOW)
    for line in range(10):
        await bench.piece(2, line, bytes(64), LOW)
    await bench.piece(2, 10, bytes(64))
    await bench.piece(3, 0, bytes(64), LOW)
    await bench.piece(3, 0, bytes(64))
    await bench.quiet()
    assert bench.failed == [(0, "clobber"), (1, "span_exceeded"), (2, "span_exceeded"), (3, "clobber")]
    counters = bench.taken_counters()
    assert (counters["clobbers"], counters["span_exceeded"]) == (2, 2)


@cocotb.test()
async def failures_wait_until_they_are_taken(dut: Any) -> None:
    """Each failure is told once, in order."""
    bench = Bench(dut)
    await bench.open()
    dut.failed_ready_i.value = 0
    for queue in range(4):
        await bench.start(queue)
        for _ in range(3):
            await bench.piece(queue, 0, bytes(64), LOW)
    await bench.quiet()
    assert not bench.failed
    dut.failed_ready_i.value = 1
    await bench.quiet()
    assert bench.failed == [(queue, "clobber") for queue in range(4)]
    assert bench.taken_counters()["quarantined_writes"] == 4


@cocotb.test()
async def lengths_that_make_no_frame_are_counted_and_freed(dut: Any) -> None:
    """Empty, runt, too long, longer than the window, and damaged packets leave nothing but credits."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(0)
    at = await bench.lines(0, 0, stuffed(b"", EOP))
    at = await bench.lines(0, at, stuffed(frame(8, 1), EOP))
    damaged = frame(16, 1) + EOP.to_bytes(8, "little") + frame(40, 1)
    at = await bench.lines(0, at, [damaged])
    await bench.quiet()
    at = await bench.lines(0, at, [*[frame(64, 3)] * 3, EOP.to_bytes(8, "little") * 8])
    at = await bench.lines(0, at, stuffed(frame(80, 2), EOP))
    await bench.quiet()
    assert bench.frames == [(0, frame(80, 2))]
    assert bench.freed[0] == at == 9
    counters = bench.taken_counters()
    assert (counters["kpio_malformed"], counters["runts"], counters["kpio_frames"]) == (2, 1, 1)
    # A packet as long as the window is let go, and all of it comes back.
    for _ in range(3 * LINES):
        await bench.lines(0, at, [frame(64, 3)])
        at += 1
        await bench.cycles(20)
    await bench.quiet()
    counters = bench.taken_counters()
    assert (counters["bad_lengths"], bench.freed[0]) == (1, at)
    assert not bench.failed


@cocotb.test()
async def a_hole_that_closes_as_its_time_ends_fails_the_queue_or_leaves_it_at_work(dut: Any) -> None:
    """Whatever the two cycles are, a queue of which no failure is told takes lines."""
    bench = Bench(dut)
    await bench.open()
    outcomes = set()
    for wait in range(60, 140):
        bench.failed.clear()
        bench.frames.clear()
        await bench.start(1, hole_timeout_ns=400)
        await bench.piece(1, 0, bytes(64), LOW)
        await bench.piece(1, 1, bytes(64), LOW)
        await bench.cycles(wait)
        await bench.piece(1, 0, bytes(64), HIGH)
        await bench.piece(1, 1, bytes(64), HIGH)
        await bench.lines(1, 2, stuffed(frame(56, 1), EOP))
        await bench.cycles(60)
        outcomes.add(bool(bench.failed))
        assert bool(bench.failed) != bool(bench.frames), f"{wait} cycles: neither failed nor at work"
        await bench.stop(1)
    assert outcomes == {False, True}, "the hole closes before its time in some rounds, and after it in others"
