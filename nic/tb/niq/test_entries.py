"""Order, bytes and head counts of random traffic: entries in pieces of any shape, an unkind host, a wire that stalls."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from dma.host import Habits

from niq.bench import FAULTS, LINES, MAX_FRAME, MIN_FRAME, Bench
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
    lines = rng.choice([LINES, max(2, LINES // 2)])
    await bench.begin(lines)
    numbers = rng.sample(range(bench.count), min(bench.count, rng.choice([1, 3, 4])))
    for number in numbers:
        entry_lines = rng.choice([size for size in (1, 2, 4) if size * 2 <= lines])
        await bench.start(
            number,
            entry_lines,
            epoch=rng.randrange(256),
            backpressure=rng.randrange(2),
            hole_timeout_ns=rng.choice([0, 1 << 40, 1 << 63]),
            tx_moderation_frames=rng.randrange(0, 6),
            tx_moderation_ns=rng.choice([0, 0, 400]),
        )
    goal = 40
    longest = rng.choice([48, 240, 300, MAX_FRAME])
    nothings = pieces = 0
    while any(queue.written < goal or queue.stores for queue in bench.queues.values()):
        queue = bench.queues[rng.choice(numbers)]
        if queue.written < goal and bench.room(queue) > 0 and len(queue.stores) < 20:
            if rng.random() < 0.05:
                bench.send_nothing(queue)
                nothings += 1
            else:
                length = rng.choice([rng.randrange(MIN_FRAME, longest + 1), queue.room, queue.room + 1, MIN_FRAME])
                bench.send(queue, length, shift=rng.choice([0, rng.randrange(64), rng.randrange(900)]))
        before = len(queue.stores)
        await bench.store(queue, rng.randrange(1, 6))
        pieces += before - len(queue.stores)
        await bench.cycles(1)
        bench.check_frames()
    await bench.settle()
    await bench.cycles(50)
    for name in (*FAULTS, "refused_writes", "quarantined_writes"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert bench.counters["entries"] == sum(queue.written for queue in bench.queues.values())
    assert bench.counters["tx_writes"] == pieces
    assert not bench.failed and not bench.interrupts
    assert bench.counters["completions"] == len(bench.writes.log)


@cocotb.test()
async def entries_leave_in_order_however_their_bytes_arrive(dut: SimHandleBase) -> None:
    for seed in seeds(24):
        await random_run(dut, seed)


@cocotb.test()
async def interrupts_follow_the_head_count(dut: SimHandleBase) -> None:
    bench = Bench(dut, 7)
    await bench.begin()
    queue = await bench.start(0)
    for wants in (True, False, True):
        bench.send(queue, 20, wants_irq=wants)
        await bench.store(queue)
        await bench.settle()
        await bench.cycles(30)
    assert bench.interrupts == [0, 0]


@cocotb.test()
async def an_entry_of_a_line_takes_few_cycles(dut: SimHandleBase) -> None:
    bench = Bench(dut, 8, Habits(write_ready=1.0))
    bench.frame_ready = 1.0
    await bench.begin()
    queue = await bench.start(0, backpressure=1)
    for _ in range(100):
        bench.send(queue, 48)
    begin = bench.cycle
    await bench.store(queue)
    await bench.settle()
    cycles = bench.cycle - begin
    dut._log.info("%d cycles for 100 entries of a line in pieces", cycles)
