"""Two lines a cycle from the BAR's addresses to the wires, through every part of the port."""

from __future__ import annotations

from typing import Any

import cocotb

from pair.bench import HEADER_BYTES, LINE_BYTES, QUEUES
from pair.port import LANES, Port
from usplus.host import constant

ONE_LINE = LINE_BYTES - HEADER_BYTES
# Cycles after a start that are not looked at.
BEGIN = 300
# Longest that a register read may take: the writes' turn, what of them is inside, and the answer.
READ_CYCLES = 80


async def rate(port: Port, queues: list[int], cycles: int = 3000, frame: int = ONE_LINE, shuffles: bool = True) -> float:
    """Lines a cycle at the pins, in or out, whichever is less, with writers that never run dry."""
    await port.open()
    for queue in queues:
        sender = port.start(queue, credit_lines=2)
        sender.shuffles = shuffles
        # One queue could have every line of its engine.
        while len(sender.lines) < cycles + 2 * BEGIN:
            sender.put(port.random.randbytes(frame), port.random)
    await port.until("the queues are started", lambda: not port.next_lines)
    begin = port.cycle + BEGIN
    await port.until("time passes", lambda: port.cycle >= begin + cycles)
    taken, beats = (sum(what[n] for n in range(begin, begin + cycles)) for what in (port.taken, port.beats))
    rates = (taken / cycles, beats / cycles)
    port.dut._log.info("queues %s: %.3f lines a cycle in, %.3f beats a cycle out", queues, *rates)
    return min(rates)


def by_place(queues: list[int], place: int) -> int:
    """A queue of even number for lane 0, one of odd number for lane 1."""
    return next((queue for queue in queues if queue % 2 == place), queues[0])


@cocotb.test()
async def two_queues_in_order(dut: Any) -> None:
    """Two lines and two messages of one line in every single cycle."""
    port = Port(dut)
    port.choose = by_place
    assert await rate(port, [0, 1], shuffles=False) == LANES


@cocotb.test()
async def two_queues_shuffled(dut: Any) -> None:
    """The same with every line anywhere inside the span: now and then one waits until the frontier is certain."""
    port = Port(dut)
    port.choose = by_place
    assert await rate(port, [6, 3], cycles=10_000) > 0.99 * LANES


@cocotb.test()
async def all_queues_in_turn(dut: Any) -> None:
    """Every queue, both lanes for different engines."""
    port = Port(dut)
    turn = [0, 0]

    def in_turn(queues: list[int], place: int) -> int:
        turn[place] += 2
        wanted = (turn[place] + place) % QUEUES
        return wanted if wanted in queues else queues[0]

    port.choose = in_turn
    assert await rate(port, list(range(QUEUES))) > 0.99 * LANES


@cocotb.test()
async def messages_of_three_lines(dut: Any) -> None:
    """Longer messages have the same rate."""
    port = Port(dut)
    port.choose = by_place
    assert await rate(port, [2, 5], frame=3 * LINE_BYTES - HEADER_BYTES) > 0.98 * LANES


@cocotb.test()
async def queues_of_one_parity(dut: Any) -> None:
    """Have one engine: a line a cycle."""
    assert 0.98 < await rate(Port(dut), [1, 3, 5, 7]) <= 1.0


@cocotb.test()
async def a_read_is_answered_between_writes_without_a_gap(dut: Any) -> None:
    """A register is read while two lines come in every cycle: writes make way after a while, and not for long."""
    port = Port(dut)
    port.choose = by_place
    await port.open()
    for queue in (0, 1):
        sender = port.start(queue, credit_lines=2)
        sender.shuffles = False
        while len(sender.lines) < 4000:
            sender.put(port.random.randbytes(ONE_LINE), port.random)
    await port.until("the queues are started", lambda: not port.next_lines)
    await port.cycles(BEGIN)
    begin = port.cycle
    for _ in range(10):
        assert all(port.taken[port.cycle - n] == LANES for n in range(1, 20)), "writes have no gap"
        asked = port.cycle
        assert await port.read_now(constant("MagicOffset")) == constant("MagicReset")
        assert port.cycle - asked < READ_CYCLES, f"{port.cycle - asked} cycles for a read"
        await port.cycles(100)
    taken = sum(port.taken[n] for n in range(begin, port.cycle)) / (port.cycle - begin)
    assert taken > 0.85 * LANES, f"{taken} lines a cycle"
