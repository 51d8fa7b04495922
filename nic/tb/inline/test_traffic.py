"""Frames in ring order, each once and unchanged, whatever becomes of their pushes."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.handle import SimHandleBase
from descriptor.bench import MIN_FRAME
from dma.host import PERIOD_NS, Habits
from inline.bench import ADDRESS, MAX_FRAME, MAX_IN_RING, MAX_PUSHED, NOTHING, EntryBench, Store
from seeds import seeds


def habits(rng: random.Random) -> Habits:
    return Habits(
        latency=rng.choice([(1, 5), (1, 200), (100, 110)]),
        request_ready=rng.choice([0.3, 0.8, 1.0]),
        write_ready=rng.choice([0.1, 0.8, 1.0]),
        answer=rng.choice([0.5, 1.0]),
    )


class Sender:
    """What a queue's host does: entries, pushes in any order of their stores, doorbells."""

    def __init__(self, bench: EntryBench, number: int, goal: int) -> None:
        self.bench, self.queue, self.left = bench, bench.queues[number], goal
        # Stores under way of the two halves. A push to a half begins when the one before it there has arrived: the fence.
        self.under_way: tuple[deque[Store], deque[Store]] = (deque(), deque())
        self.pushes = 0
        self.told = 0

    def step(self) -> None:
        rng, bench = self.bench.rng, self.bench
        if self.left and bench.room(self.queue) >= 8 and rng.random() < 0.5:
            self.left -= 1
            kind = rng.choice([0, 0, 0, 1, 2])
            if kind == 0:
                entry = bench.entry(self.queue, rng.randrange(MIN_FRAME, MAX_PUSHED + 1))
            elif kind == 1:
                entry = bench.entry(self.queue, rng.randrange(MIN_FRAME, MAX_IN_RING + 1))
            else:
                entry = bench.entry(
                    self.queue, rng.choice([64, 1500, MAX_FRAME]), ADDRESS, shift=rng.randrange(300)
                )
            half = self.pushes % 2
            if rng.random() < 0.75 and not self.under_way[half]:
                self.pushes += 1
                # Of an entry that is longer than a half, the first line goes.
                pushed = entry[:64] if len(entry) > 256 else entry
                self.under_way[half].extend(bench.stores(half, pushed))
                # Now and then a line is never stored, and only time or the next push tells.
                if rng.random() < 0.1:
                    self.under_way[half].pop()
            else:
                self.told = self.queue.posted
        elif rng.random() < 0.1:
            # Where a push was lost nobody else tells of its entry.
            self.told = self.queue.posted
        for stores in self.under_way:
            if stores and rng.random() < 0.6:
                bench.store(self.queue.number, *stores.popleft())

    def is_done(self) -> bool:
        return not self.left and not any(self.under_way)


async def random_run(dut: SimHandleBase, seed: int) -> EntryBench:
    rng = random.Random(seed)
    bench = EntryBench(dut, seed, habits(rng))
    bench.frame_ready = rng.choice([0.2, 0.8, 1.0])
    await bench.begin()
    numbers = rng.sample(range(min(bench.count, 64)), min(bench.count, rng.choice([1, 2, 4])))
    for number in numbers:
        await bench.start(
            number,
            rng.choice([8, 64, 256]),
            tx_moderation_frames=rng.randrange(0, 6),
            tx_moderation_ns=rng.choice([0, 0, 400]),
            hole_timeout_ns=rng.choice([200, 600]),
            tx_self_test=rng.choice([0, 0, 2, 5]),
        )
    senders = [Sender(bench, number, 60) for number in numbers]
    rounds = 0
    while not all(sender.is_done() for sender in senders):
        rounds += 1
        assert rounds < 4000, f"seed {seed}: stuck"
        for sender in senders:
            told = sender.told
            sender.step()
            if sender.told != told:
                await bench.ring(sender.queue.number, sender.told)
        await bench.cycles(rng.randrange(30))
        if rng.random() < 0.5:
            await bench.arrived()
        bench.check_frames()
    await bench.arrived()
    # The doorbell tells what stores that were lost did not.
    for sender in senders:
        await bench.ring(sender.queue.number, sender.queue.posted)
    await bench.settle()
    await bench.cycles(100)
    for name in ("bad_accesses", "runts", "bad_lengths", "bad_headers", "dma_errors", "credit_pushes"):
        assert bench.counters[name] == 0, f"seed {seed}: {name}"
    assert not bench.failed
    assert bench.counters["completions"] == len(bench.writes.log)
    return bench


