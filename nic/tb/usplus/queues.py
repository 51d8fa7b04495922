"""The driver's half of each way to hand frames over: stores into a window, descriptors, received frames."""

from __future__ import annotations

from pair.bench import NIC_PKG, message, named, pack
from usplus.driver import EPOCH, QUEUE_BYTES, WORD_BYTES, Queue
from usplus.host import LINE_BYTES, PARAMETERS, constant

WINDOW_LINES = PARAMETERS["WindowLines"]
# Host memory of a queue: words that the device writes, a ring, completions, and frames or buffers.
TOLD_AT, RING_AT, COMPLETIONS_AT, FRAMES_AT = 0, 4096, 8192, 16384
SLOT_BYTES = 2304


class MmioQueue(Queue):
    """Messages written into the window; credits come back in host memory."""

    written = 0

    async def start(self, credit_lines: int = 4) -> None:
        """A clean credit word, then the registers."""
        self.nic.put(self.at + TOLD_AT, bytes(WORD_BYTES))
        await self.set("CreditAddress", self.bus(TOLD_AT))
        await self.set("CreditCoalesce", pack(NIC_PKG, "reg_credit_coalesce_t", lines=credit_lines, time_ns=400))
        await self.enable("Mmio")
        self.written = 0

    def freed(self) -> int:
        """Lines that the device has given back."""
        return self.nic.word(self.at + TOLD_AT)

    async def send(self, frame: bytes, split_share: float = 0.0) -> None:
        """One message, line for line, some lines in two pieces; waits for credit."""
        rng = self.nic.random
        whole = message(frame, EPOCH, rng)
        lines = len(whole) // LINE_BYTES
        await self.nic.until("credit", lambda: self.written + lines - self.freed() <= WINDOW_LINES)
        window = self.nic.windows + self.number * self.nic.window_bytes
        self.expected.append(frame)
        for n in range(lines):
            line = whole[n * LINE_BYTES : (n + 1) * LINE_BYTES]
            at = window + (self.written + n) % WINDOW_LINES * LINE_BYTES
            cut = rng.randrange(1, LINE_BYTES) if rng.random() < split_share else LINE_BYTES
            for part, place in ((line[:cut], at), (line[cut:], at + cut)):
                if part:
                    await self.nic.bar.write(place, part)
        self.written += lines


class DescriptorQueue(Queue):
    """A ring of descriptors in host memory, and frames wherever they lie."""

    posted = 0

    async def start(self, **moderation: int) -> None:
        """A clean head word, then the registers."""
        self.nic.put(self.at + TOLD_AT, bytes(WORD_BYTES))
        await self.set("TxRingAddress", self.bus(RING_AT))
        await self.set("TxRingEntries", self.entries)
        await self.set("TxHeadAddress", self.bus(TOLD_AT))
        await self.set("TxModeration", pack(NIC_PKG, "reg_moderation_t", **moderation))
        await self.enable("Descriptor")
        self.posted = 0

    def head(self) -> int:
        """Descriptors that the device has done with."""
        return self.nic.word(self.at + TOLD_AT)

    def describe(self, address: int, length: int, flags: int = 0) -> None:
        """A descriptor in the ring; the doorbell is the caller's."""
        place = self.at + RING_AT + self.posted % self.entries * constant("TxDescriptorBytes")
        words = address.to_bytes(8, "little") + length.to_bytes(4, "little") + flags.to_bytes(4, "little")
        self.nic.put(place, words)
        self.posted += 1

    async def post(self, frame: bytes, shift: int, flags: int = 0) -> None:
        """A frame at any byte of its slot, and its descriptor."""
        slots = min(self.entries, (QUEUE_BYTES - FRAMES_AT) // SLOT_BYTES)
        await self.nic.until("room in the ring", lambda: self.posted - self.head() < slots)
        place = FRAMES_AT + self.posted % slots * SLOT_BYTES + shift
        self.nic.put(self.at + place, frame)
        self.describe(self.bus(place), len(frame), flags)
        self.expected.append(frame)


class ReceiveQueue(Queue):
    """Receives into a contiguous ring or into buffers."""

    next = 0

    async def start(self, mode: str, interface: str = "None", **moderation: int) -> None:
        """What the host lends, then the registers."""
        self.mode = named("RxModeMode")[mode]
        self.is_ring = mode == "Ring"
        self.next = 0
        self.nic.put(self.at + RING_AT, bytes(FRAMES_AT - RING_AT))
        if not self.is_ring:
            for entry in range(self.entries):
                self.lend(entry)
        await self.set("RxMode", self.mode)
        await self.set("RxRingAddress", self.bus(RING_AT))
        await self.set("RxRingEntries", self.entries)
        await self.set("RxCompletionAddress", self.bus(COMPLETIONS_AT))
        await self.set("RxModeration", pack(NIC_PKG, "reg_moderation_t", **moderation))
        await self.enable(interface)

    def buffer(self, entry: int) -> int:
        """At any byte."""
        return FRAMES_AT + entry % ((QUEUE_BYTES - FRAMES_AT) // SLOT_BYTES) * SLOT_BYTES + entry % 61

    def lend(self, entry: int) -> None:
        """A buffer's descriptor."""
        words = self.bus(self.buffer(entry)).to_bytes(8, "little") + (2200).to_bytes(8, "little")
        self.nic.put(self.at + RING_AT + entry * constant("RxDescriptorBytes"), words)

    def is_there(self) -> bool:
        """Whether the next frame is."""
        if self.is_ring:
            return self.nic.word(self.at + RING_AT + self.next % self.entries * LINE_BYTES) != 0
        word = self.nic.word(self.at + COMPLETIONS_AT + self.next % self.entries * constant("RxCompletionBytes"))
        return word >> 32 == 1 - (self.next // self.entries & 1)

    def poll(self) -> bytes | None:
        """The next frame, if it is there; what it took is free again, once the doorbell is rung."""
        return self.poll_ring() if self.is_ring else self.poll_buffer()

    def poll_ring(self) -> bytes | None:
        """Its word comes last."""
        def place(line: int) -> int:
            return self.at + RING_AT + line % self.entries * LINE_BYTES

        if not self.is_there():
            return None
        word = self.nic.word(place(self.next))
        assert word >> 32 == 1
        length = word & 0xFFFF_FFFF
        lines = -(-(WORD_BYTES + length) // LINE_BYTES)
        taken = range(self.next, self.next + lines)
        whole = b"".join(bytes(self.nic.memory[place(n) : place(n) + LINE_BYTES]) for n in taken)
        for n in taken:
            self.nic.put(place(n), bytes(WORD_BYTES))
        self.next += lines
        return whole[WORD_BYTES : WORD_BYTES + length]

    def poll_buffer(self) -> bytes | None:
        """Its completion comes last."""
        if not self.is_there():
            return None
        entry = self.next % self.entries
        word = self.nic.word(self.at + COMPLETIONS_AT + entry * constant("RxCompletionBytes"))
        self.next += 1
        place = self.at + self.buffer(entry)
        return bytes(self.nic.memory[place : place + (word & 0xFFFF_FFFF)])
