"""Where the model of the PCIe block differs from AMD's PG213."""

from __future__ import annotations

from typing import Any

from cocotbext.pcie.xilinx.us.interface import CqSource, RcSource


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


class Pg213RcSource(RcSource):
    """The model's source, with `discontinue` in the last beat of a TLP, where PG213 has it. The model sets it in all of
    them."""

    async def _drive(self, transaction: Any) -> None:
        if not transaction.tlast:
            transaction.tuser &= ~(1 << self.discontinue_offset)
        await super()._drive(transaction)
