"""An engine with queues, as every bench of one drives it: its life, its clock, and the frames that leave it."""

from __future__ import annotations

import random
from collections import deque

from cocotb.handle import SimHandleBase
from cocotb.triggers import RisingEdge

from dma.host import LINE_BYTES, Memory, ReadPort

# Cycles after which an engine that says it is busy hangs.
BUSY_CYCLES = 20_000


class Engine:
    """What the benches of engines have in common; each makes `memory` and `reads` and drives what only it has."""

    # Low during a reset.
    RESETS = ("rst_ni",)

    dut: SimHandleBase
    memory: Memory
    reads: ReadPort
    rng: random.Random
    frame_ready: float
    cycle: int
    last_frame_cycle: int
    frames: deque[tuple[int, bytes]] | list[tuple[int, bytes]]

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.clk_i)

    async def idle(self) -> None:
        """Until a start, a stop or a reset has had its effect."""
        await self.cycles(2)
        waited = 0
        while int(self.dut.busy_o.value):
            await RisingEdge(self.dut.clk_i)
            waited += 1
            assert waited < BUSY_CYCLES, "busy for ever"

    async def reset(self) -> None:
        """Reset in whatever goes on; reads that are under way are answered to nobody."""
        for name in self.RESETS:
            getattr(self.dut, name).value = 0
        self.reads.forget()
        await self.cycles(4)
        self.reads.forget()
        for name in self.RESETS:
            getattr(self.dut, name).value = 1
        await self.idle()

    async def start_with(self, number: int, settings: int) -> None:
        """Starts a queue with these settings, packed."""
        self.dut.start_settings_i.value = settings
        self.dut.start_queue_i.value = number
        self.dut.start_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.start_valid_i.value = 0
        await self.idle()

    async def stop(self, number: int) -> None:
        """Stops a queue."""
        self.dut.stop_queue_i.value = number
        self.dut.stop_valid_i.value = 1
        await RisingEdge(self.dut.clk_i)
        self.dut.stop_valid_i.value = 0
        await self.idle()

    async def wire(self) -> None:
        """Takes frames as often as `frame_ready` says; a beat that waits may not change."""
        dut, partial, held = self.dut, bytearray(), None
        dut.frame_ready_i.value = 0
        while True:
            await RisingEdge(dut.clk_i)
            if not int(dut.rst_ni.value):
                partial.clear()
                held = None
            elif int(dut.frame_valid_o.value):
                queue, length = int(dut.frame_queue_o.value), int(dut.frame_bytes_o.value)
                beat = int(dut.frame_data_o.value).to_bytes(LINE_BYTES, "little")[:length]
                now = (queue, beat, int(dut.frame_last_o.value))
                assert held in (None, now), "a waiting beat changed"
                held = now
                if int(dut.frame_ready_i.value):
                    held = None
                    assert now[2] or length == LINE_BYTES, "a short beat inside a frame"
                    partial += beat
                    if now[2]:
                        self.frames.append((queue, bytes(partial)))
                        self.last_frame_cycle = self.cycle
                        partial.clear()
            else:
                assert held is None, "a waiting beat was taken back"
            dut.frame_ready_i.value = int(self.rng.random() < self.frame_ready)
