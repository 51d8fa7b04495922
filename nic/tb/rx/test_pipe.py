"""Frames through a pipe: whole, in order, told of by notifications that none overwrites."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import LINE_BYTES, Habits

from rx.bench import CAUSE_BAD_LENGTH, CAUSE_DMA_ERROR, COMPLETIONS_AT, MAX_FRAME, PIPE, RING, Bench
from rx.test_traffic import some_frame
from seeds import seeds


async def random_run(dut: SimHandleBase, seed: int) -> None:
    rng = random.Random(seed)
    habits = Habits(write_ready=rng.choice([0.2, 0.8, 1.0]))
    bench = Bench(dut, seed, habits)
    bench.wire_valid = rng.choice([0.3, 1.0])
    await bench.begin()
    numbers = sorted(rng.sample(range(min(bench.count, 64)), min(bench.count, rng.choice([1, 2, 4]))))
    longest = rng.choice([64, 1514, MAX_FRAME])
    least = (-(-(8 + longest) // LINE_BYTES) - 1).bit_length()
    for number in numbers:
        kind = rng.choice([RING, PIPE, PIPE])
        notes = 1 << rng.randrange(4)
        await bench.start(number, kind, 1 << rng.randrange(least, least + 4), rx_notify_entries=notes)
    for _ in range(12):
        for _ in range(rng.randrange(1, 25)):
            bench.send(some_frame(rng, longest))
        await bench.cycles(rng.randrange(1, 300))
        bench.check_frames(rng.randrange(1, 20))
        queue = bench.queues[rng.choice(numbers)]
        await bench.ring(queue.number, queue.next)
    await bench.settle()
    received = sum(queue.received for queue in bench.queues.values())
    assert bench.counters["rx_frames"] == received == len(bench.sent)
    told = sum(queue.told for queue in bench.queues.values())
    assert bench.counters["notifications"] == told <= received
    for name in ("bad_accesses", "dma_errors", "bad_lengths", "rx_no_space", "rx_oversize"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert not bench.failed
    await bench.cycles(100)
    assert len(bench.interrupts) >= 1 and set(bench.interrupts) <= set(numbers)


@cocotb.test()
async def frames_come_whole_and_in_order_through_pipes(dut: SimHandleBase) -> None:
    for seed in seeds(12):
        await random_run(dut, 700 + seed)


@cocotb.test()
async def a_frame_and_its_header_are_one_write_and_the_host_is_told_once_a_batch(dut: SimHandleBase) -> None:
    bench = Bench(dut, 720, Habits(write_ready=1.0))
    await bench.begin()
    queue = await bench.start(0, PIPE, 16, rx_notify_entries=2)
    for _ in range(4):
        bench.send(bytes(range(20)))
        await bench.cycles(100)
    frames = [(address, data) for address, data in bench.writes.log if address < queue.at + COMPLETIONS_AT]
    assert [address for address, _ in frames] == [queue.at + 64 * i for i in range(4)]
    assert all(data == (20).to_bytes(8, "little") + bytes(range(20)) for _, data in frames)
    assert bench.counters["notifications"] == 1, "the second is due when the host has seen the first"
    bench.check_frames()
    assert queue.tail == 1
    await bench.ring(0, 1)
    await bench.cycles(60)
    bench.check_frames()
    assert queue.tail == 4 and bench.counters["notifications"] == 2 and queue.received == 4
    # More than was told of cannot have been freed.
    bench.send(bytes(30))
    await bench.cycles(100)
    await bench.ring(0, 5)
    await bench.cycles(60)
    assert bench.counters["bad_accesses"] == 1 and bench.counters["notifications"] == 2
    await bench.ring(0, 2)
    await bench.cycles(60)
    assert bench.counters["notifications"] == 3


@cocotb.test()
async def pipes_that_make_no_sense_do_not_start(dut: SimHandleBase) -> None:
    bench = Bench(dut, 730)
    await bench.begin()
    good = {"rx_mode": PIPE, "rx_notify_entries": 4}
    for settings, cause in (
        ({"rx_ring_entries": 3}, CAUSE_BAD_LENGTH),
        ({"rx_notify_entries": 0}, CAUSE_BAD_LENGTH),
        ({"rx_notify_entries": 1 << 17}, CAUSE_BAD_LENGTH),
        ({"rx_notify_entries": 6}, CAUSE_BAD_LENGTH),
        ({"rx_ring_address": 0x1008}, CAUSE_DMA_ERROR),
        ({"rx_completion_address": (1 << 64) - 8}, CAUSE_DMA_ERROR),
        ({"rx_completion_address": 12}, CAUSE_DMA_ERROR),
    ):
        await bench.start(0, PIPE, 16, **(good | settings))
        assert bench.failed == [(0, cause)], (settings, bench.failed)
        bench.failed.clear()
        await bench.stop(0)
