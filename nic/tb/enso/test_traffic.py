"""Order, bytes and head counts of random traffic in pipes, under an unkind host and a wire that stalls."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import MIN_FRAME, Queue
from dma.host import Habits
from enso.bench import MAX_FRAME, PipeBench, lines_of
from seeds import seeds


def habits(rng: random.Random) -> Habits:
    return Habits(
        latency=rng.choice([(1, 5), (1, 200), (100, 110)]),
        request_ready=rng.choice([0.3, 0.8, 1.0]),
        write_ready=rng.choice([0.1, 0.8, 1.0]),
        answer=rng.choice([0.5, 1.0]),
    )


async def random_run(dut: SimHandleBase, seed: int) -> None:
    rng = random.Random(seed)
    bench = PipeBench(dut, seed, habits(rng))
    bench.frame_ready = rng.choice([0.2, 0.8, 1.0])
    await bench.begin()
    numbers = rng.sample(range(min(bench.count, 64)), min(bench.count, rng.choice([1, 3, 4])))
    longest = rng.choice([64, 300, 1500, MAX_FRAME])
    told: dict[int, int] = {}
    left: dict[int, int] = {}
    for number in numbers:
        entries = 1 << rng.randrange((lines_of(longest) - 1).bit_length(), 12)
        await bench.start(
            number, entries, tx_moderation_frames=rng.randrange(0, 6), tx_moderation_ns=rng.choice([0, 0, 400])
        )
        told[number], left[number] = 0, 40
    while any(left.values()) or any(told[number] < bench.queues[number].posted for number in numbers):
        queue: Queue = bench.queues[rng.choice(numbers)]
        for _ in range(rng.randrange(1, 20)):
            length = rng.choice([rng.randrange(MIN_FRAME, longest + 1), min(longest, 64), MIN_FRAME])
            if not left[queue.number] or bench.room(queue) < lines_of(length):
                break
            bench.post(queue, length)
            left[queue.number] -= 1
        # A doorbell may leave the rest of a frame for the next.
        step = rng.choice([1, 3, 40, 1 << 12])
        told[queue.number] = min(queue.posted, told[queue.number] + step)
        await bench.ring(queue.number, told[queue.number])
        await bench.cycles(rng.randrange(60))
        bench.check_frames()
    await bench.settle()
    await bench.cycles(50)
    for name in ("bad_accesses", "runts", "bad_lengths", "bad_headers", "dma_errors"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert not bench.failed
    assert bench.counters["completions"] == len(bench.writes.log)
    assert bench.counters["payload_fetches"] == len(bench.reads.requests)


@cocotb.test()
async def frames_leave_in_the_order_of_the_pipe_whatever_the_answers_do(dut: SimHandleBase) -> None:
    for seed in seeds(10):
        await random_run(dut, seed)


@cocotb.test()
async def a_frame_of_which_the_rest_is_not_posted_keeps_nobody_else(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 1)
    await bench.begin()
    if bench.count < 2:
        return
    slow, good = await bench.start(0, 256), await bench.start(1, 256)
    bench.post(slow, MAX_FRAME)
    await bench.ring(0, slow.posted - 1)
    for _ in range(10):
        bench.post(good, 700)
    await bench.ring(1, good.posted)
    while good.received < 10:
        await bench.cycles(10)
        bench.check_frames()
    assert slow.received == 0
    await bench.ring(0, slow.posted)
    await bench.settle()


@cocotb.test()
async def reads_are_as_long_as_they_may_be(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 2, Habits(request_ready=1.0))
    await bench.begin()
    queue = await bench.start(0, 1024)
    while bench.room(queue) >= lines_of(1514):
        bench.post(queue, 1514)
    await bench.ring(0, queue.posted)
    await bench.settle()
    bytes_read = sum(length for _, length, _ in bench.reads.requests)
    assert bytes_read == queue.posted * 64
    longest = max(length for _, length, _ in bench.reads.requests)
    assert len(bench.reads.requests) <= queue.posted * 64 // longest + 2


@cocotb.test()
async def queues_share_the_engine_fairly(dut: SimHandleBase) -> None:
    bench = PipeBench(dut, 3, Habits(latency=(20, 40), request_ready=1.0, answer=1.0))
    bench.frame_ready = 1.0
    await bench.begin()
    queues = [await bench.start(number, 4096) for number in range(min(bench.count, 4))]
    for queue in queues:
        for _ in range(160):
            bench.post(queue, 1500)
        await bench.ring(queue.number, queue.posted)
    # The first queues begin while the others are set up; shares are looked at when all of them wait.
    while len(bench.frames) < 40 * len(queues):
        await bench.cycles(1)
    first = len(bench.frames)
    while len(bench.frames) < first + 80 * len(queues):
        await bench.cycles(1)
    received = [sum(number == queue.number for number, _ in bench.frames[first:]) for queue in queues]
    # A turn is half of what is fetched ahead, which is six frames: one who has just had one is that far in front.
    assert max(received) - min(received) <= 2 * 6, received
