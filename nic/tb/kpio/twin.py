"""What the kPIO+WC engine must do, in Python: the behaviour of nic/model/src/kpio, without time.

The twin knows no room: whether a line finds room depends on when frames leave, so the tests for overruns and
back-pressure say themselves what must happen. Of the pieces it is told, it says which frames leave, in which order,
and what is counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

LINE_BYTES = 64
WORD_BYTES = 8
MIN_FRAME_BYTES = 14
MAX_PARTIAL_LINES = 10
ALL_BYTES = (1 << LINE_BYTES) - 1


@dataclass
class Partial:
    """A line of which bytes are missing."""

    line: int
    arrived: int = 0
    data: bytearray = field(default_factory=lambda: bytearray(LINE_BYTES))
    overtaken: bool = False


@dataclass
class Queue:
    """A started queue."""

    eop: int
    window_lines: int
    active: bool = True
    partials: list[Partial] = field(default_factory=list)
    has_hole: bool = False
    open: list[bytes] = field(default_factory=list)
    dropping: bool = False
    arrived_lines: int = 0
    frames: list[bytes] = field(default_factory=list)


class Twin:
    """All queues of an engine."""

    def __init__(self, window_lines: int, max_frame_bytes: int) -> None:
        self.window_lines = window_lines
        self.max_frame_bytes = max_frame_bytes
        self.longest_lines = min(max_frame_bytes // LINE_BYTES + 1, window_lines)
        self.queues: dict[int, Queue] = {}
        self.counters: Counter[str] = Counter()
        self.order: list[tuple[int, bytes]] = []
        self.failed: list[tuple[int, str]] = []

    def start(self, queue: int, eop: int) -> None:
        """The queue is started, empty."""
        self.queues[queue] = Queue(eop, self.window_lines)

    def stop(self, queue: int) -> None:
        """The queue is stopped."""
        self.queues.pop(queue, None)

    def fail(self, queue: int, cause: str) -> None:
        """The queue fails: what is incomplete goes."""
        state = self.queues[queue]
        state.active = False
        self.failed.append((queue, cause))
        state.partials, state.open, state.has_hole = [], [], False

    def piece(self, queue: int, line: int, data: bytes, enables: int) -> None:
        """A piece of a line arrives; `data` are all 64 bytes."""
        state = self.queues.get(queue)
        if state is None or not state.active:
            self.counters["quarantined_writes"] += 1
            return
        if enables == 0:
            return
        if enables == ALL_BYTES and not state.partials:
            self._line(state, queue, data)
            return
        partial = next((partial for partial in state.partials if partial.line == line), None)
        if partial is None:
            if len(state.partials) == MAX_PARTIAL_LINES:
                self.counters["span_exceeded"] += 1
                self.fail(queue, "span_exceeded")
                return
            partial = Partial(line)
            state.partials.append(partial)
        if partial.arrived & enables:
            self.counters["clobbers"] += 1
            self.fail(queue, "clobber")
            return
        partial.arrived |= enables
        for i in range(LINE_BYTES):
            if enables >> i & 1:
                partial.data[i] = data[i]
        if partial.arrived == ALL_BYTES:
            index = state.partials.index(partial)
            del state.partials[index]
            for older in state.partials[:index]:
                older.overtaken = True
            self.counters["split_lines"] += enables != ALL_BYTES
            self._line(state, queue, bytes(partial.data))
        has_hole = len(state.partials) > 1 or any(partial.overtaken for partial in state.partials)
        self.counters["holes"] += has_hole and not state.has_hole
        state.has_hole = has_hole

    def _line(self, state: Queue, queue: int, data: bytes) -> None:
        self.counters["kpio_lines"] += 1
        state.arrived_lines += 1
        words = [data[i : i + WORD_BYTES] for i in range(0, LINE_BYTES, WORD_BYTES)]
        signature = state.eop.to_bytes(WORD_BYTES, "little")
        own = len(words)
        while own and words[own - 1] == signature:
            own -= 1
        ends = own < len(words)
        damaged = signature in words[:own]
        if state.dropping:
            state.dropping = not ends
            return
        state.open.append(data)
        if damaged:
            self.counters["kpio_malformed"] += 1
            state.open, state.dropping = [], not ends
        elif not ends:
            if len(state.open) == self.longest_lines:
                self.counters["bad_lengths"] += 1
                state.open, state.dropping = [], True
        else:
            frame = b"".join(state.open)[: (len(state.open) - 1) * LINE_BYTES + own * WORD_BYTES]
            state.open = []
            if not frame:
                self.counters["kpio_malformed"] += 1
            elif len(frame) < MIN_FRAME_BYTES:
                self.counters["runts"] += 1
            elif len(frame) > self.max_frame_bytes:
                self.counters["bad_lengths"] += 1
            else:
                self.counters["kpio_frames"] += 1
                state.frames.append(frame)
                self.order.append((queue, frame))
