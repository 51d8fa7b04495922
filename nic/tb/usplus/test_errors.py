"""Each error that the block reports with a completion fails its read by itself, while all else of the completion is
right: a read that was told whole is whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb
from cocotbext.pcie.xilinx.us.tlp import ErrorCode

from usplus.dma_ports import WRITTEN_AT, Bench

# Bytes of a read: as long as a completion may be, so that it comes in several.
READ_BYTES = 512
ROUNDS = 12
# Reads at once, of which one fails.
READS = 3
# Of a completion's descriptor (PG213), in its first DW.
ERROR_CODE_LSB, COMPLETED_LSB = 12, 30

# What is told of no single read: what went well, and a tag that no read has.
NO_ERRORS = (ErrorCode.NORMAL_TERMINATION, ErrorCode.INVALID_TAG)
CODES = [code.name for code in ErrorCode if code not in NO_ERRORS]


class Damage:
    """Puts an error into one completion at a time, behind everything that looks at completions but the device."""

    def __init__(self, bench: Bench, put: Callable[[Any], None]) -> None:
        self.random, self.put = bench.random, put
        self.is_due = False
        self.done = 0
        self.send = bench.dev.rc_source.send
        bench.dev.rc_source.send = self._send

    async def _send(self, frame: Any) -> None:
        is_last = frame.data[0] >> COMPLETED_LSB & 1
        # In the first completion of a read, or in a later one, but in one of them.
        if self.is_due and (is_last or self.random.random() < 0.3):
            self.put(frame)
            self.is_due = False
            self.done += 1
        await self.send(frame)


async def fails_one_read_at_a_time(dut: Any, put: Callable[[Any], None]) -> None:
    """Reads of which one meets the error; it fails, the others do not, and nothing stays behind."""
    bench = Bench(dut)
    await bench.open()
    bench.may_fail = True
    bench.link.split_share = 0.6
    damage = Damage(bench, put)
    for _ in range(ROUNDS):
        places = bench.random.sample(range(0, WRITTEN_AT, READ_BYTES), READS)
        bench.to_read.extend((place, READ_BYTES) for place in places)
        damage.is_due = True
        await bench.settle()
        assert bench.failed == damage.done, "a read that met the error was told whole"
    assert damage.done == ROUNDS and bench.answered == ROUNDS * (READS - 1)
    assert bench.link.split > 0 and bench.unknown == 0
    # All places have come back.
    bench.may_fail = False
    bench.to_read.extend(bench.any_read() for _ in range(100))
    await bench.settle()
    assert bench.answered == ROUNDS * (READS - 1) + 100


@cocotb.test()
@cocotb.parametrize(code=CODES)
async def a_completion_with_an_error_code_fails_its_read(dut: Any, code: str) -> None:
    """Poison, bad status and all others that PG213 names."""

    def put(frame: Any) -> None:
        frame.data[0] |= ErrorCode[code] << ERROR_CODE_LSB

    await fails_one_read_at_a_time(dut, put)


@cocotb.test()
async def a_discontinued_completion_fails_its_read(dut: Any) -> None:
    """The block takes back, with its last beat, a completion that came whole otherwise."""

    def put(frame: Any) -> None:
        frame.discontinue = True

    await fails_one_read_at_a_time(dut, put)
