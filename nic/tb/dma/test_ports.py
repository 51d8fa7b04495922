"""The DMA ports: answers go to who asked, writes keep their order, nothing comes from before a reset."""

from __future__ import annotations

import random
from collections import deque

import cocotb
from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge
from dma.host import LINE_BYTES, Habits, Memory, ReadPort, WritePort, run_bench

BASE = 0x1_0000_0000
READERS, WRITERS, TAGS = 2, 3, 32


class Reader:
    """An engine that reads: at most one read under way for each of its tags."""

    def __init__(self, index: int, rng: random.Random) -> None:
        self.index, self.rng = index, rng
        self.asked: dict[int, tuple[int, int]] = {}
        self.got: dict[int, bytearray] = {}
        self.offer: tuple[int, int, int] | None = None
        self.done = 0

    def choose(self) -> None:
        free = [tag for tag in range(TAGS) if tag not in self.asked]
        if self.offer is None and free and self.rng.random() < 0.7:
            length = self.rng.choice([1, 64, 65, 200, 512])
            address = BASE + self.rng.randrange(8) * 4096 + self.rng.randrange(4096 - length + 1)
            self.offer = (address, length, self.rng.choice(free))

    def taken(self) -> None:
        assert self.offer is not None
        address, length, tag = self.offer
        self.asked[tag], self.got[tag] = (address, length), bytearray()
        self.offer = None

    def beat(self, tag: int, data: bytes, is_last: bool, memory: Memory) -> None:
        assert tag in self.asked, f"engine {self.index}: an answer to tag {tag}, which is not under way"
        self.got[tag] += data
        if is_last:
            address, length = self.asked.pop(tag)
            assert bytes(self.got.pop(tag)[:length]) == memory.read(address, length), f"tag {tag}"
            self.done += 1

    def forget(self) -> None:
        self.asked.clear()
        self.got.clear()
        self.offer = None


class Bench:
    """Both ports between engines and a host."""

    def __init__(self, dut: SimHandleBase, seed: int) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        self.memory = Memory(BASE, 1 << 16)
        self.memory.write(BASE, self.rng.randbytes(1 << 16))
        written = Memory(0, 1 << 16)
        habits = Habits(latency=(1, 60), request_ready=0.7, write_ready=0.6)
        self.read_port = ReadPort(dut, dut.clk_i, self.memory, habits, self.rng)
        self.write_port = WritePort(dut, dut.clk_i, written, habits, self.rng)
        self.readers = [Reader(index, self.rng) for index in range(READERS)]
        self.to_write: list[deque[tuple[int, bytes]]] = [deque() for _ in range(WRITERS)]
        self.wrote: list[list[tuple[int, bytes]]] = [[] for _ in range(WRITERS)]
        self.offered: list[tuple[int, bytes] | None] = [None] * WRITERS
        self.is_asking = True
        self.wants_clear = False

    async def engines(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk_i)
            ready, valid = int(dut.req_ready_o.value), int(dut.req_valid_i.value)
            assert (ready & valid).bit_count() <= 1, "two engines served in one cycle"
            beats = int(dut.cpl_valid_o.value)
            for reader in self.readers:
                if (ready & valid) >> reader.index & 1:
                    reader.taken()
                if beats >> reader.index & 1:
                    data = int(dut.cpl_data_o.value).to_bytes(LINE_BYTES, "little")
                    reader.beat(int(dut.cpl_tag_o.value), data, bool(int(dut.cpl_last_o.value)), self.memory)
            if int(dut.clear_i.value):
                assert beats == 0, "an answer in the cycle of the clear"
                for reader in self.readers:
                    reader.forget()
            dut.clear_i.value = int(self.wants_clear)
            if self.wants_clear:
                self.wants_clear = False
                dut.req_valid_i.value = 0
            else:
                self._offer_reads()
            self._offer_writes()

    def _offer_reads(self) -> None:
        dut, valid, address, length, tag = self.dut, 0, 0, 0, 0
        for reader in self.readers:
            if self.is_asking:
                reader.choose()
            if reader.offer:
                valid |= 1 << reader.index
                address |= reader.offer[0] << 64 * reader.index
                length |= reader.offer[1] << 13 * reader.index
                tag |= reader.offer[2] << 5 * reader.index
        dut.req_valid_i.value, dut.req_address_i.value = valid, address
        dut.req_bytes_i.value, dut.req_tag_i.value = length, tag

    def _offer_writes(self) -> None:
        dut = self.dut
        ready, valid, address, data, length = int(dut.wr_ready_o.value), 0, 0, 0, 0
        for index in range(WRITERS):
            offered = self.offered[index]
            if offered and ready >> index & 1:
                self.wrote[index].append(offered)
                self.offered[index] = None
            if self.offered[index] is None and self.to_write[index] and self.rng.random() < 0.8:
                self.offered[index] = self.to_write[index].popleft()
            write = self.offered[index]
            if write:
                valid |= 1 << index
                address |= write[0] << 64 * index
                data |= int.from_bytes(write[1], "little") << 512 * index
                length |= len(write[1]) << 7 * index
        dut.wr_valid_i.value, dut.wr_address_i.value = valid, address
        dut.wr_data_i.value, dut.wr_bytes_i.value = data, length

    async def begin(self) -> None:
        dut = self.dut
        for name in ("clear_i", "req_valid_i", "req_address_i", "req_bytes_i", "req_tag_i"):
            getattr(dut, name).value = 0
        for name in ("wr_valid_i", "wr_address_i", "wr_data_i", "wr_bytes_i"):
            getattr(dut, name).value = 0
        dut.rst_ni.value = 0
        self.read_port.idle()
        run_bench(dut, self.read_port.run(), self.write_port.run())
        await self.cycles(3)
        dut.rst_ni.value = 1
        await self.cycles(20)
        cocotb.start_soon(self.engines())

    async def cycles(self, count: int) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)


