"""Credits: counts are coalesced by lines and time, the newest is pushed in the end, nothing after a stop."""

from __future__ import annotations

import random

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from dma.host import PERIOD_NS, Habits, Memory, QueueSettings, WritePort, run_bench

BASE = 0x1_2345_0000


class Bench:
    """The module with its host; `last` is the count told last, by queue."""

    def __init__(self, dut: SimHandleBase, seed: int, write_ready: float = 0.8) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.queues = 1 << len(dut.start_queue_i)
        self.memory = Memory(BASE, self.queues * 64)
        self.port = WritePort(dut, dut.clk_i, self.memory, Habits(write_ready=write_ready), self.rng)
        self.last = [0] * self.queues
        self.now = 0

    def address(self, queue: int) -> int:
        return BASE + queue * 64 + queue % 8 * 8

    async def begin(self) -> None:
        dut = self.dut
        for name in ("start_valid_i", "stop_valid_i", "freed_valid_i", "start_queue_i", "stop_queue_i"):
            getattr(dut, name).value = 0
        dut.start_settings_i.value = 0
        dut.freed_queue_i.value = 0
        dut.freed_lines_i.value = 0
        dut.now_ns_i.value = 0
        run_bench(dut, self.port.run(), self.time())
        await self.reset()

    async def reset(self) -> None:
        self.dut.rst_ni.value = 0
        await self.cycles(3)
        self.dut.rst_ni.value = 1
        await self.cycles(1)
        await self.idle()

    async def time(self) -> None:
        while True:
            await RisingEdge(self.dut.clk_i)
            self.now += PERIOD_NS
            self.dut.now_ns_i.value = self.now

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    async def idle(self) -> None:
        await self.cycles(2)
        while int(self.dut.busy_o.value):
            await RisingEdge(self.dut.clk_i)

    async def start(self, queue: int, lines: int, time_ns: int, address: int | None = None) -> None:
        settings = QueueSettings(
            credit_address=self.address(queue) if address is None else address,
            credit_lines=lines,
            credit_time_ns=time_ns,
        )
        self.dut.start_settings_i.value = settings.packed()
        self.dut.start_queue_i.value = queue
        self.dut.start_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.start_valid_i.value = 0
        await self.idle()
        self.last[queue] = 0

    async def stop(self, queue: int) -> None:
        self.dut.stop_queue_i.value = queue
        self.dut.stop_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.stop_valid_i.value = 0
        await self.idle()

    async def freed(self, queue: int, count: int) -> None:
        """Tells a count; the caller may go on in the very next cycle."""
        self.last[queue] = count
        self.dut.freed_queue_i.value = queue
        self.dut.freed_lines_i.value = count & 0xFFFF_FFFF
        self.dut.freed_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.freed_valid_i.value = 0

    def pushed(self, queue: int) -> list[int]:
        """Counts pushed for a queue, in order."""
        return [int.from_bytes(data, "little") for at, data in self.port.log if at == self.address(queue)]

    def check_log(self) -> None:
        """Only whole words to addresses of queues, and per queue only forwards."""
        addresses = {self.address(queue) for queue in range(self.queues)}
        for address, data in self.port.log:
            assert address in addresses and len(data) == 8, f"{len(data)} bytes at {address:#x}"
        for queue in range(self.queues):
            pushed = self.pushed(queue)
            assert all(a < b for a, b in zip(pushed, pushed[1:], strict=False)), f"queue {queue}: {pushed}"


@cocotb.test()
async def pushes_are_coalesced_by_lines(dut: SimHandleBase) -> None:
    bench = Bench(dut, 1, write_ready=1.0)
    await bench.begin()
    await bench.start(0, 4, 0xFFFF_FFFF)
    for count in range(1, 10):
        await bench.freed(0, count)
        await bench.cycles(20)
    assert bench.pushed(0) == [4, 8]
    await bench.start(1 % bench.queues, 0, 0xFFFF_FFFF)
    await bench.freed(1 % bench.queues, 1)
    await bench.cycles(20)
    assert bench.pushed(1 % bench.queues)[-1] == 1, "0 lines count as 1"


@cocotb.test()
async def what_is_left_is_pushed_in_time_and_not_before(dut: SimHandleBase) -> None:
    bench = Bench(dut, 2, write_ready=1.0)
    await bench.begin()
    for queue in range(bench.queues):
        await bench.start(queue, 100, 4000)
    began = bench.now
    for queue in range(bench.queues):
        await bench.freed(queue, 7)
    while bench.now < began + 3900:
        await bench.cycles(1)
    assert not bench.port.log, "too early"
    # Behind the last deadline come the scan and a push for every queue.
    await bench.cycles(1000 + 6 * bench.queues)
    assert all(bench.pushed(queue) == [7] for queue in range(bench.queues))


@cocotb.test()
async def the_first_push_comes_in_the_cycles_that_the_header_promises(dut: SimHandleBase) -> None:
    bench = Bench(dut, 3, write_ready=1.0)
    await bench.begin()
    await bench.start(0, 1, 0)
    await bench.freed(0, 1)
    waited = 0
    while not bench.port.log:
        await bench.cycles(1)
        waited += 1
    dut._log.info("count to push: %d cycles", waited)
    # Ten in the module; then the host takes the write, and the scan may be in the way.
    assert waited <= 14


