"""Frames of every size from every stream and class: unchanged, in order, by class, and without gaps."""

from __future__ import annotations

from typing import Any

import cocotb

from egress.arbiter_bench import BEAT_BYTES, CLASSES, MAX_FRAME_BYTES, QUEUES, STREAMS, Bench

SIZES = [1, 14, 56, 63, 64, 65, 127, 128, 129, 200, 512, 1514]


async def started(bench: Bench) -> None:
    """Every queue in a class of its own choice, with classes that are not there among them."""
    await bench.open()
    for queue in range(min(QUEUES, 64)):
        await bench.start(queue, bench.random.randrange(16), bench.random.randrange(4))


def fill(bench: Bench, count: int) -> None:
    """Random frames for all streams."""
    for _ in range(count):
        size = bench.random.choice(SIZES + [bench.random.randrange(1, 700)])
        bench.put(bench.random.randrange(STREAMS), bench.random.randrange(min(QUEUES, 64)), size)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Pauses between frames, and a wire that waits more and less."""
    bench = Bench(dut)
    await started(bench)
    for share in (1.0, 0.7, 0.3):
        bench.ready_share = share
        for source in bench.sources:
            source.pause = bench.random.choice([0.0, 0.3, 0.9])
            source.rest = bench.random.choice([0, 0, 1, 7])
        fill(bench, 150 * STREAMS)
        await bench.drained()
    assert len(bench.sent) == 3 * 150 * STREAMS


@cocotb.test()
async def sources_that_pause_inside_frames(dut: Any) -> None:
    """The wire waits for them; nothing is mixed."""
    bench = Bench(dut)
    await started(bench)
    bench.ready_share = 0.8
    for source in bench.sources:
        source.inner_pause, source.pause = 0.4, 0.2
    fill(bench, 100 * STREAMS)
    await bench.drained()


@cocotb.test()
async def queues_that_change_class_between_frames(dut: Any) -> None:
    """A frame has the class that its queue had when it came in."""
    bench = Bench(dut)
    await started(bench)
    for _ in range(30):
        fill(bench, 4 * STREAMS)
        await bench.drained()
        await bench.start(bench.random.randrange(min(QUEUES, 64)), bench.random.randrange(CLASSES))


@cocotb.test()
async def frames_of_one_beat_without_gaps(dut: Any) -> None:
    """The hardest case: another stream's frame in every cycle, or the same stream's."""
    bench = Bench(dut)
    await started(bench)
    for senders in ([0], [STREAMS - 1], list(range(STREAMS))):
        bench.beats_at.clear()
        for n in range(300):
            bench.put(senders[n % len(senders)], n % min(QUEUES, 64), 1 + n % BEAT_BYTES)
        await bench.drained()
        cycles = bench.beats_at[-1] - bench.beats_at[0] + 1
        dut._log.info("%d streams: 300 frames of one beat in %d cycles", len(senders), cycles)
        assert cycles == 300


@cocotb.test()
async def long_and_short_frames_without_gaps(dut: Any) -> None:
    """A beat a cycle while anything waits."""
    bench = Bench(dut)
    await started(bench)
    for n in range(20 * STREAMS):
        bench.put(n % STREAMS, n % min(QUEUES, 64), [MAX_FRAME_BYTES, 64, 65, 1500][(n // STREAMS) % 4])
    beats = sum((len(frame.data) + 63) // 64 for source in bench.sources for frame in source.frames)
    await bench.drained()
    assert len(bench.beats_at) == beats == bench.beats_at[-1] - bench.beats_at[0] + 1


@cocotb.test()
async def latency(dut: Any) -> None:
    """Three cycles alone, as the contract says; one more beside another."""
    bench = Bench(dut)
    await started(bench)
    bench.put(STREAMS - 1, 0, 64)
    await bench.drained()
    assert bench.sent_at[-1] - bench.sent[-1][1].first_in == 3
    for stream in range(2):
        bench.put(stream, 0, 64)
    await bench.drained()
    assert bench.sent_at[-2] - bench.sent[-2][1].first_in == 4


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    """Nothing of before is seen after it, and class and weight stay."""
    bench = Bench(dut)
    await started(bench)
    for _ in range(6):
        fill(bench, 20 * STREAMS)
        bench.ready_share = 0.5
        await bench.cycles(bench.random.randrange(40, 200))
        await bench.reset()
        fill(bench, 5 * STREAMS)
        await bench.drained()