@cocotb.test()
async def every_answer_goes_to_who_asked(dut: SimHandleBase) -> None:
    bench = Bench(dut, 1)
    await bench.begin()
    await bench.cycles(6000)
    bench.is_asking = False
    await bench.cycles(1000)
    done = [reader.done for reader in bench.readers]
    assert not any(reader.asked for reader in bench.readers) and min(done) > 500, done
    assert max(done) - min(done) < sum(done) // 10, f"unfair: {done}"


@cocotb.test()
async def answers_from_before_a_clear_are_nobodys(dut: SimHandleBase) -> None:
    bench = Bench(dut, 2)
    await bench.begin()
    for _ in range(60):
        await bench.cycles(bench.rng.randrange(5, 120))
        bench.wants_clear = True
    bench.is_asking = False
    await bench.cycles(1000)
    assert not any(reader.asked for reader in bench.readers)
    assert sum(reader.done for reader in bench.readers) > 300


@cocotb.test()
async def a_link_that_answers_twice_does_no_harm(dut: SimHandleBase) -> None:
    bench = Bench(dut, 3)
    await bench.begin()
    bench.is_asking = False
    await bench.cycles(500)
    for _ in range(50):
        dut.rdcpl_valid_i.value = 1
        dut.rdcpl_tag_i.value = bench.rng.randrange(16)
        dut.rdcpl_last_i.value = 1
        await bench.cycles(1)
        assert int(dut.cpl_valid_o.value) == 0
    bench.is_asking = True
    await bench.cycles(1500)
    bench.is_asking = False
    await bench.cycles(500)
    assert not any(reader.asked for reader in bench.readers)


@cocotb.test()
async def writes_keep_the_order_of_their_engine(dut: SimHandleBase) -> None:
    bench = Bench(dut, 4)
    await bench.begin()
    bench.is_asking = False
    for index in range(WRITERS):
        for number in range(300):
            length = bench.rng.randrange(1, 65)
            address = (number * WRITERS + index) * LINE_BYTES + bench.rng.randrange(65 - length)
            bench.to_write[index].append((address, bench.rng.randbytes(length)))
    sent = [list(queue) for queue in bench.to_write]
    while len(bench.write_port.log) < 450:
        await bench.cycles(1)
    owners = [at // LINE_BYTES % WRITERS for at, _ in bench.write_port.log]
    counts = [owners.count(index) for index in range(WRITERS)]
    assert max(counts) - min(counts) < 60, f"unfair: {counts}"
    await bench.cycles(2000)
    for index in range(WRITERS):
        log = [(at, data) for at, data in bench.write_port.log if at // LINE_BYTES % WRITERS == index]
        assert log == sent[index], f"engine {index}"
