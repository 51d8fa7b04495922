"""Order, bytes and completions of random traffic, under an unkind host and a wire that stalls."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import FLAG_INTERRUPT, MAX_FRAME, MIN_FRAME, Bench
from dma.host import Habits
from seeds import seeds


async def random_run(dut: SimHandleBase, seed: int) -> None:
    rng = random.Random(seed)
    habits = Habits(
        latency=rng.choice([(1, 5), (1, 200), (100, 110)]),
        request_ready=rng.choice([0.3, 0.8, 1.0]),
        write_ready=rng.choice([0.1, 0.8, 1.0]),
        answer=rng.choice([0.5, 1.0]),
    )
    bench = Bench(dut, seed, habits)
    bench.frame_ready = rng.choice([0.2, 0.8, 1.0])
    await bench.begin()
    numbers = rng.sample(range(min(bench.count, 64)), min(bench.count, rng.choice([1, 3, 4])))
    for number in numbers:
        entries = 1 << rng.randrange(0, 9)
        time_ns = rng.choice([0, 0, 400])
        await bench.start(number, entries, tx_moderation_frames=rng.randrange(0, 6), tx_moderation_ns=time_ns)
    goal = 60
    longest = rng.choice([64, 300, MAX_FRAME])
    while any(queue.posted < goal for queue in bench.queues.values()):
        queue = bench.queues[rng.choice(numbers)]
        for _ in range(min(rng.randrange(1, 20), bench.room(queue))):
            length = rng.choice([rng.randrange(MIN_FRAME, longest + 1), 64, MIN_FRAME])
            bench.post(queue, length, shift=rng.choice([0, rng.randrange(64), rng.randrange(900)]))
        await bench.ring(queue.number, queue.posted)
        left = queue.received + len(bench.frames)
        assert bench.head(queue) <= left, f"seed {seed}: completed before it left"
        await bench.cycles(rng.randrange(60))
        bench.check_frames()
    await bench.settle()
    await bench.cycles(50)
    assert bench.counters["payload_fetches"] == sum(queue.reads for queue in bench.queues.values())
    assert bench.counters["descriptor_fetches"] <= sum(queue.posted for queue in bench.queues.values())
    for name in ("bad_accesses", "runts", "bad_lengths", "dma_errors"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert not bench.failed and not bench.interrupts
    assert bench.counters["completions"] == len(bench.writes.log)


@cocotb.test()
async def frames_leave_in_ring_order_whatever_the_answers_do(dut: SimHandleBase) -> None:
    for seed in seeds(24):
        await random_run(dut, seed)


@cocotb.test()
async def completions_are_moderated_by_count_and_time(dut: SimHandleBase) -> None:
    bench = Bench(dut, 104)
    await bench.begin()
    queue = await bench.start(0, 64, tx_moderation_frames=4, tx_moderation_ns=8000)
    for index in range(6):
        bench.post(queue, 64, flags=FLAG_INTERRUPT if index == 5 else 0)
        await bench.ring(0, index + 1)
        await bench.cycles(150)
    assert bench.head(queue) == 4 and not bench.interrupts, "by count"
    began = bench.now
    while bench.now < began + 6500:
        await bench.cycles(1)
        assert bench.head(queue) == 4, "before its time"
    await bench.cycles(2000)
    assert bench.head(queue) == 6 and bench.counters["completions"] == 2, "by time"
    assert bench.interrupts == [0]


@cocotb.test()
async def without_a_time_completions_wait_until_the_ring_is_drained(dut: SimHandleBase) -> None:
    bench = Bench(dut, 105)
    await bench.begin()
    queue = await bench.start(0, 64, tx_moderation_frames=5)
    for _ in range(3):
        bench.post(queue, 200)
    await bench.ring(0, 3)
    await bench.settle()
    for _ in range(2000):
        assert bench.counters["completions"] == 1, "reported without need"
        await bench.cycles(1)


@cocotb.test()
async def an_interrupt_follows_its_completion(dut: SimHandleBase) -> None:
    bench = Bench(dut, 106, Habits(write_ready=0.1))
    await bench.begin()
    number = min(bench.count - 1, 5)
    queue = await bench.start(number, 64)
    for turn in range(20):
        bench.post(queue, 64, flags=FLAG_INTERRUPT)
        await bench.ring(number, queue.posted)
        while len(bench.interrupts) <= turn:
            await bench.cycles(1)
            assert len(bench.interrupts) <= bench.head(queue)
    await bench.settle()
    assert bench.interrupts == [number] * 20


@cocotb.test()
async def a_queue_without_a_head_address_interrupts_all_the_same(dut: SimHandleBase) -> None:
    bench = Bench(dut, 107)
    await bench.begin()
    queue = await bench.start(0, 64, tx_head_address=0)
    bench.post(queue, 64, flags=FLAG_INTERRUPT)
    await bench.ring(0, 1)
    await bench.cycles(600)
    bench.check_frames()
    assert bench.interrupts == [0] and not bench.writes.log and queue.received == 1


@cocotb.test()
async def queues_share_the_engine_fairly(dut: SimHandleBase) -> None:
    bench = Bench(dut, 301, Habits(latency=(80, 120), request_ready=1.0, answer=1.0))
    bench.frame_ready = 1.0
    await bench.begin()
    queues = [await bench.start(number, 256) for number in range(min(bench.count, 8))]
    for queue in queues:
        for _ in range(200):
            bench.describe(queue, queue.slot(queue.posted), 1500)
        await bench.ring(queue.number, queue.posted)
    # Queue 0 has a start over the others, as long as the buffer is not full; then all take turns.
    while len(bench.frames) < 120 * len(queues):
        await bench.cycles(1)
    received = [sum(number == queue.number for number, _ in bench.frames) for queue in queues]
    assert max(received) - min(received) <= 64, received
