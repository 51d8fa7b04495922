"""The owner of one window breaks the rules in the middle of its own traffic, TLP behind TLP; a neighbour keeps them.

Whatever the hostile queue writes, frames leave byte for byte as they became complete, the neighbour's credits come back,
and it runs on. Assertions of the RTL are on: one that fails ends the bench.
"""

from __future__ import annotations

from typing import Any

import cocotb

from pair.bench import message
from usplus.driver import EPOCH, Nic
from usplus.host import LINE_BYTES, PARAMETERS
from usplus.queues import WINDOW_LINES, MmioQueue
from usplus.test_transmit import drained

HOSTILE, NEIGHBOUR = 0, 2
CONTEXTS = PARAMETERS["NumContexts"]
# The longest frame of one line.
LINE_FRAME_BYTES = 56
# Frames of the neighbour that wait in the pool while the hostile queue writes, each in a line.
WAITING = 60
# Times that every context is made to hold the name of a line of an earlier life.
ROUNDS = 2
# First and number of the bytes of a piece.
WHOLE, WORD, REST = (0, 64), (0, 8), (8, 56)


class HostileQueue(MmioQueue):
    """A queue whose owner writes what it likes: good messages of one line, and bytes anywhere."""

    epoch = EPOCH

    async def restart(self) -> None:
        """A new life in a new epoch, in which all lines are free."""
        await self.disable()
        self.epoch = (self.epoch + 1) % 256
        await self.enable("Mmio", epoch=self.epoch)
        self.expected.clear()

    async def put(self, line: int, part: tuple[int, int]) -> None:
        """Bytes of a line, as a TLP of its own. A whole one is a message, which is expected to leave as it is; any other
        has bytes of no message."""
        rng = self.nic.random
        first, count = part
        data = rng.randbytes(count)
        if part == WHOLE:
            frame = bytes([self.number]) + rng.randbytes(LINE_FRAME_BYTES - 1)
            data = message(frame, self.epoch, rng)
            self.expected.append(frame)
        at = self.nic.windows + self.number * self.nic.window_bytes + line % WINDOW_LINES * LINE_BYTES
        await self.nic.bar.write(at + first, data)


class Bench:
    """The two queues, on credits, and a link that leaves writes in their order."""

    def __init__(self, dut: Any) -> None:
        self.nic = nic = Nic(dut)
        self.hostile, self.neighbour = HostileQueue(nic, HOSTILE), MmioQueue(nic, NEIGHBOUR)

    async def start(self) -> None:
        """Both run."""
        await self.nic.bring_up()
        self.nic.link.window_bytes = None
        await self.hostile.start()
        await self.neighbour.start(credit_lines=1)

    async def together(self, *pieces: tuple[int, tuple[int, int]]) -> None:
        """TLPs that stand at the device's port one behind the other, beat behind beat."""
        self.nic.dev.cq_source.pause = True
        for line, part in pieces:
            await self.hostile.put(line, part)
        await self.nic.cycles(100)
        self.nic.dev.cq_source.pause = False
        await self.nic.cycles(60)

    async def neighbour_sends(self, count: int) -> None:
        """Frames of a line each."""
        for _ in range(count):
            frame = bytes([NEIGHBOUR]) + self.nic.random.randbytes(LINE_FRAME_BYTES - 1)
            await self.neighbour.send(frame)

    async def neighbour_waits(self) -> None:
        """Frames of the neighbour stand in front of the wire, in any lines of the pool: some have left before."""
        await self.neighbour_sends(self.nic.random.randrange(WAITING))
        await self.nothing_has_changed()
        self.nic.sink.pause = True
        await self.neighbour_sends(WAITING)
        await self.nic.cycles(100)

    async def nothing_has_changed(self) -> None:
        """All that was complete leaves as it was written; the neighbour runs, and has its lines again."""
        nic = self.nic
        nic.sink.pause = False
        await drained(nic, {HOSTILE: self.hostile, NEIGHBOUR: self.neighbour})
        await nic.until("credits", lambda: self.neighbour.freed() == self.neighbour.written)
        assert await self.neighbour.get("Status") & 1, "an honest queue has failed"


@cocotb.test()
@cocotb.parametrize(line=[0, 5])
async def a_rewrite_behind_a_new_context_reaches_no_other_line(dut: Any, line: int) -> None:
    """A line whole, 8 bytes two lines on, the rest of the first line once more, in as many cycles as the TLPs take. When
    the third piece comes, the first one's move of the frontier is not told yet, and the context that the second one
    took holds what an earlier life left in the third one's slot: the name of a line that is the neighbour's by now."""
    bench = Bench(dut)
    await bench.start()
    for _ in range(ROUNDS):
        for _ in range(CONTEXTS):
            # Each is taken in its turn.
            await bench.hostile.put(line, WORD)
            await bench.nic.cycles(40)
            await bench.hostile.restart()
        for _ in range(CONTEXTS):
            await bench.neighbour_waits()
            await bench.together(*((before, WHOLE) for before in range(line)))
            await bench.together((line, WHOLE), (line + 2, WORD), (line, REST))
            assert await bench.hostile.get("Status") & 2, "a byte was written twice, and the queue has not failed"
            await bench.nothing_has_changed()
            await bench.hostile.restart()
