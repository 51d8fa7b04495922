"""A host around the bench: root complex, model of the PCIe block, and the hooks that make the link unkind.

Everything the hooks do is permitted by PCIe: completions of different requests in any order, split at any read
completion boundary; write-combined stores that leave their buffers in any order inside the reorder span.
"""

from __future__ import annotations

import logging
import os
import random
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi.stream import define_stream
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.core.caps import PciCapId
from cocotbext.pcie.core.tlp import Tlp, TlpType
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice
from cocotbext.pcie.xilinx.us.interface import CqSource, RcSource

from usplus.pg213 import Pg213CqSource, Pg213RcSource

PARAMETERS = {
    name: int(value) for name, value in (word.split("=") for word in os.environ["BENCH_PARAMETERS"].split())
}
NIC_PKG = (Path(os.environ["BENCH_ROOT"]) / "spec/generated/sv/nic_pkg.sv").read_text()
# The model's buses have these signals.
AxisBus = define_stream("Axis", signals=["tdata", "tvalid", "tready", "tkeep", "tlast", "tuser"])[0]
LINE_BYTES = 64
PAGE_BYTES = 4096
RCB_BYTES = 64
# Message control in the MSI capability, and in it log2 of how many messages the host grants.
MSI_CONTROL, MSI_GRANTED_LSB = 2, 4
# Longest time for which a store stays in a write-combining buffer that nothing pushes.
HELD_CYCLES = 60
WRITES = (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)
READS = (TlpType.MEM_READ, TlpType.MEM_READ_64)
COMPLETIONS = (TlpType.CPL, TlpType.CPL_DATA)


def constant(name: str) -> int:
    """A constant of the generated package: offsets are not typed again."""
    found = re.search(rf" {name} = (?:\d+'h([0-9a-f]+)|(\d+));", NIC_PKG)
    assert found, f"{name} is in nic_pkg"
    return int(found[1], 16) if found[1] else int(found[2])


def pauses(rng: random.Random, share: float) -> Iterator[bool]:
    """Whether a stream pauses in a cycle; for ever."""
    while True:
        yield rng.random() < share


