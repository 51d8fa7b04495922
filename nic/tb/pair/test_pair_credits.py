"""Counts of freed lines of two engines as one stream: the newest of every queue, none made up."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
QUEUES = PARAMETERS["NumQueues"]
LOCAL_BITS = (QUEUES // 2 - 1).bit_length()


class Bench:
    """Tells counts, and keeps what is given."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.told: dict[int, list[int]] = {queue: [] for queue in range(QUEUES)}
        self.given: dict[int, list[int]] = {queue: [] for queue in range(QUEUES)}
        self.order: list[int] = []
        self.count = 0

    async def open(self) -> None:
        """Clock and reset."""
        dut = self.dut
        for name in ("start_valid", "start_queue", "told_valid", "told_queue", "told_lines"):
            getattr(dut, name + "_i").value = 0
        dut.rst_ni.value = 0
        Clock(dut.clk_i, 4, unit="ns").start()
        for _ in range(3):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
        await RisingEdge(dut.clk_i)
        while int(dut.busy_o.value):
            await RisingEdge(dut.clk_i)

    async def reset(self) -> None:
        """In the middle; what waits is gone."""
        self.dut.rst_ni.value = 0
        self.dut.told_valid_i.value = 0
        await RisingEdge(self.dut.clk_i)
        await RisingEdge(self.dut.clk_i)
        self.dut.rst_ni.value = 1
        await RisingEdge(self.dut.clk_i)
        while int(self.dut.busy_o.value):
            await RisingEdge(self.dut.clk_i)

    async def tell(self, *queues: int) -> None:
        """A cycle in which these queues, of different parity, have freed more lines."""
        dut = self.dut
        valid = places = lines = 0
        for queue in queues:
            self.count += self.random.randrange(1, 100)
            self.told[queue].append(self.count)
            valid |= 1 << queue % 2
            places |= queue // 2 << (queue % 2 * LOCAL_BITS)
            lines |= self.count << (queue % 2 * 32)
        dut.told_valid_i.value = valid
        dut.told_queue_i.value = places
        dut.told_lines_i.value = lines
        await RisingEdge(dut.clk_i)
        if int(dut.freed_valid_o.value):
            queue, count = int(dut.freed_queue_o.value), int(dut.freed_lines_o.value)
            assert count in self.told[queue], f"queue {queue} never said {count}"
            assert not self.given[queue] or self.given[queue][-1] < count, "never an older one"
            self.given[queue].append(count)
            self.order.append(queue)

    async def empty(self) -> None:
        """Until nothing waits."""
        await self.tell()
        for _ in range(2 * QUEUES + 10):
            await self.tell()
            if int(self.dut.is_empty_o.value):
                return
        raise AssertionError("counts wait for ever")


@cocotb.test()
async def both_engines_in_every_cycle(dut: Any) -> None:
    """Twice what leaves: the newest of each is given in the end, and none waits for longer than all others."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(3000):
        await bench.tell(bench.random.randrange(0, QUEUES, 2), bench.random.randrange(1, QUEUES, 2))
    assert len(bench.order) > 2990, "one is given in every cycle"
    for queue in range(QUEUES):
        places = [i for i, other in enumerate(bench.order) if other == queue]
        assert max(b - a for a, b in zip(places, places[1:], strict=False)) < 12 * QUEUES
    await bench.empty()
    assert all(bench.given[queue][-1] == bench.told[queue][-1] for queue in range(QUEUES))


@cocotb.test()
async def now_and_then(dut: Any) -> None:
    """What comes alone is given at once, every one of it."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(600):
        queue = bench.random.randrange(QUEUES)
        await bench.tell(queue)
        for _ in range(4):
            await bench.tell()
        assert bench.given[queue] == bench.told[queue], "4 cycles after it was told"


@cocotb.test()
async def one_queue_in_every_cycle(dut: Any) -> None:
    """As it leaves it comes back."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(200):
        await bench.tell(5, 8)
    await bench.empty()
    assert all(bench.given[queue][-1] == bench.told[queue][-1] for queue in (5, 8))


@cocotb.test()
async def a_start_drops_what_waits(dut: Any) -> None:
    """No count of an earlier life comes after it; new ones do."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(300):
        for _ in range(bench.random.randrange(1, 12)):
            await bench.tell(bench.random.randrange(0, QUEUES, 2), bench.random.randrange(1, QUEUES, 2))
        # An engine tells nothing of a queue that starts; what it told before must be inside.
        queue = bench.random.randrange(QUEUES)
        for _ in range(bench.random.randrange(2)):
            await bench.tell()
        # Of a queue that starts several times while its count waits no life gets that of an earlier one.
        for _ in range(bench.random.randrange(1, 4)):
            dut.start_valid_i.value = 1
            dut.start_queue_i.value = queue
            await bench.tell()
            dut.start_valid_i.value = 0
            if bench.random.randrange(2):
                await bench.tell()
        # What was given in the cycle of the start has left already.
        await bench.tell()
        before = len(bench.given[queue])
        for _ in range(2 * QUEUES):
            await bench.tell(*[other for other in bench.random.sample(range(QUEUES), 1) if other != queue])
        assert len(bench.given[queue]) == before, f"queue {queue} is told of after its start"
        await bench.tell(queue)
        await bench.empty()
        assert bench.given[queue][-1] == bench.told[queue][-1]


@cocotb.test()
async def reset_while_counts_wait(dut: Any) -> None:
    """What waited is gone, and every queue is heard of again."""
    bench = Bench(dut)
    await bench.open()
    for _ in range(20):
        for _ in range(bench.random.randrange(1, 20)):
            await bench.tell(bench.random.randrange(0, QUEUES, 2), bench.random.randrange(1, QUEUES, 2))
        await bench.reset()
        for queue in range(QUEUES):
            await bench.tell(queue)
        await bench.empty()
        assert all(bench.given[queue][-1] == bench.told[queue][-1] for queue in range(QUEUES))
