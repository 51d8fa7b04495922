"""Host memory behind the DMA ports of a module, as unkind as PCIe allows.

Reads are answered after random times, in random order between tags and with the beats of several tags
interleaved; writes are taken when it pleases the host. Used by the benches of every engine that reads or writes host memory.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import SimHandleBase
from cocotb.task import Task
from cocotb.triggers import RisingEdge

LINE_BYTES = 64
PAGE_BYTES = 4096
PERIOD_NS = 4

_running: list[Task[Any]] = []


def run_bench(dut: SimHandleBase, *tasks: Coroutine[Any, Any, None]) -> None:
    """Starts the clock and the tasks of a bench; those of the bench before it in the same test end."""
    while _running:
        task = _running.pop()
        if not task.done():
            task.cancel()
    _running.append(cocotb.start_soon(Clock(dut.clk_i, PERIOD_NS, unit="ns").start()))
    _running.extend(cocotb.start_soon(task) for task in tasks)


class Memory:
    """Bytes of the host from `base` on; reading elsewhere is an error of the link."""

    def __init__(self, base: int, size: int) -> None:
        self.base = base
        self.data = bytearray(size)

    def has(self, address: int, length: int) -> bool:
        return self.base <= address and address + length <= self.base + len(self.data)

    def read(self, address: int, length: int) -> bytes:
        assert self.has(address, length), f"{length} bytes at {address:#x}"
        return bytes(self.data[address - self.base : address - self.base + length])

    def write(self, address: int, data: bytes) -> None:
        assert self.has(address, len(data)), f"{len(data)} bytes at {address:#x}"
        self.data[address - self.base : address - self.base + len(data)] = data

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def put_word(self, address: int, value: int) -> None:
        self.write(address, value.to_bytes(8, "little"))


@dataclass
class Read:
    """A read that is not answered yet."""

    address: int
    length: int
    tag: int
    due: int
    beat: int = 0


@dataclass
class Habits:
    """How the host behaves."""

    latency: tuple[int, int] = (1, 40)
    request_ready: float = 0.8
    write_ready: float = 0.8
    # Chance in a cycle that a beat is given when one is due.
    answer: float = 0.9
    # Whether reads are answered in any order and interleaved.
    shuffles: bool = True
    # Reads that are answered with an error, or with another length than was asked for.
    fails: Callable[[Read], bool] = field(default=lambda read: False)
    beats_more: Callable[[Read], int] = field(default=lambda read: 0)


class ReadPort:
    """Answers the reads of a module. Prefix: what its port names begin with."""

    def __init__(
        self, dut: SimHandleBase, clock: SimHandleBase, memory: Memory, habits: Habits, rng: random.Random
    ) -> None:
        self.dut, self.clock, self.memory, self.habits, self.rng = dut, clock, memory, habits, rng
        self.waiting: list[Read] = []
        self.requests: list[tuple[int, int, int]] = []
        self.cycle = 0
        self.is_halted = False

    def _beats(self, read: Read) -> int:
        return max(1, -(-read.length // LINE_BYTES) + self.habits.beats_more(read))

    def _give(self, read: Read) -> None:
        dut = self.dut
        start = read.address + read.beat * LINE_BYTES
        length = min(LINE_BYTES, max(1, read.length - read.beat * LINE_BYTES))
        failed = self.habits.fails(read) or not self.memory.has(read.address, read.length)
        data = self.rng.randbytes(LINE_BYTES)
        if not failed and self.memory.has(start, length):
            data = self.memory.read(start, length) + data[length:]
        read.beat += 1
        is_last = failed or read.beat >= self._beats(read)
        dut.rdcpl_valid_i.value = 1
        dut.rdcpl_tag_i.value = read.tag
        dut.rdcpl_data_i.value = int.from_bytes(data, "little")
        dut.rdcpl_last_i.value = int(is_last)
        dut.rdcpl_error_i.value = int(failed)
        if is_last:
            self.waiting.remove(read)

    def idle(self) -> None:
        dut = self.dut
        dut.rdreq_ready_i.value = 0
        dut.rdcpl_valid_i.value = 0
        dut.rdcpl_tag_i.value = 0
        dut.rdcpl_data_i.value = 0
        dut.rdcpl_last_i.value = 0
        dut.rdcpl_error_i.value = 0

    def forget(self) -> None:
        """The device was reset and its port with it: nothing is answered any more."""
        self.waiting.clear()

    async def run(self) -> None:
        dut = self.dut
        self.idle()
        while True:
            await RisingEdge(self.clock)
            self.cycle += 1
            if int(dut.rdreq_valid_o.value) and int(dut.rdreq_ready_i.value):
                address, length = int(dut.rdreq_address_o.value), int(dut.rdreq_bytes_o.value)
                tag = int(dut.rdreq_tag_o.value)
                assert 1 <= length <= PAGE_BYTES and address % PAGE_BYTES + length <= PAGE_BYTES, (
                    f"read of {length} bytes at {address:#x}"
                )
                assert all(read.tag != tag for read in self.waiting), f"tag {tag} is in use"
                due = self.cycle + self.rng.randint(*self.habits.latency)
                self.waiting.append(Read(address, length, tag, due))
                self.requests.append((address, length, tag))
            dut.rdreq_ready_i.value = int(self.rng.random() < self.habits.request_ready)
            dut.rdcpl_valid_i.value = 0
            due_reads = [read for read in self.waiting if read.due <= self.cycle]
            if not self.habits.shuffles:
                due_reads = self.waiting[:1] if self.waiting and self.waiting[0].due <= self.cycle else []
            if due_reads and not self.is_halted and self.rng.random() < self.habits.answer:
                self._give(self.rng.choice(due_reads[:8]))


class WritePort:
    """Takes the writes of a module and keeps a log of them."""

    def __init__(
        self, dut: SimHandleBase, clock: SimHandleBase, memory: Memory, habits: Habits, rng: random.Random
    ) -> None:
        self.dut, self.clock, self.memory, self.habits, self.rng = dut, clock, memory, habits, rng
        self.log: list[tuple[int, bytes]] = []
        self.on_write: Callable[[int, bytes], None] = lambda address, data: None

    async def run(self) -> None:
        dut = self.dut
        dut.dmawr_ready_i.value = 0
        held: tuple[int, int, int] | None = None
        while True:
            await RisingEdge(self.clock)
            if int(dut.dmawr_valid_o.value):
                now = (
                    int(dut.dmawr_address_o.value),
                    int(dut.dmawr_bytes_o.value),
                    int(dut.dmawr_data_o.value),
                )
                address, length, data = now
                assert 1 <= length <= LINE_BYTES and address % LINE_BYTES + length <= LINE_BYTES, (
                    f"write of {length} bytes at {address:#x}"
                )
                assert held in (None, now), "a waiting write changed"
                held = now
                if int(dut.dmawr_ready_i.value):
                    held = None
                    written = data.to_bytes(LINE_BYTES, "little")[:length]
                    self.memory.write(address, written)
                    self.log.append((address, written))
                    self.on_write(address, written)
            else:
                assert held is None or not int(dut.rst_ni.value), "a waiting write was taken back"
                held = None
            dut.dmawr_ready_i.value = int(self.rng.random() < self.habits.write_ready)


def pack(fields: list[tuple[int, int]]) -> int:
    """A packed struct from its fields, the first uppermost: pairs of value and width in bits."""
    packed = 0
    for value, width in fields:
        assert 0 <= value < 1 << width, f"{value:#x} in {width} bits"
        packed = packed << width | value
    return packed


def _settings_fields() -> list[tuple[str, int]]:
    """Names and widths of nic_rtl_pkg::queue_settings_t, in their order."""
    package = (Path(os.environ["BENCH_ROOT"]) / "nic" / "rtl" / "nic_rtl_pkg.sv").read_text()
    struct = re.search(r"typedef struct packed \{([^}]*)\} queue_settings_t;", package)
    assert struct, "nic_rtl_pkg has no queue_settings_t"
    found = re.findall(r"^\s*logic\s+(?:\[(\d+):0\]\s+)?(\w+);", struct[1], re.MULTILINE)
    return [(name, int(high or 0) + 1) for high, name in found]


class QueueSettings:
    """The fields of nic_rtl_pkg::queue_settings_t; those that are not given are zero."""

    FIELDS = _settings_fields()

    def __init__(self, **fields: int) -> None:
        unknown = fields.keys() - {name for name, _ in self.FIELDS}
        assert not unknown, f"queue_settings_t has no {unknown}"
        self.fields = fields

    def packed(self) -> int:
        return pack([(self.fields.get(name, 0), width) for name, width in self.FIELDS])
