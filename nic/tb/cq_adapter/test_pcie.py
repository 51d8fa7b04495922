"""A host behind a root complex, the model of the PCIe block, and the adapters: configured and used as a host does."""

from __future__ import annotations

import logging
import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
from cocotbext.pcie.xilinx.us.interface import CqSource

from cq_adapter.host import BAR_BYTES, Pg213CqSource, Taker
from cq_adapter.test_stream import AxisBus

# Posted writes that a switch or a write-combining buffer may bring out of order.
PERMUTED = 6


def permute(device: UltraScalePlusPcieDevice, seed: int) -> list[int]:
    """Hooks the device: posted writes are held back and handed on in random order, all of them before anything else.
    The list that comes back counts the writes that were overtaken."""
    rng = random.Random(seed)
    held: list[Tlp] = []
    overtaken = [0]
    receive = device.upstream_recv

    async def hook(tlp: Tlp) -> None:
        if tlp.fmt_type in (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64):
            held.append(tlp)
            if len(held) < PERMUTED:
                return
        order = list(range(len(held)))
        rng.shuffle(order)
        overtaken[0] += sum(at != place for place, at in enumerate(order))
        batch = [held[at] for at in order]
        held.clear()
        for write in batch:
            await receive(write)
        if tlp.fmt_type not in (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64):
            await receive(tlp)

    device.upstream_port.rx_handler = hook
    return overtaken


class Host:
    """The whole bench."""

    def __init__(self, dut: Any, straddle: bool) -> None:
        self.dut = dut
        # Every configuration access of the enumeration, otherwise.
        logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
        self.rc = RootComplex()
        self.rc.max_payload_size = 2  # 512 bytes
        self.dev = UltraScalePlusPcieDevice(
            pcie_generation=3,
            pcie_link_width=16,
            user_clk_frequency=250e6,
            alignment="dword",
            cq_straddle=straddle,
            cc_straddle=straddle,
            pf_count=1,
            max_payload_size=512,
            user_clk=dut.user_clk,
            user_reset=dut.user_reset,
            cq_bus=AxisBus.from_prefix(dut, "m_axis_cq"),
            pcie_cq_np_req=dut.pcie_cq_np_req,
            cc_bus=AxisBus.from_prefix(dut, "s_axis_cc"),
        )
        # The same object, with the fields where PG213 has them.
        assert type(self.dev.cq_source) is CqSource
        self.dev.cq_source.__class__ = Pg213CqSource
        self.rc.make_port().connect(self.dev)
        self.dev.functions[0].configure_bar(0, BAR_BYTES, ext=True, prefetch=True)
        self.taker = Taker(dut)
        self.random = self.taker.random

    async def open(self) -> Any:
        """Enumerates; gives the BAR's window."""
        await RisingEdge(self.dut.user_clk)
        while int(self.dut.user_reset.value):
            await RisingEdge(self.dut.user_clk)
        await self.rc.enumerate()
        device = self.rc.find_device(self.dev.functions[0].pcie_id)
        await device.enable_device()
        return device.bar_window[0]


async def traffic(dut: Any, straddle: bool, permuted: bool) -> None:
    """Random writes and reads against a byte array."""
    host = Host(dut, straddle)
    bar = await host.open()
    rng = host.random
    mirror = bytearray(BAR_BYTES)
    overtaken = permute(host.dev, rng.getrandbits(32)) if permuted else [0]
    for _ in range(60):
        host.taker.ready_share = rng.choice([1.0, 1.0, 0.3])
        # Writes of a round lie apart, so that their order does not matter.
        at = rng.randrange(1000)
        for _ in range(rng.randint(1, 12)):
            at += rng.randrange(200)
            data = rng.randbytes(rng.choice([1, 3, 4, 8, 64, rng.randint(1, 700), 512]))
            await bar.write(at, data)
            mirror[at : at + len(data)] = data
            at += len(data)
        # A read pushes the writes in front of it.
        at = rng.randrange(at)
        length = rng.choice([1, 2, 4, 8, 16])
        length = min(length, 64 - at % 64)
        assert await bar.read(at, length) == mirror[at : at + length]
        assert host.taker.memory[:16384] == mirror[:16384]
    assert host.taker.bad == 0
    assert bool(overtaken[0]) == permuted
    dut._log.info("%d lines, %d writes out of order", len(host.taker.pieces), overtaken[0])


@cocotb.test()
async def a_host_writes_and_reads_with_straddle(dut: Any) -> None:
    """As the NIC is meant to run."""
    await traffic(dut, straddle=True, permuted=False)


@cocotb.test()
async def a_host_writes_and_reads_without_straddle(dut: Any) -> None:
    """As a block without the option gives TLPs."""
    await traffic(dut, straddle=False, permuted=False)


@cocotb.test()
async def posted_writes_out_of_order(dut: Any) -> None:
    """A fabric that reorders what lies apart."""
    await traffic(dut, straddle=True, permuted=True)


@cocotb.test()
async def a_read_of_more_than_a_line_fails_at_the_host(dut: Any) -> None:
    """It is answered with an abort, and the link goes on."""
    host = Host(dut, straddle=True)
    bar = await host.open()
    await bar.write(64, bytes(range(128)))
    try:
        data = await bar.read(64, 128)
    except Exception as fault:  # noqa: BLE001 - the model raises a plain one
        dut._log.info("the host sees: %s", fault)
    else:
        raise AssertionError(f"the host got {len(data)} bytes")
    assert host.taker.bad == 1
    assert await bar.read(64, 8) == bytes(range(8))
