"""Transmit through the real registers: what the device says it is, unordered stores, credits, descriptors."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from pair.bench import NIC_PKG, pack
from usplus.driver import QUEUES, Nic, Queue, check_frames
from usplus.host import PARAMETERS, constant
from usplus.queues import TOLD_AT, WINDOW_LINES, DescriptorQueue, MmioQueue


def frame_of(nic: Nic, queue: Queue, longest: int = 700) -> bytes:
    """Any frame that names its queue."""
    rng = nic.random
    length = rng.choice([14, 56, 60, 64, rng.randint(14, 200), rng.randint(14, longest)])
    return bytes([queue.number]) + rng.randbytes(length - 1)


async def drained(nic: Nic, queues: dict[int, Queue]) -> None:
    """Until all that was sent is on the wire."""
    for _ in range(40000):
        check_frames(nic, queues)
        if not any(queue.expected for queue in queues.values()):
            break
        await RisingEdge(nic.dut.user_clk)
    else:
        left = {number: len(queue.expected) for number, queue in queues.items()}
        raise AssertionError(f"frames that never leave: {left}")
    await nic.cycles(300)
    assert nic.sink.empty()


@cocotb.test()
async def the_device_says_what_it_is(dut: Any) -> None:
    """Enumerated, mapped, and read: identity, capabilities, counters; what is not there reads as zero or is refused."""
    nic = Nic(dut)
    await nic.bring_up()
    expected = {
        "ReorderSpan": PARAMETERS["SpanLines"],
        "Queues": QUEUES,
        "WindowKind": 1,
        "PoolLines": PARAMETERS["PoolLines"],
        "Contexts": PARAMETERS["NumContexts"],
        "MaxFrame": constant("MaxFrameBytes"),
    }
    got = {name: int.from_bytes(nic.capabilities[name], "little") for name in expected}
    assert got == expected
    assert nic.windows == 1 << 21 and nic.window_bytes == 4096
    assert await nic.read("Version") == constant("VersionReset")
    queue = Queue(nic, QUEUES - 1)
    assert await queue.get("WindowLines") == WINDOW_LINES
    await nic.write("Mac", 0x0102_0304_0506)
    assert await nic.read("Mac") == 0x0102_0304_0506
    # Halves and single bytes of registers, as a CPU may read them.
    magic = constant("MagicReset").to_bytes(8, "little")
    for first in range(8):
        assert await nic.bar.read(first, 8 - first) == magic[first:]
    assert await nic.counter("BadAccesses") == 0


@cocotb.test()
async def unordered_stores_leave_in_order(dut: Any) -> None:
    """Messages in permuted and split posted writes, on all queues, all streams stalling; credits land in memory."""
    nic = Nic(dut)
    await nic.bring_up()
    queues: dict[int, Queue] = {n: MmioQueue(nic, n) for n in range(QUEUES)}
    for queue in queues.values():
        assert isinstance(queue, MmioQueue)
        await queue.start(credit_lines=nic.random.randint(1, 8))
    frames = 0
    for round_share in (0.0, 0.4):
        nic.stall_all(round_share)

        async def sender(queue: MmioQueue) -> None:
            for _ in range(30):
                await queue.send(frame_of(nic, queue), split_share=0.2)

        senders = [cocotb.start_soon(sender(queue)) for queue in queues.values() if isinstance(queue, MmioQueue)]
        frames += 30 * len(senders)
        while not all(task.done() for task in senders):
            check_frames(nic, queues)
            await RisingEdge(dut.user_clk)
        await drained(nic, queues)
    for queue in queues.values():
        assert isinstance(queue, MmioQueue)
        assert queue.freed() == queue.written, "all lines have come back by a DMA write"
    assert nic.link.overtaken > 500
    assert await nic.counter("TxFrames") == frames
    assert await nic.counter("TxMessages") == frames
    assert await nic.counter("ReorderedWrites") > 100
    assert await nic.counter("SplitLines") > 50
    assert await nic.counter("ReorderDepthMax") > 1
    for name in ("BadAccesses", "SpanExceeded", "Clobbers", "QuarantinedWrites", "HoleTimeouts"):
        assert await nic.counter(name) == 0, name


@cocotb.test()
async def descriptors_rings_and_interrupts(dut: Any) -> None:
    """Ring and frames in host memory at any byte, reads answered out of order and split; the head is in memory when
    the handler runs."""
    nic = Nic(dut)
    await nic.bring_up(read_request=nic.random.randint(0, 5))
    queues: dict[int, Queue] = {n: DescriptorQueue(nic, n) for n in range(QUEUES)}
    heads: dict[int, int] = {}

    def seen(vector: int) -> None:
        queue = queues[vector]
        assert isinstance(queue, DescriptorQueue)
        # A later completion may be there already.
        assert queue.head() > 0 and queue.head() >= heads.get(vector, 0)
        heads[vector] = queue.head()

    nic.watch_interrupts(QUEUES, seen)
    await nic.write("IrqMask", pack(NIC_PKG, "reg_irq_mask_t", tx_completion=1))
    for queue in queues.values():
        assert isinstance(queue, DescriptorQueue)
        await queue.start(frames=4, time_ns=2000)
    for share in (0.0, 0.4):
        nic.stall_all(share)

        async def poster(queue: DescriptorQueue) -> None:
            for _ in range(12):
                burst = nic.random.randint(1, 6)
                for n in range(burst):
                    flags = int(n == burst - 1 or nic.random.random() < 0.3)
                    await queue.post(frame_of(nic, queue, 2000), shift=nic.random.randrange(256), flags=flags)
                await queue.ring("TxTail", queue.posted)

        posters = [cocotb.start_soon(poster(queue)) for queue in queues.values() if isinstance(queue, DescriptorQueue)]
        while not all(task.done() for task in posters):
            check_frames(nic, queues)
            await RisingEdge(dut.user_clk)
        await drained(nic, queues)
    await nic.cycles(800)
    for queue in queues.values():
        assert isinstance(queue, DescriptorQueue)
        assert queue.head() == queue.posted
        assert heads[queue.number] == queue.posted, "the last interrupt tells of the last frame"
    assert nic.link.split > 50
    assert await nic.counter("Interrupts") == len(nic.interrupts)
    assert await nic.counter("DmaErrors") == 0
    cause = await nic.read("IrqCause")
    assert cause == pack(NIC_PKG, "reg_irq_cause_t", tx_completion=1)


@cocotb.test()
async def a_read_that_fails_costs_its_frame(dut: Any) -> None:
    """A descriptor that points nowhere: the root complex has no answer, the read is counted however many requests it
    was cut into, and the queue goes on."""
    nic = Nic(dut)
    await nic.bring_up(read_request=0)
    queue = DescriptorQueue(nic, 1)
    await queue.start(frames=1, time_ns=0)
    nowhere = 0
    for n in range(60):
        if n % 5 == 3:
            queue.describe(nic.base + (1 << 30) + n * 4096 + n, 400)
            nowhere += 1
        else:
            await queue.post(frame_of(nic, queue), shift=n)
        if n % 4 == 3:
            await queue.ring("TxTail", queue.posted)
            await nic.until("head", lambda: queue.head() == queue.posted)
    await drained(nic, {1: queue})
    assert await nic.counter("DmaErrors") == nowhere
    assert await nic.counter("TxFrames") == 60 - nowhere


@cocotb.test()
async def a_stopped_queue_writes_no_more(dut: Any) -> None:
    """The answer to a register read pushes the device's writes: after disable and read-back memory stands still."""
    nic = Nic(dut)
    await nic.bring_up()
    for _ in range(8):
        queue = MmioQueue(nic, 2)
        await queue.start(credit_lines=1)
        nic.stall_all(0.3)
        for _ in range(nic.random.randint(3, 20)):
            await queue.send(frame_of(nic, queue, 200))
        await nic.cycles(nic.random.randrange(120))
        await queue.disable()
        told = queue.freed()
        nic.put(queue.at + TOLD_AT, bytes(range(8)))
        await nic.link.flush()
        await nic.cycles(300)
        assert nic.memory[queue.at + TOLD_AT : queue.at + TOLD_AT + 8] == bytes(range(8)), "written after the stop"
        assert told <= queue.written
        # What had left before the stop is whole and in order; what had not is gone.
        check_frames(nic, {2: queue})


