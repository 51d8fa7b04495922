"""A driver for the NIC behind the PCIe block: everything through registers, windows, rings and interrupts, as a host
has them. Each queue keeps what it expects."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from pair.bench import CAUSES, NIC_PKG, named, pack
from usplus.host import PARAMETERS, Host, constant, pauses

QUEUES = PARAMETERS["NumQueues"]
WORD_BYTES = 8
INTERFACES = named("QueueControlIface")
CAPABILITIES = named("Capability")
# Host memory of a queue.
QUEUE_BYTES = 1 << 17
EPOCH = 5


class Nic(Host):
    """The device behind its link, and the wire on its other side."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, bar_bytes=1 << 22)
        # An address of 0 says that nothing is to be written: no queue's memory lies there.
        self.rc.alloc_region(QUEUE_BYTES)
        self.base, self.memory = self.rc.alloc_region(QUEUES * QUEUE_BYTES)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_tx"), dut.user_clk, dut.user_reset)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_rx"), dut.user_clk, dut.user_reset)
        self.bar: Any = None
        self.capabilities: dict[str, bytes] = {}
        self.windows = self.window_bytes = 0

    async def bring_up(self, read_request: int = 2) -> None:
        """Enumerates, finds out what is there, and enables the device."""
        await self.open(read_request)
        self.bar = self.device.bar_window[0]
        await self.discover()
        start = self.bar.get_absolute_address(self.windows)
        self.link.window_bytes = range(start, start + QUEUES * self.window_bytes)
        await self.write("Control", pack(NIC_PKG, "reg_control_t", enable=1))

    async def discover(self) -> None:
        """Reads the list of capabilities."""
        assert await self.read("Magic") == constant("MagicReset")
        caps = await self.read("CapsOffset")
        at, end = caps & 0xFFFF_FFFF, (caps & 0xFFFF_FFFF) + (caps >> 32)
        names = {value: name for name, value in CAPABILITIES.items()}
        while at < end:
            head = await self.read_at(at)
            kind, count = head & 0xFF, head >> 16 & 0xFFFF
            at += WORD_BYTES
            value = b""
            for _ in range(-(-count // WORD_BYTES)):
                value += (await self.read_at(at)).to_bytes(WORD_BYTES, "little")
                at += WORD_BYTES
            self.capabilities[names[kind]] = value[:count]
        aperture = self.capabilities["Aperture"]
        self.windows = int.from_bytes(aperture[:8], "little")
        self.window_bytes = int.from_bytes(aperture[8:], "little")

    async def read_at(self, offset: int) -> int:
        """A register by its offset."""
        return int.from_bytes(await self.bar.read(offset, WORD_BYTES), "little")

    async def write_at(self, offset: int, value: int) -> None:
        """Posted: it may not be there yet when this returns."""
        await self.bar.write(offset, value.to_bytes(WORD_BYTES, "little"))

    @staticmethod
    def offset(name: str) -> int:
        """Of a register of the device, from the generated package."""
        return constant(name if name.endswith("Offset") else name + "Offset")

    async def read(self, name: str) -> int:
        """A register of the device."""
        return await self.read_at(self.offset(name))

    async def write(self, name: str, value: int) -> None:
        """A register of the device."""
        await self.write_at(self.offset(name), value)

    async def counter(self, name: str) -> int:
        """A counter of the device."""
        return await self.read_at(constant("CountersOffset") + constant(f"Counter{name}Offset"))

    def word(self, address: int) -> int:
        """A word of host memory, by its place in the region."""
        return int.from_bytes(self.memory[address : address + WORD_BYTES], "little")

    def put(self, address: int, data: bytes) -> None:
        """Host memory, by its place in the region."""
        self.memory[address : address + len(data)] = data

    def stall_all(self, share: float) -> None:
        """The wire's streams pause too."""
        self.stall(share)
        for stream in (self.sink, self.source):
            stream.set_pause_generator(pauses(random.Random(self.random.random()), share))

    async def until(self, what: str, done: Any, limit: int = 40000) -> None:
        """Waits for something to become true."""
        for _ in range(limit):
            if done():
                return
            await RisingEdge(self.dut.user_clk)
        raise AssertionError(f"{what}: not after {limit} cycles")


class Queue:
    """What the driver does to one queue."""

    def __init__(self, nic: Nic, number: int) -> None:
        self.nic, self.number = nic, number
        self.at = number * QUEUE_BYTES
        self.expected: deque[bytes] = deque()
        self.entries = 64

    def bus(self, place: int) -> int:
        """Bus address of a place in the queue's memory."""
        return self.nic.base + self.at + place

    async def set(self, name: str, value: int) -> None:
        """A register of the queue."""
        at = constant("QueueOffset") + self.number * constant("QueueStride") + constant(f"Queue{name}Offset")
        await self.nic.write_at(at, value)

    async def get(self, name: str) -> int:
        """A register of the queue."""
        at = constant("QueueOffset") + self.number * constant("QueueStride") + constant(f"Queue{name}Offset")
        return await self.nic.read_at(at)

    async def ring(self, name: str, count: int) -> None:
        """A doorbell of the queue."""
        at = constant("DoorbellOffset") + self.number * constant("DoorbellStride")
        await self.nic.write_at(at + constant(f"Doorbell{name}Offset"), count)

    async def enable(self, interface: str, **fields: int) -> None:
        """Starts the queue, and sees that it has started."""
        fields = {"enable": 1, "iface": INTERFACES[interface], "epoch": EPOCH, "weight": 1} | fields
        control = pack(NIC_PKG, "reg_queue_control_t", **fields)
        await self.set("Control", control)
        status = await self.get("Status")
        assert status & 1, f"queue {self.number} is not active: {CAUSES[status >> 4 & 15]}"

    async def disable(self) -> None:
        """Stops the queue; when this returns the device writes nothing of it any more."""
        await self.set("Control", 0)
        while await self.get("Status") & 1:
            pass


def check_frames(nic: Nic, queues: dict[int, Queue]) -> int:
    """Frames at the wire against what was sent: byte 0 names the queue; a queue's frames come whole, once, in order."""
    count = 0
    while not nic.sink.empty():
        got: AxiStreamFrame = nic.sink.recv_nowait()
        frame = bytes(got.tdata)
        aborted = got.tuser if isinstance(got.tuser, int) else max(got.tuser)
        assert not aborted
        assert frame[0] in queues, f"{len(frame)} bytes of no queue: {frame.hex()}"
        queue = queues[frame[0]]
        assert queue.expected, f"queue {queue.number}: {len(frame)} bytes that nobody sent"
        assert frame == queue.expected[0], f"queue {queue.number}: not the frame that is next"
        queue.expected.popleft()
        count += 1
    return count
