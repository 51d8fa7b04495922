"""Counts that wait for a taker that has others to serve: the newest of each queue, once."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
QUEUES = PARAMETERS["NumQueues"]


class Bench:
    """Tells counts, and keeps what is given."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.told: dict[int, list[int]] = {queue: [] for queue in range(QUEUES)}
        self.given: dict[int, list[int]] = {queue: [] for queue in range(QUEUES)}
        self.count = 0

    async def open(self) -> None:
        """Clock, reset, and the cycles in which the marks are made equal."""
        dut = self.dut
        for name in ("start_valid", "start_queue", "told_valid", "told_queue", "told_count", "newest_ready"):
            getattr(dut, name + "_i").value = 0
        dut.rst_ni.value = 0
        Clock(dut.clk_i, 4, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        for _ in range(QUEUES + 1):
            await RisingEdge(dut.clk_i)

    async def cycle(self, queue: int | None = None, is_ready: bool = False, start: int | None = None) -> None:
        """A cycle: a queue tells a higher count, the taker is ready, a queue starts."""
        dut = self.dut
        if queue is not None:
            self.count += self.random.randrange(1, 100)
            self.told[queue].append(self.count)
            dut.told_queue_i.value = queue
            dut.told_count_i.value = self.count
        dut.told_valid_i.value = int(queue is not None)
        dut.newest_ready_i.value = int(is_ready)
        dut.start_valid_i.value = int(start is not None)
        dut.start_queue_i.value = start or 0
        await ReadOnly()
        if is_ready and int(dut.newest_valid_o.value):
            given, count = int(dut.newest_queue_o.value), int(dut.newest_count_o.value)
            assert count in self.told[given], f"queue {given} never said {count} in this life"
            assert not self.given[given] or self.given[given][-1] < count, "never an older one"
            self.given[given].append(count)
        await RisingEdge(dut.clk_i)
        if start is not None:
            self.told[start].clear()
            self.given[start].clear()

    async def empty(self) -> None:
        """Until nothing waits; then the newest of every queue has been given."""
        for _ in range(2 * QUEUES + 10):
            await self.cycle(is_ready=True)
        assert int(self.dut.is_empty_o.value), "counts wait for ever"
        for queue in range(QUEUES):
            assert self.given[queue][-1:] == self.told[queue][-1:], f"queue {queue}"


@cocotb.test()
async def a_taker_that_is_never_ready_loses_no_count(dut: Any) -> None:
    """Any number of counts is told meanwhile."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(1000):
        await bench.cycle(bench.random.randrange(QUEUES))
    await bench.empty()
    assert sum(map(len, bench.given.values())) == QUEUES


@cocotb.test()
async def counts_are_told_while_others_leave(dut: Any) -> None:
    """A queue may tell a count in the cycle in which its last one leaves."""
    bench = Bench(dut)
    await bench.open()
    for share in (0.1, 0.5, 0.9, 1.0):
        for _ in range(1000):
            queue = bench.random.randrange(QUEUES) if bench.random.random() < 0.7 else None
            await bench.cycle(queue, bench.random.random() < share)
        await bench.empty()


@cocotb.test()
async def a_start_forgets_what_waits_and_nothing_else(dut: Any) -> None:
    """However often a queue starts while its count waits."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(200):
        for _ in range(bench.random.randrange(1, 2 * QUEUES)):
            await bench.cycle(bench.random.randrange(QUEUES), bench.random.random() < 0.3)
        queue = bench.random.randrange(QUEUES)
        await bench.cycle()
        for _ in range(bench.random.randrange(1, 4)):
            await bench.cycle(start=queue)
            await bench.cycle(is_ready=bench.random.random() < 0.5)
        if bench.random.random() < 0.3:
            await bench.empty()
    await bench.empty()
