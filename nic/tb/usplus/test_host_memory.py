"""Receive into host memory, and everything at once."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiStreamFrame

from pair.bench import NIC_PKG, pack
from usplus.driver import QUEUES, Nic, Queue, check_frames
from usplus.host import LINE_BYTES
from usplus.queues import DescriptorQueue, MmioQueue, ReceiveQueue
from usplus.test_transmit import drained, frame_of

SEQUENCE_AT = 38


class Wire:
    """Frames that come in, each with a number; every one must be found in one queue, in order."""

    def __init__(self, nic: Nic) -> None:
        self.nic = nic
        self.sent: list[bytes] = []
        self.found: dict[int, int] = {}
        self.last: dict[int, int] = {}

    async def send(self, longest: int, shortest: int = 60) -> None:
        """An IPv4 UDP frame of any flow."""
        rng = self.nic.random
        lengths = [60, 64, rng.randint(60, 300), rng.randint(60, longest)]
        length = rng.choice([length for length in lengths if length >= shortest] or [longest])
        head = rng.randbytes(12) + b"\x08\x00\x45" + rng.randbytes(8) + b"\x11" + rng.randbytes(14)
        frame = head.ljust(SEQUENCE_AT, b"\0")[:SEQUENCE_AT] + len(self.sent).to_bytes(4, "little")
        frame += rng.randbytes(length - len(frame))
        self.sent.append(frame)
        await self.nic.source.send(AxiStreamFrame(frame))

    def take(self, queue: ReceiveQueue) -> int:
        """All that is there."""
        count = 0
        while (frame := queue.poll()) is not None:
            number = int.from_bytes(frame[SEQUENCE_AT : SEQUENCE_AT + 4], "little")
            assert number < len(self.sent) and frame == self.sent[number], f"frame {number} has changed"
            assert number > self.last.get(queue.number, -1), "a queue's frames keep their order"
            assert number not in self.found, "every frame once"
            self.last[queue.number] = number
            self.found[number] = queue.number
            count += 1
        return count

    def is_done(self) -> bool:
        """All that was sent has been found."""
        return len(self.found) == len(self.sent)


async def received(nic: Nic, wire: Wire, queues: list[ReceiveQueue]) -> None:
    """Until everything is in; the host gives back what it has seen."""
    for _ in range(4000):
        for queue in queues:
            if wire.take(queue):
                await queue.ring("RxFreed", queue.next)
        if wire.is_done():
            return
        await nic.cycles(10)
    raise AssertionError(f"{len(wire.sent) - len(wire.found)} frames do not arrive")


async def receives(dut: Any, mode: str) -> None:
    """One mode, on two queues."""
    nic = Nic(dut)
    await nic.bring_up()
    wire = Wire(nic)
    queues = [ReceiveQueue(nic, n) for n in (0, 3)]
    unseen: dict[int, int] = {}

    def seen(vector: int) -> None:
        queue = next(queue for queue in queues if queue.number == vector)
        unseen[vector] = unseen.get(vector, 0) + 1
        # Or the loop below has taken it already.
        assert queue.is_there() or vector in wire.last, "the handler finds a frame"

    nic.watch_interrupts(QUEUES, seen)
    await nic.write("IrqMask", pack(NIC_PKG, "reg_irq_mask_t", rx_frame=1))
    for queue in queues:
        await queue.start(mode, frames=2, time_ns=3000)
    for share in (0.0, 0.4):
        nic.stall_all(share)
        for _ in range(50):
            await wire.send(1500)
        await received(nic, wire, queues)
    await nic.cycles(1500)
    assert len(set(wire.found.values())) == 2, "flows are spread over the queues"
    assert set(unseen) == {0, 3}, "both have raised interrupts"
    assert await nic.counter("RxFrames") == len(wire.sent)
    assert await nic.counter("RxFrameBytes") == sum(len(frame) for frame in wire.sent)
    assert await nic.counter("Interrupts") == len(nic.interrupts)
    assert await nic.counter("RxNoSpace") == 0


@cocotb.test()
async def frames_into_contiguous_rings(dut: Any) -> None:
    """Frame in, host memory has it, word last; rings wrap."""
    await receives(dut, "Ring")


@cocotb.test()
async def frames_into_buffers(dut: Any) -> None:
    """Descriptors fetched, buffers at any byte, completions with their lap."""
    await receives(dut, "Descriptors")


@cocotb.test()
async def long_frames_come_in_few_writes(dut: Any) -> None:
    """The wire brings a line in each cycle, of which the link carries less: lines wait for it and leave together."""
    nic = Nic(dut)
    await nic.bring_up()
    wire = Wire(nic)
    queue = ReceiveQueue(nic, 0)
    await queue.start("Ring", frames=0, time_ns=0)
    nic.written.clear()
    for _ in range(40):
        await wire.send(1500, shortest=1400)
    await received(nic, wire, [queue])
    sent = sum(len(frame) for frame in wire.sent)
    dut._log.info("%d bytes of frames in %d writes", sent, len(nic.written))
    # The word that a frame is there is a write of its own; the first lines of a frame find the link free.
    assert sent / (len(nic.written) - len(wire.sent)) > 3 * LINE_BYTES


@cocotb.test()
async def everything_at_once(dut: Any) -> None:
    """Stores, descriptors, receive in both modes and interrupts, on a link and a wire that stall."""
    nic = Nic(dut)
    await nic.bring_up(read_request=1)
    wire = Wire(nic)
    stores, fetched = MmioQueue(nic, 0), DescriptorQueue(nic, 1)
    ring, buffers = ReceiveQueue(nic, 2), ReceiveQueue(nic, 3)
    nic.watch_interrupts(QUEUES, lambda _: None)
    await nic.write("IrqMask", pack(NIC_PKG, "reg_irq_mask_t", tx_completion=1, rx_frame=1))
    await stores.start()
    await fetched.start(frames=3, time_ns=1500)
    await ring.start("Ring", frames=3, time_ns=1500)
    await buffers.start("Descriptors", frames=3, time_ns=1500)
    nic.stall_all(0.3)
    transmit: dict[int, Queue] = {0: stores, 1: fetched}

    async def store() -> None:
        for _ in range(60):
            await stores.send(frame_of(nic, stores), split_share=0.1)

    async def fetch() -> None:
        for _ in range(40):
            await fetched.post(frame_of(nic, fetched, 1500), shift=nic.random.randrange(200))
            await fetched.ring("TxTail", fetched.posted)

    async def arrive() -> None:
        for _ in range(60):
            await wire.send(1000)

    tasks = [cocotb.start_soon(task) for task in (store(), fetch(), arrive())]
    while not all(task.done() for task in tasks) or not wire.is_done():
        check_frames(nic, transmit)
        for queue in (ring, buffers):
            if wire.take(queue):
                await queue.ring("RxFreed", queue.next)
        await RisingEdge(dut.user_clk)
    await drained(nic, transmit)
    await nic.until("head", lambda: fetched.head() == fetched.posted)
    await nic.until("credits", lambda: stores.freed() == stores.written)
    assert await nic.counter("TxFrames") == 100
    assert await nic.counter("RxFrames") == 60
    assert nic.interrupts
    for name in ("BadAccesses", "DmaErrors", "SpanExceeded", "Clobbers", "RxNoSpace"):
        assert await nic.counter(name) == 0, name
