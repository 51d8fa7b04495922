"""Who gets how much of the wire: strict between classes, by weight inside one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cocotb

from egress.arbiter_bench import MAX_FRAME_BYTES, SHARE_BYTES, Bench

# What two streams that wait may differ by, each divided by its weight: frame_shares.sv.
BOUND = 2 * SHARE_BYTES + MAX_FRAME_BYTES


async def shares(bench: Bench, streams: list[tuple[int, int]], cycles: int) -> list[int]:
    """Streams of (weight, bytes of a frame) in one class, all with more than they can send.

    Gives what each sent, and checks that over no stretch of time any two differ by more than the bound.
    """
    await bench.open()
    for stream, (weight, size) in enumerate(streams):
        await bench.start(stream, 2, weight)
        for _ in range(cycles * 64 // size + 1):
            bench.put(stream, stream, size)
    while bench.cycle < cycles:
        await bench.cycles(100)
    sent = [0.0] * len(streams)
    for one, other in [(i, j) for i in range(len(streams)) for j in range(i)]:
        sent = [0.0] * len(streams)
        seen = [0.0]
        for stream, frame in bench.sent:
            sent[stream] += len(frame.data) / max(1, streams[stream][0])
            seen.append(sent[one] - sent[other])
        assert max(seen) - min(seen) <= BOUND, f"streams {one} and {other}: {max(seen) - min(seen)} bytes apart"
    total = [sum(len(frame.data) for stream, frame in bench.sent if stream == i) for i in range(len(streams))]
    bench.dut._log.info("%s: %s bytes", streams, total)
    return total


@cocotb.test()
async def equal_weights_short_and_long_frames(dut: Any) -> None:
    """Bytes count, not frames."""
    await shares(Bench(dut), [(1, 64), (1, MAX_FRAME_BYTES), (0, 700)], 6_000)


@cocotb.test()
async def weights_one_two_five(dut: Any) -> None:
    """In proportion, over so long a time that the bound on bytes leaves no ratio outside of these.

    Each weight's share is then some 320 kB, at least 280 for the slowest, of which the bound is 15 %.
    """
    total = await shares(Bench(dut), [(1, 64), (2, 1514), (5, 200)], 48_000)
    assert abs(total[2] / total[0] - 5) < 1 and abs(total[1] / total[0] - 2) < 0.5


@cocotb.test()
async def equal_streams_alternate_frame_by_frame(dut: Any) -> None:
    """While none is ahead nobody waits for more than a frame of each; with this weight none comes to be in the test."""
    bench = Bench(dut)
    await bench.open()
    for stream in range(3):
        await bench.start(stream, 0, 255)
        for _ in range(60):
            bench.put(stream, stream, 256)
    await bench.drained()
    assert all(one != other for (one, _), (other, _) in pairwise(bench.sent[3:150]))


@cocotb.test()
async def a_stream_that_pauses_between_frames_has_its_share(dut: Any) -> None:
    """An engine with a frame every second cycle and one with a frame every cycle have half of the wire each."""
    bench = Bench(dut)
    await bench.open()
    for stream in range(2):
        await bench.start(stream, 1, 1)
        for _ in range(6_000):
            bench.put(stream, stream, 64)
    bench.sources[0].rest = 1
    while bench.cycle < 6_000:
        await bench.cycles(100)
    slow = sum(1 for stream, _ in bench.sent if stream == 0)
    dut._log.info("%d of %d frames are the slow stream's", slow, len(bench.sent))
    assert slow * 64 >= len(bench.sent) * 32 - SHARE_BYTES, "it has half, give or take a share"


@cocotb.test()
async def traffic_of_one_class_does_not_count_in_another(dut: Any) -> None:
    """An engine with much of the first class has no less of the second than one that has only that."""
    bench = Bench(dut)
    await bench.open()
    await bench.start(0, 0, 1)
    await bench.start(1, 1, 1)
    await bench.start(2, 1, 1)
    for _ in range(6_000):
        bench.put(0, 0, 128)
        bench.put(0, 1, 64)
        bench.put(1, 2, 64)
    while bench.cycle < 8_000:
        await bench.cycles(100)
    second = [sum(len(f.data) for s, f in bench.sent if s == stream and f.rank == 1) for stream in range(2)]
    dut._log.info("of the second class: %s bytes", second)
    assert abs(second[0] - second[1]) <= BOUND and min(second) > 4 * SHARE_BYTES


@cocotb.test()
async def a_class_before_takes_all(dut: Any) -> None:
    """While it has frames nothing else leaves, but the frame that has begun and those that no one saw in time."""
    bench = Bench(dut)
    await bench.open()
    for stream, rank in enumerate((3, 1, 2)):
        await bench.start(stream, rank, 255)
        for _ in range(200):
            bench.put(stream, stream, 64 * (stream + 1))
    await bench.drained()
    order = [stream for stream, _ in bench.sent]
    late = [n for n, stream in enumerate(order) if stream == 1]
    assert late[-1] <= 203 and order[late[-1] + 1 : late[-1] + 198].count(2) >= 195


@cocotb.test()
async def who_comes_back_is_one_share_behind_at_most(dut: Any) -> None:
    """A stream that was idle for long has no claim for all that time."""
    bench = Bench(dut)
    await bench.open()
    for stream in range(2):
        await bench.start(stream, 0, 1)
    for _ in range(6_000):
        bench.put(0, 0, 64)
    while bench.cycle < 3_000:
        await bench.cycles(50)
    for _ in range(3_000):
        bench.put(1, 1, 64)
    before = len(bench.sent)
    while bench.cycle < 5_000:
        await bench.cycles(50)
    after = [stream for stream, _ in bench.sent[before:]]
    lead = max(after[:n].count(1) - after[:n].count(0) for n in range(len(after)))
    dut._log.info("at most %d frames ahead", lead)
    assert lead * 64 <= 2 * SHARE_BYTES + 64
    assert after[-1000:].count(0) > 300, "the other has its share again"