@cocotb.test()
async def every_queue_in_every_cycle_loses_nothing(dut: SimHandleBase) -> None:
    """A count in every cycle, of random queues, against a port that is slow and stalls."""
    for seed in range(4):
        bench = Bench(dut, 10 + seed, write_ready=[1.0, 0.7, 0.2, 0.05][seed])
        await bench.begin()
        thresholds = [bench.rng.choice([0, 1, 3, 64]) for _ in range(bench.queues)]
        for queue in range(bench.queues):
            await bench.start(queue, thresholds[queue], bench.rng.choice([0, 100, 5000]))
        few = bench.rng.sample(range(bench.queues), min(3, bench.queues))
        for step in range(6000):
            # Bursts that hammer a few queues must not keep the others waiting.
            queue = bench.rng.choice(few) if step % 2000 < 1000 else bench.rng.randrange(bench.queues)
            await bench.freed(queue, bench.last[queue] + bench.rng.choice([1, 1, 2, 9]))
            if step == 3000:
                sent = [len(bench.pushed(queue)) for queue in few]
                assert all(sent), f"seed {seed}: nothing was pushed under load: {sent}"
        await bench.cycles(int((8 * bench.queues + 1500) / max(bench.port.habits.write_ready, 0.05)))
        for queue in range(bench.queues):
            pushed = bench.pushed(queue)
            last = bench.last[queue]
            assert (pushed or [0])[-1] == last, f"seed {seed}, queue {queue}: {pushed[-3:]} but {last}"
            assert bench.memory.word(bench.address(queue)) == last
        bench.check_log()


@cocotb.test()
async def counts_go_on_past_two_to_the_32(dut: SimHandleBase) -> None:
    bench = Bench(dut, 20)
    await bench.begin()
    await bench.start(0, 1, 0)
    count = 0
    while count < 3 << 32:
        count += bench.rng.randrange(1 << 30, 1 << 32)
        await bench.freed(0, count)
        await bench.cycles(40)
        assert bench.pushed(0)[-1] == count


@cocotb.test()
async def a_queue_without_an_address_or_a_start_pushes_nothing(dut: SimHandleBase) -> None:
    bench = Bench(dut, 21)
    await bench.begin()
    await bench.start(0, 1, 0, address=0)
    for count in range(1, 50):
        await bench.freed(0, count)
        await bench.freed(bench.queues - 1, count)
    await bench.cycles(100)
    assert not bench.port.log


@cocotb.test()
async def the_low_bits_of_an_address_are_not_looked_at(dut: SimHandleBase) -> None:
    bench = Bench(dut, 22)
    await bench.begin()
    await bench.start(0, 1, 0, address=BASE + 61)
    await bench.freed(0, 5)
    await bench.cycles(30)
    assert bench.port.log == [(BASE + 56, (5).to_bytes(8, "little"))]


@cocotb.test()
async def nothing_is_pushed_after_a_stop_and_a_new_life_begins_at_zero(dut: SimHandleBase) -> None:
    bench = Bench(dut, 23, write_ready=0.3)
    await bench.begin()
    queues = list(range(min(4, bench.queues)))
    for queue in queues:
        await bench.start(queue, 1, 0)
    stopping = False
    # A count of the victim that takes the place of the next one of another queue.
    inject: list[int] = []
    victim = queues[0]

    async def every_cycle() -> None:
        """Counts of another queue in every cycle, all the time, but for those of the victim."""
        count = 0
        while not stopping:
            if inject:
                await bench.freed(victim, inject.pop(0))
            elif len(queues) > 1:
                count += 1
                await bench.freed(queues[-1], count)
            else:
                await bench.cycles(1)

    cocotb.start_soon(every_cycle())
    for life in range(30 if bench.queues <= 64 else 6):
        inject.extend(range(1, bench.rng.randrange(2, 8)))
        while inject:
            await bench.cycles(1)
        await bench.cycles(2)
        await bench.cycles(bench.rng.randrange(30))
        await bench.stop(victim)
        before = len(bench.pushed(victim))
        await bench.cycles(60 + 5 * bench.queues)
        assert len(bench.pushed(victim)) == before, f"life {life}: pushed after the stop"
        await bench.start(victim, 1, 0)
        # Long enough for the scan to look at every queue.
        await bench.cycles(60 + 5 * bench.queues)
        assert len(bench.pushed(victim)) == before, f"life {life}: pushed a count of a former life"
    assert bench.pushed(victim), "nothing of the victim was ever pushed"
    stopping = True
    await bench.cycles(300)
    if len(queues) > 1:
        assert bench.pushed(queues[-1])[-1] == bench.last[queues[-1]]


@cocotb.test()
async def reset_in_the_middle_of_traffic_forgets_everything(dut: SimHandleBase) -> None:
    bench = Bench(dut, 24, write_ready=0.3)
    await bench.begin()
    for _ in range(5):
        for queue in range(bench.queues):
            await bench.start(queue, 1, 0)
        for _ in range(bench.rng.randrange(20, 200)):
            queue = bench.rng.randrange(bench.queues)
            await bench.freed(queue, bench.last[queue] + 1)
        await bench.reset()
        bench.port.log.clear()
        await bench.cycles(200)
        assert not bench.port.log
        await bench.start(0, 1, 0)
        await bench.cycles(50)
        assert not bench.port.log, "a count from before the reset"
        await bench.freed(0, 3)
        await bench.cycles(50)
        assert bench.pushed(0) == [3]
