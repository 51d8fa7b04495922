"""Frames of every size through the whole port, with register writes, reads and bad accesses between their lines."""

from __future__ import annotations

from typing import Any

import cocotb

from pair.bench import LINE_BYTES, QUEUES
from pair.port import ADDRESS_BITS, APERTURE, STRIDE, WORD_BYTES, KpioSender, Line, Port
from usplus.host import constant

SIZES = [14, 55, 56, 57, 64, 119, 120, 121, 300]
MAC = constant("MacOffset")


def fill(port: Port, count: int) -> None:
    """Random frames for random queues; those of kPIO+WC have whole words."""
    for _ in range(count):
        sender = port.random.choice(list(port.senders.values()))
        size = port.random.choice([*SIZES, port.random.randrange(14, 1500)])
        size = -(-size // WORD_BYTES) * WORD_BYTES if isinstance(sender, KpioSender) else size
        sender.put(port.random.randbytes(size), port.random)


def bad_write(port: Port) -> list[Line]:
    """A write that names nothing, of one line or a few: it counts once."""
    rng = port.random
    data = rng.randbytes(LINE_BYTES)
    kind = rng.randrange(4)
    if kind == 0:  # Behind the last window.
        at = APERTURE + QUEUES * STRIDE + rng.randrange(64) * LINE_BYTES
        lines = [Line(at + i * LINE_BYTES, int.from_bytes(data)) for i in range(rng.randrange(1, 4))]
    elif kind == 1:  # Registers, more than a word.
        lines = [Line(rng.randrange(64) * LINE_BYTES, int.from_bytes(data), 0xFFFF)]
    elif kind == 2:  # Part of a word.
        lines = [Line(rng.randrange(64) * LINE_BYTES, int.from_bytes(data), 0x7F)]
    else:  # No byte of a window at all.
        lines = [Line(APERTURE, 0, 0)]
    for i, line in enumerate(lines):
        assert line.address < 1 << ADDRESS_BITS
        line.first, line.last = i == 0, i == len(lines) - 1
    return lines


async def accesses(port: Port, count: int) -> int:
    """Register writes and reads, and bad accesses, as traffic goes on; how many were bad."""
    bad = 0
    for _ in range(count):
        await port.cycles(port.random.randrange(1, 40))
        kind = port.random.randrange(4)
        if kind == 0:
            port.next_lines += bad_write(port)
            bad += 1
        elif kind == 1:
            # The last of a few writes in a row, in either lane, is what is read.
            for _ in range(port.random.randrange(1, 4)):
                value = port.random.getrandbits(48)
                port.write(MAC, value)
            assert await port.read(MAC) == value
        elif kind == 2:
            # A read pushes what was written: at least what was taken when it was asked for is counted.
            before = port.written["writes"]
            count = await port.read_now(constant("CountersOffset") + constant("CounterTxWritesOffset"))
            assert before <= count <= port.written["writes"], (before, count, port.written["writes"])
        else:
            assert await port.read_now(constant("MagicOffset")) == constant("MagicReset")
    return bad


@cocotb.test()
async def random_traffic_with_accesses(dut: Any) -> None:
    """Lines out of order, in parts and in bursts, wires and memory that wait, lanes that are empty."""
    port = Port(dut)
    await port.open()
    for queue in range(QUEUES):
        sender = port.start(queue, credit_lines=1 + queue % 5)
        sender.shuffles = queue % 3 != 0
    frames = bad = 0
    # How often each wire takes a beat, a lane is used, a line comes in parts, and with the next ones in one write.
    habits = [([1.0, 1.0], 1.0, 0.0, 0.0), ([0.5, 1.0], 1.0, 0.3, 0.5), ([0.9, 0.3], 0.5, 0.3, 0.5)]
    for wires, full, split, burst in habits:
        port.wire_share, port.full_share, port.split_share, port.burst_share = wires, full, split, burst
        port.memory_share = full
        count = 12 * QUEUES
        fill(port, count)
        frames += count
        bad += await accesses(port, 20)
        await port.drained()
    assert min(port.frames.values()) > frames // 4, port.frames
    assert await port.counter("TxFrames") == await port.counter("TxMessages") == frames
    assert await port.counter("TxFrameBytes") == sum(port.bytes_left.values())
    assert await port.counter("TxWrites") == port.written["writes"]
    assert await port.counter("TxWriteBytes") == port.written["bytes"]
    assert await port.counter("BadAccesses") == bad
    assert await port.counter("SplitLines") > 0 and await port.counter("ReorderedWrites") > 0
    for name in ("SpanExceeded", "Clobbers", "QuarantinedWrites", "BadHeaders", "HoleTimeouts"):
        assert await port.counter(name) == 0, name
    for queue, sender in port.senders.items():
        assert await port.get(queue, "NextStart") == len(sender.lines)


@cocotb.test()
async def kpio_between_pairs(dut: Any) -> None:
    """Queues of kPIO+WC of both parities beside those of mmio: all their frames on stream 0, every line in order."""
    port = Port(dut)
    await port.open()
    for queue in range(QUEUES):
        port.start(queue, "Kpio" if queue % 4 in (1, 2) else "Mmio", credit_lines=4)
    fill(port, 25 * QUEUES)
    bad = await accesses_without_counts(port, 20)
    await port.drained()
    assert await port.counter("TxFrames") == 25 * QUEUES
    assert await port.counter("KpioFrames") == sum(
        sender.left for sender in port.senders.values() if isinstance(sender, KpioSender)
    )
    assert await port.counter("BadAccesses") == bad


async def accesses_without_counts(port: Port, count: int) -> int:
    """Bad accesses alone."""
    for _ in range(count):
        await port.cycles(port.random.randrange(1, 40))
        port.next_lines += bad_write(port)
    return count


@cocotb.test()
async def one_wire_that_pauses(dut: Any) -> None:
    """While stream 1 pauses no frame begins on it, and stream 0 goes on until credits end it; then all leave."""
    port = Port(dut)
    await port.open()
    for queue in range(QUEUES):
        port.start(queue)
    fill(port, 8 * QUEUES)
    await port.until("frames leave", lambda: port.frames[1] > 8)
    dut.frame_pause_i.value = 0b10
    # What has left its engine is on its way; a frame that began may be the longest.
    await port.cycles(200)
    before = dict(port.frames)
    even = [sender for sender in port.senders.values() if sender.queue % 2 == 0]
    await port.until("even queues end", lambda: all(sender.is_done() for sender in even))
    assert port.frames[1] == before[1], "nothing leaves on the stream that pauses"
    dut.frame_pause_i.value = 0
    await port.drained()


@cocotb.test()
async def cut_through_on_both_wires(dut: Any) -> None:
    """Senders that are slower than the wires: frames that began early end with an abort, and come again whole."""
    port = Port(dut)
    port.may_abort = True
    await port.open()
    for queue in range(QUEUES):
        port.set(queue, "CutThrough", 4 + queue % 7)
        port.start(queue).shuffles = queue % 4 < 2
    frames = 0
    for share in (0.3, 0.9):
        port.full_share = share
        for sender in port.senders.values():
            for _ in range(8):
                sender.put(port.random.randbytes(port.random.randrange(300, 3000)), port.random)
                frames += 1
        await port.drained()
    assert all(port.aborted), port.aborted
    assert await port.counter("CutThroughUnderruns") == sum(port.aborted)
    assert await port.counter("CutThroughFrames") >= sum(port.aborted)
    assert await port.counter("TxFrames") == await port.counter("TxMessages") == frames
    assert await port.counter("TxFrameBytes") == sum(port.bytes_left.values())
    dut._log.info("%d frames, %s cut short on the wires", frames, port.aborted)
