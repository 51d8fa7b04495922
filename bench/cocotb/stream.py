"""Writes of 64 bytes from cocotbext-pcie's root complex to the BAR of its memory endpoint, none of them fenced.

Root complex, link (Gen3 x16, credits and acknowledgements) and endpoint are the package's own, as its tests use them. What
is counted is the writes that the endpoint has, over the real time from the first write until the last is there.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import cocotb
from cocotb.triggers import Timer
from cocotbext.pcie.core import Device, MemoryEndpoint, RootComplex

LINE_BYTES = 64
BAR_BYTES = 1 << 20
# Long after the last write has left, at the rate of any link.
SETTLE_NS = 10_000


class Counting(MemoryEndpoint):
    """A memory endpoint that counts the writes it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0
        self.add_mem_region(BAR_BYTES)

    async def write_region(self, region: int, addr: int, data: bytes) -> None:
        """Takes a write."""
        await super().write_region(region, addr, data)
        self.taken += 1


@cocotb.test()
async def stream(_dut: object) -> None:
    """One stream, and a file with how many writes a second of real time."""
    writes = int(os.environ["STREAM_WRITES"])
    host, endpoint = RootComplex(), Counting()
    device = Device(endpoint)
    device.upstream_port.max_link_speed = 3
    device.upstream_port.max_link_width = 16
    host.make_port().connect(device)
    await host.enumerate()
    found = host.find_device(endpoint.pcie_id)
    await found.enable_device()
    bar = found.bar_window[0]
    line = bytes(range(LINE_BYTES))
    start = time.perf_counter()
    for number in range(writes):
        await bar.write(number * LINE_BYTES % BAR_BYTES, line)
    while endpoint.taken < writes:
        before = endpoint.taken
        await Timer(SETTLE_NS, "ns")
        assert endpoint.taken > before, f"{endpoint.taken} of {writes} writes came, and no more do"
    seconds = time.perf_counter() - start
    held = await endpoint.read_region(0, 0, LINE_BYTES)
    assert bytes(held) == line, "the endpoint has what was written"
    Path(os.environ["STREAM_RESULT"]).write_text(json.dumps({"writes": writes, "seconds": seconds}))
