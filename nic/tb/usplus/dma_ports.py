"""The ports of the DMA half, driven as nic_top drives them, between random reads and writes and a mirror of memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.pcie.core.tlp import Tlp

from usplus.host import LINE_BYTES, PAGE_BYTES, READS, WRITES, Host

MEMORY_BYTES = 1 << 16
# The lower half is read and never written, the upper half written and read back.
WRITTEN_AT = MEMORY_BYTES // 2
# The most that one write carries, whatever the link allows.
MAX_RUN_BYTES = 512


@dataclass
class Read:
    """A read under way at the device's port."""

    address: int
    length: int
    expected: bytes
    got: bytes = b""


class Bench(Host):
    """The DMA ports driven as nic_top drives them."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.base, self.memory = self.rc.alloc_region(MEMORY_BYTES)
        self.mirror = bytearray(self.random.randbytes(MEMORY_BYTES))
        self.memory[:] = self.mirror
        self.to_read: deque[tuple[int, int]] = deque()
        self.to_write: deque[tuple[int, bytes]] = deque()
        self.reads: dict[int, Read] = {}
        self.answered = self.failed = self.unknown = 0
        self.may_fail = False
        # Requests as the link sees them: kind, address, DWs.
        self.requests: list[tuple[str, int, int]] = []
        # Writes taken at the device's port; bytes of writes taken there, and of those that the link has seen.
        self.taken_writes = self.taken_bytes = self.seen_bytes = 0
        self.offered = False
        # Bytes of the write that is offered.
        self.offered_bytes = 0
        # Cycles in which lines were answered.
        self.beats: list[int] = []
        self.cycle = 0
        for name in ("dmawr_valid", "rdreq_valid", "irq_valid", "fence_ask"):
            getattr(dut, name).value = 0
        send = self.dev.upstream_send

        async def seen(tlp: Tlp) -> None:
            if tlp.fmt_type in READS + WRITES and tlp.address < self.base + MEMORY_BYTES:
                assert tlp.length * 4 + tlp.address % PAGE_BYTES <= PAGE_BYTES
                kind = "read" if tlp.fmt_type in READS else "write"
                self.requests.append((kind, tlp.address, tlp.length))
                if kind == "write":
                    self.seen_bytes += tlp.get_be_byte_count()
                    assert tlp.length * 4 <= min(128 << int(dut.cfg_max_payload.value), MAX_RUN_BYTES)
            await send(tlp)

        self.dev.upstream_send = seen
        cocotb.start_soon(self._write())
        cocotb.start_soon(self._read())
        cocotb.start_soon(self._take())

    async def _write(self) -> None:
        dut = self.dut
        while True:
            while not self.to_write:
                await RisingEdge(dut.user_clk)
            address, data = self.to_write.popleft()
            dut.dmawr_valid.value = 1
            dut.dmawr_address.value = self.base + address
            dut.dmawr_bytes.value = self.offered_bytes = len(data)
            # Above the bytes that are meant anything may stand.
            dut.dmawr_data.value = int.from_bytes(data + self.random.randbytes(LINE_BYTES - len(data)), "little")
            await RisingEdge(dut.user_clk)
            while not int(dut.dmawr_ready.value):
                await RisingEdge(dut.user_clk)
            if not self.to_write:
                dut.dmawr_valid.value = 0
            self.mirror[address : address + len(data)] = data
            self.taken_writes += 1
            self.taken_bytes += len(data)

    async def _read(self) -> None:
        dut = self.dut
        tags = deque(range(256))
        self.random.shuffle(tags)
        while True:
            while not self.to_read or not tags:
                await RisingEdge(dut.user_clk)
            self.offered = True
            address, length = self.to_read.popleft()
            tag = tags[0]
            if tag in self.reads:
                tags.rotate(-1)
                self.to_read.appendleft((address, length))
                self.offered = False
                await RisingEdge(dut.user_clk)
                continue
            tags.rotate(-1)
            dut.rdreq_valid.value = 1
            dut.rdreq_address.value = self.base + address
            dut.rdreq_bytes.value = length
            dut.rdreq_tag.value = tag
            await RisingEdge(dut.user_clk)
            while not int(dut.rdreq_ready.value):
                await RisingEdge(dut.user_clk)
            dut.rdreq_valid.value = 0
            self.reads[tag] = Read(address, length, bytes(self.mirror[address : address + length]))
            self.offered = False

    async def _take(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.user_clk)
            self.cycle += 1
            if int(dut.user_reset.value):
                continue
            self.unknown += int(dut.count_unknown_completions.value)
            if not int(dut.rdcpl_valid.value):
                continue
            self.beats.append(self.cycle)
            tag = int(dut.rdcpl_tag.value)
            # Reads are answered in the order in which they were asked.
            assert tag == next(iter(self.reads)), f"tag {tag} is answered, {list(self.reads)} are under way"
            read = self.reads[tag]
            last = bool(int(dut.rdcpl_last.value))
            if int(dut.rdcpl_error.value):
                assert last and self.may_fail
                self.failed += 1
                del self.reads[tag]
                continue
            data = int(dut.rdcpl_data.value).to_bytes(LINE_BYTES, "little")
            read.got += data[: read.length - len(read.got)]
            assert last == (len(read.got) == read.length)
            assert read.got == read.expected[: len(read.got)], f"{read.length} bytes at {read.address:#x}"
            if last:
                self.answered += 1
                del self.reads[tag]

    def any_read(self) -> tuple[int, int]:
        """Inside a page, most of them short."""
        at = self.random.randrange(PAGE_BYTES)
        length = self.random.choice([1, 3, 16, 64, self.random.randint(1, 300), self.random.randint(1, PAGE_BYTES)])
        page = self.random.randrange(WRITTEN_AT // PAGE_BYTES) * PAGE_BYTES
        if self.random.random() < 0.3:
            at = at // 64 * 64
        return page + at, min(length, PAGE_BYTES - at)

    def any_run(self) -> list[tuple[int, bytes]]:
        """Bytes in a row, in writes that keep inside lines, as the NIC's engines cut them."""
        at = self.random.randrange(WRITTEN_AT, MEMORY_BYTES - PAGE_BYTES // 2)
        if self.random.random() < 0.3:
            at = at // LINE_BYTES * LINE_BYTES
        end = at + self.random.choice([self.random.randint(1, 200), self.random.randint(1, PAGE_BYTES // 2)])
        run = []
        while at < end:
            length = min(end, (at // LINE_BYTES + 1) * LINE_BYTES) - at
            run.append((at, self.random.randbytes(length)))
            at += length
        return run

    def any_write(self) -> tuple[int, bytes]:
        """Inside a line, as the NIC's engines write; some across one, which nobody does and the adapter bears."""
        if self.random.random() < 0.1:
            at = self.random.randrange(WRITTEN_AT, MEMORY_BYTES)
            length = self.random.choice([LINE_BYTES, self.random.randint(1, LINE_BYTES)])
            return at, self.random.randbytes(min(length, PAGE_BYTES - at % PAGE_BYTES))
        at = self.random.randrange(LINE_BYTES)
        length = self.random.choice([8, LINE_BYTES, self.random.randint(1, LINE_BYTES)])
        line = self.random.randrange(WRITTEN_AT, MEMORY_BYTES, LINE_BYTES)
        if length == LINE_BYTES:
            at = 0
        return line + at, self.random.randbytes(min(length, LINE_BYTES - at))

    async def settle(self, limit: int = 60000) -> None:
        """Until everything that was asked is done."""
        for _ in range(limit):
            await RisingEdge(self.dut.user_clk)
            is_quiet = not (self.to_read or self.to_write or self.reads or self.offered)
            if is_quiet and not int(self.dut.dmawr_valid.value) and self.seen_bytes == self.taken_bytes:
                break
        else:
            raise AssertionError(f"{len(self.reads)} reads, {len(self.to_write)} writes do not end")
        await self.cycles(100)
        assert self.memory[:] == self.mirror