@cocotb.test()
async def a_reset_in_the_middle_of_reads(dut: Any) -> None:
    """The device is reset while the host owes it answers; they come, are nobody's, and the next life is clean."""
    nic = Nic(dut)
    await nic.bring_up()
    for life in range(4):
        queue = DescriptorQueue(nic, 0)
        await queue.start(frames=1, time_ns=0)
        nic.link.release_share = 0.05
        for _ in range(20):
            await queue.post(frame_of(nic, queue, 2000), shift=nic.random.randrange(64))
        await queue.ring("TxTail", queue.posted)
        await nic.cycles(nic.random.randrange(50, 400))
        if life == 3:
            break
        await nic.write("Control", pack(NIC_PKG, "reg_control_t", reset=1))
        nic.link.release_share = 0.5
        while await nic.read("Control"):
            pass
        # What was cut short on the wire carries the mark; the rest was whole.
        while not nic.sink.empty():
            got = nic.sink.recv_nowait()
            frame = bytes(got.tdata)
            if frame != queue.expected[0]:
                marks = [got.tuser] if isinstance(got.tuser, int) else got.tuser
                assert any(marks), "a frame that is not whole has no mark"
                break
            queue.expected.popleft()
        await nic.cycles(500)
        while not nic.sink.empty():
            nic.sink.recv_nowait()
        await nic.write("Control", pack(NIC_PKG, "reg_control_t", enable=1))
    nic.link.release_share = 0.5
    await drained(nic, {0: queue})
    assert queue.head() == queue.posted