def halves(tlp: Tlp, dwords: int) -> tuple[Tlp, Tlp]:
    """A completion cut behind its first DWs, as a completer may."""
    first, second = Tlp(tlp), Tlp(tlp)
    first.set_data(tlp.data[: 4 * dwords])
    second.set_data(tlp.data[4 * dwords :])
    second.byte_count = tlp.byte_count - (4 * dwords - tlp.lower_address % 4)
    second.lower_address = (tlp.lower_address // 4 * 4 + 4 * dwords) % 128
    return first, second


class Link:
    """What happens to TLPs on their way to the device."""

    def __init__(self, device: UltraScalePlusPcieDevice, clock: Any, rng: random.Random) -> None:
        self.device, self.clock, self.rng = device, clock, rng
        self.deliver = device.upstream_recv
        # Completions wait by tag; those of one tag stay in order.
        self.waiting: dict[int, deque[Tlp]] = {}
        self.release_share = 0.5
        self.split_share = 0.5
        # Completions that are marked as damaged, and such as claim to be of another address.
        self.poison_share = self.misplace_share = 0.0
        # Writes to windows, from this address in the BAR on, are handed on in random order, so many at a time.
        self.window_bytes: range | None = None
        self.shuffled_writes = 8
        self.held: list[Tlp] = []
        self.held_for = 0
        self.overtaken = self.split = self.poisoned = self.misplaced = 0
        device.upstream_port.rx_handler = self._receive
        cocotb.start_soon(self._release())

    async def _receive(self, tlp: Tlp) -> None:
        if tlp.fmt_type in COMPLETIONS:
            tlp.release_fc()
            self.waiting.setdefault(tlp.tag, deque()).extend(self._pieces(Tlp(tlp)))
            return
        if tlp.fmt_type in WRITES and self.window_bytes and tlp.address in self.window_bytes:
            tlp.release_fc()
            self.held.append(Tlp(tlp))
            self.held_for = 0
            if len(self.held) >= self.shuffled_writes:
                await self.flush()
            return
        await self.deliver(tlp)

    async def flush(self) -> None:
        """What the write-combining buffers hold leaves them."""
        order = list(range(len(self.held)))
        self.rng.shuffle(order)
        self.overtaken += sum(at != place for place, at in enumerate(order))
        batch = [self.held[at] for at in order]
        self.held.clear()
        for write in batch:
            await self.deliver(write)

    def _pieces(self, tlp: Tlp) -> list[Tlp]:
        pieces: list[Tlp] = []
        to_boundary = (RCB_BYTES - tlp.lower_address // 4 * 4 % RCB_BYTES) // 4
        while tlp.fmt_type == TlpType.CPL_DATA and tlp.length > to_boundary and self.rng.random() < self.split_share:
            # Any boundary will do.
            lines = self.rng.randrange((tlp.length - to_boundary - 1) // (RCB_BYTES // 4) + 1)
            first, tlp = halves(tlp, to_boundary + lines * (RCB_BYTES // 4))
            pieces.append(first)
            to_boundary = RCB_BYTES // 4
            self.split += 1
        pieces.append(tlp)
        for piece in pieces:
            if piece.fmt_type == TlpType.CPL_DATA and self.rng.random() < self.poison_share:
                piece.ep = True
                self.poisoned += 1
            elif piece.fmt_type == TlpType.CPL_DATA and self.rng.random() < self.misplace_share:
                piece.lower_address ^= RCB_BYTES
                self.misplaced += 1
        return pieces

    async def _release(self) -> None:
        while True:
            await RisingEdge(self.clock)
            # They do not hold it for ever.
            self.held_for += 1
            if self.held and self.held_for > HELD_CYCLES:
                await self.flush()
            if self.waiting and self.rng.random() < self.release_share:
                tag = self.rng.choice(list(self.waiting))
                await self.deliver(self.waiting[tag].popleft())
                if not self.waiting[tag]:
                    del self.waiting[tag]


class Host:
    """Root complex, PCIe block, link, and memory that the device may use."""

    def __init__(self, dut: Any, bar_bytes: int = 0) -> None:
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        # Every configuration access of the enumeration, and every TLP, otherwise.
        logging.getLogger("cocotb.pcie").setLevel(logging.ERROR)
        for name in ("m_axis_cq", "s_axis_cc", "s_axis_rq", "m_axis_rc"):
            logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.ERROR)
        self.rc = RootComplex()
        self.rc.max_payload_size = 2  # 512 bytes
        buses: dict[str, Any] = {}
        if bar_bytes:
            buses["cq_bus"] = AxisBus.from_prefix(dut, "m_axis_cq")
            buses["cc_bus"] = AxisBus.from_prefix(dut, "s_axis_cc")
            buses["pcie_cq_np_req"] = dut.pcie_cq_np_req
        for name in ("pcie_rq_seq_num0", "pcie_rq_seq_num_vld0", "pcie_rq_seq_num1", "pcie_rq_seq_num_vld1"):
            buses[name] = getattr(dut, name)
        for name in ("enable", "mmenable", "int", "sent", "fail"):
            buses[f"cfg_interrupt_msi_{name}"] = getattr(dut, f"cfg_interrupt_msi_{name}")
        self.dev = UltraScalePlusPcieDevice(
            pcie_generation=3,
            pcie_link_width=16,
            user_clk_frequency=250e6,
            alignment="dword",
            cq_straddle=bool(bar_bytes),
            pf_count=1,
            max_payload_size=512,
            pf0_msi_enable=True,
            pf0_msi_count=32,
            user_clk=dut.user_clk,
            user_reset=dut.user_reset,
            rq_bus=AxisBus.from_prefix(dut, "s_axis_rq"),
            rc_bus=AxisBus.from_prefix(dut, "m_axis_rc"),
            cfg_max_payload=dut.cfg_max_payload,
            cfg_max_read_req=dut.cfg_max_read_req,
            **buses,
        )
        # The model begins its reset two cycles late.
        dut.user_reset.value = 1
        dut.pcie_tfc_nph_av.value = 15
        # The same objects, with the fields as PG213 has them.
        assert type(self.dev.rc_source) is RcSource
        self.dev.rc_source.__class__ = Pg213RcSource
        if bar_bytes:
            assert type(self.dev.cq_source) is CqSource
            self.dev.cq_source.__class__ = Pg213CqSource
            self.dev.functions[0].configure_bar(0, bar_bytes, ext=True, prefetch=True)
        self.rc.make_port().connect(self.dev)
        self.link = Link(self.dev, dut.user_clk, self.random)
        self.device: Any = None
        self.interrupts: list[int] = []
        # DWs of each write that the link has seen.
        self.written: list[int] = []
        send = self.dev.upstream_send

        async def seen(tlp: Tlp) -> None:
            if tlp.fmt_type in WRITES:
                self.written.append(tlp.length)
            await send(tlp)

        self.dev.upstream_send = seen

    async def open(self, read_request: int = 2, messages: int = 32) -> None:
        """Enumerates, as a driver and its kernel do; read_request as in the device's control register, and so many
        messages for interrupts."""
        await RisingEdge(self.dut.user_clk)
        while int(self.dut.user_reset.value):
            await RisingEdge(self.dut.user_clk)
        await self.rc.enumerate()
        self.device = self.rc.find_device(self.dev.functions[0].pcie_id)
        await self.device.enable_device()
        await self.device.set_master()
        await self.device.set_readrq(read_request)
        assert await self.device.alloc_irq_vectors(32, 32) == 32
        # The model of the host grants all that the device could use, whatever it is asked for.
        control = await self.device.capability_read_word(PciCapId.MSI, MSI_CONTROL)
        control = control & ~(7 << MSI_GRANTED_LSB) | (messages.bit_length() - 1) << MSI_GRANTED_LSB
        await self.device.capability_write_word(PciCapId.MSI, MSI_CONTROL, control)

    def watch_interrupts(self, count: int, seen: Any) -> None:
        """Notes each of the first messages as it arrives, and what `seen` tells of it then."""
        for vector in range(count):

            async def arrived(vector: int = vector) -> None:
                self.interrupts.append(vector)
                seen(vector)

            self.device.request_irq(vector, arrived)

    def stall(self, share: float) -> None:
        """Random pauses on every stream between the block and the device."""
        for stream in (self.dev.cq_source, self.dev.cc_sink, self.dev.rq_sink, self.dev.rc_source):
            if stream is not None:
                stream.set_pause_generator(pauses(random.Random(self.random.random()), share))

    async def cycles(self, count: int) -> None:
        """Lets clock cycles pass."""
        for _ in range(count):
            await RisingEdge(self.dut.user_clk)
