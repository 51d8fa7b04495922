"""The transmit engine of pipes between a host and a wire."""

from __future__ import annotations

from cocotb.handle import SimHandleBase
from descriptor.bench import BASE, QUEUE_BYTES, RING_AT, Bench, Queue
from dma.host import LINE_BYTES, Habits, QueueSettings

ENSO, CAUSE_BAD_HEADER, CAUSE_DMA_ERROR, CAUSE_BAD_LENGTH = 5, 3, 8, 9
WORD_BYTES = 8
MAX_FRAME = 9216


def lines_of(length: int) -> int:
    """Lines that a frame takes in a pipe."""
    return -(-(WORD_BYTES + length) // LINE_BYTES)


class PipeBench(Bench):
    """A queue's entries are lines of its pipe; `posted` counts them."""

    COUNTS = (
        "bad_accesses",
        "payload_fetches",
        "completions",
        "runts",
        "bad_headers",
        "bad_lengths",
        "dma_errors",
    )
    INTERRUPTS = False

    def __init__(self, dut: SimHandleBase, seed: int, habits: Habits | None = None) -> None:
        super().__init__(dut, seed, habits)
        dut.max_frame_bytes_i.value = MAX_FRAME

    def settings(self, number: int, entries: int, **more: int) -> QueueSettings:
        return super().settings(number, entries, **({"iface": ENSO} | more))

    def pipe_line(self, queue: Queue, position: int) -> int:
        """Address of a line of the pipe."""
        return BASE + queue.number * QUEUE_BYTES + RING_AT + position % queue.entries * LINE_BYTES

    def append(self, queue: Queue, data: bytes) -> None:
        """Writes whole lines to the pipe."""
        data += bytes(-len(data) % LINE_BYTES)
        for start in range(0, len(data), LINE_BYTES):
            self.memory.write(self.pipe_line(queue, queue.posted), data[start : start + LINE_BYTES])
            queue.posted += 1

    def post(self, queue: Queue, length: int, shift: int = 0, flags: int = 0) -> None:
        frame = self.rng.randbytes(length)
        self.append(queue, length.to_bytes(WORD_BYTES, "little") + frame)
        queue.expected.append(frame)

    def header(self, queue: Queue, word: int) -> None:
        """A line with another word in front."""
        self.append(queue, word.to_bytes(WORD_BYTES, "little") + self.rng.randbytes(LINE_BYTES - WORD_BYTES))

    def room(self, queue: Queue) -> int:
        return queue.entries - (queue.posted - self.head(queue))