@cocotb.test()
async def frames_leave_once_and_in_order_whatever_becomes_of_their_pushes(dut: SimHandleBase) -> None:
    names = ("push_taken", "push_torn", "push_unused", "push_tested")
    counts = dict.fromkeys(names, 0)
    for seed in seeds(8):
        bench = await random_run(dut, seed)
        for name in names:
            counts[name] += bench.counters[name]
        assert bench.worst_wait < 400, f"seed {seed}: a piece waited {bench.worst_wait} cycles"
    dut._log.info("%s", counts)
    assert all(count > 15 for count in counts.values()), counts


@cocotb.test()
async def pushes_in_turn_need_no_read(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 1)
    await bench.begin()
    queue = await bench.start(0, 64)
    for turn in range(40):
        bench.push(queue, turn % 2, bench.entry(queue, 14 + turn * 5))
        await bench.arrived()
        while bench.room(queue) < 8:
            await bench.cycles(1)
    await bench.settle()
    assert bench.counters["push_taken"] == 40 and not bench.reads.requests
    assert bench.counters["push_torn"] == bench.counters["push_unused"] == 0


@cocotb.test()
async def pushes_are_taken_beside_the_reads_of_other_queues(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 2, Habits(latency=(50, 150)))
    await bench.begin()
    if bench.count < 2:
        return
    busy, queue = await bench.start(0, 256), await bench.start(1, 64)
    for _ in range(40):
        bench.entry(busy, bench.rng.choice([64, 400]))
    await bench.ring(0, busy.posted)
    for turn in range(20):
        bench.push(queue, turn % 2, bench.entry(queue, 100))
        await bench.arrived()
    await bench.settle()
    assert bench.counters["push_taken"] == 20, bench.counters


@cocotb.test()
async def a_wire_that_takes_nothing_keeps_no_piece(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 3, Habits(latency=(5, 9)))
    await bench.begin()
    bench.frame_ready = 0.0
    queue = await bench.start(0, 256)
    for _ in range(20):
        bench.entry(queue, MAX_FRAME, ADDRESS)
    await bench.ring(0, queue.posted)
    await bench.cycles(3000)
    for turn in range(6):
        bench.push(queue, turn % 2, bench.entry(queue, 100))
        await bench.arrived()
    assert bench.counters["push_unused"] == 6 and bench.worst_wait < 200
    bench.frame_ready = 1.0
    await bench.settle()


@cocotb.test()
async def a_push_that_is_late_is_given_up_at_its_time(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 4)
    await bench.begin()
    timeout_ns = 4000
    queue = await bench.start(0, 64, hole_timeout_ns=timeout_ns)
    entry = bench.entry(queue, 100)
    bench.store(0, 0, entry[:64])
    await bench.arrived()
    began = bench.now
    while bench.now < began + timeout_ns - 20 * PERIOD_NS:
        await bench.cycles(1)
        assert not bench.counters["push_torn"], "before its time"
    await bench.cycles(20 + 6 * max(bench.count, 8) + 20)
    assert bench.counters["push_torn"] == 1
    await bench.settle()
    # What was missing goes nowhere when it comes, and the next push to the half is taken.
    bench.store(0, 64, entry[64:])
    await bench.arrived()
    bench.push(queue, 0, bench.entry(queue, 200))
    await bench.arrived()
    await bench.settle()
    assert bench.counters["push_taken"] == 1 and bench.counters["push_torn"] == 1


@cocotb.test()
async def interrupts_follow_the_head_count(dut: SimHandleBase) -> None:
    bench = EntryBench(dut, 5, Habits(write_ready=0.1))
    await bench.begin()
    number = min(bench.count - 1, 3)
    queue = await bench.start(number, 64)
    for turn in range(10):
        entry = bench.entry(queue, 64, NOTHING if turn % 3 == 2 else 1, wants_irq=1)
        if turn % 2:
            bench.push(queue, 0, entry)
        else:
            await bench.ring(number, queue.posted)
        while len(bench.interrupts) <= turn:
            await bench.cycles(1)
    await bench.settle()
    assert bench.interrupts == [number] * 10
