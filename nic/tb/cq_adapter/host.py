"""What stands around the adapters: a taker of lines, registers, and sources of TLPs."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.pcie.xilinx.us.interface import CqSource

PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
BAR_BYTES = 1 << PARAMETERS["AddressW"]
LINE_BYTES = 64
CLOCK_NS = 4


class Pg213CqSource(CqSource):
    """The model's source, with first_be and last_be where PG213 has them: those of the first TLP that begins in a beat
    in the lower half of the field, whatever half of the beat it begins in. The model goes by the half of the beat."""

    async def _drive(self, transaction: Any) -> None:
        user = transaction.tuser
        starts = user >> 80 & 3
        pointer = user >> 82 & 3
        if starts == 1 and pointer == 2:
            lower = (user >> 4 & 0xF) | (user >> 12 & 0xF) << 8
            transaction.tuser = user & ~0xFFFF | lower
        await super()._drive(transaction)


@dataclass
class Piece:
    """A line that left."""

    address: int
    data: bytes
    enables: int
    first: bool
    last: bool


@dataclass
class Taker:
    """Takes lines into a memory, answers register reads from the same memory, and counts."""

    dut: Any
    ready_share: float = 1.0
    register_share: float = 1.0
    memory: bytearray = field(default_factory=lambda: bytearray(BAR_BYTES))
    pieces: list[Piece] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    bad: int = 0
    stalls: int = 0
    beats: int = 0
    cycle: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.dut.wr_ready.value = 0
        self.dut.reg_ready.value = 0
        self.dut.answer_valid.value = 0
        self.dut.answer_data.value = 0
        cocotb.start_soon(self._watch())
        cocotb.start_soon(self._registers())

    async def _watch(self) -> None:
        dut = self.dut
        while True:
            dut.wr_ready.value = int(self.random.random() < self.ready_share)
            await RisingEdge(dut.user_clk)
            self.cycle += 1
            if int(dut.user_reset.value):
                continue
            self.bad += int(dut.count_bad_accesses.value)
            if int(dut.m_axis_cq_tvalid.value):
                self.beats += 1
                self.stalls += not int(dut.m_axis_cq_tready.value)
            if int(dut.wr_valid.value) and int(dut.wr_ready.value):
                piece = Piece(
                    int(dut.wr_address.value),
                    int(dut.wr_data.value).to_bytes(LINE_BYTES, "little"),
                    int(dut.wr_be.value),
                    bool(int(dut.wr_first.value)),
                    bool(int(dut.wr_last.value)),
                )
                self.pieces.append(piece)
                assert piece.address % LINE_BYTES == 0
                for i in range(LINE_BYTES):
                    if piece.enables >> i & 1:
                        self.memory[piece.address + i] = piece.data[i]

    async def _registers(self) -> None:
        dut = self.dut
        while True:
            dut.reg_ready.value = int(self.random.random() < self.register_share)
            await RisingEdge(dut.user_clk)
            if int(dut.user_reset.value) or not (int(dut.reg_valid.value) and int(dut.reg_ready.value)):
                continue
            address = int(dut.reg_address.value)
            assert address % 8 == 0
            self.reads.append(address)
            dut.reg_ready.value = 0
            # What stands there when the read is asked for: writes in front of it have been taken.
            word = self.memory[address : address + 8]
            while self.random.random() >= self.register_share:
                await RisingEdge(dut.user_clk)
            dut.answer_valid.value = 1
            dut.answer_data.value = int.from_bytes(word, "little")
            await RisingEdge(dut.user_clk)
            dut.answer_valid.value = 0


def cut(address: int, count: int) -> list[tuple[int, int, int]]:
    """The lines of a write of `count` bytes at `address`: line address, first byte in it, bytes."""
    lines = []
    while count:
        offset = address % LINE_BYTES
        here = min(count, LINE_BYTES - offset)
        lines.append((address - offset, offset, here))
        address, count = address + here, count - here
    return lines
