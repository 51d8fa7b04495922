"""Makes frames with and without sense for the checksum bench."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from egress.checksum_twin import TAGS, TCP, UDP


@dataclass
class Shape:
    """What a frame is made of; what is not valid can be asked for too."""

    tags: int = 0
    version: int = 4
    header_words: int = 5
    protocol: int = UDP
    payload: int = 100
    trailer: int = 0
    fragment: int = 0
    # Added to the lengths that IP and UDP say.
    ip_lie: int = 0
    udp_lie: int = 0
    kind: int | None = None


def frame(rng: random.Random, shape: Shape) -> bytes:
    """A frame of that shape, random where nothing is said, with rubbish for checksums."""
    kinds = {4: 0x0800, 6: 0x86DD}
    kind = kinds.get(shape.version, 0x0800) if shape.kind is None else shape.kind
    front = rng.randbytes(12)
    for _ in range(shape.tags):
        front += struct.pack(">HH", rng.choice(TAGS), rng.randrange(1 << 16))
    front += struct.pack(">H", kind)
    payload = transport(rng, shape)
    if shape.version == 6:
        header = struct.pack(">IHBB", 6 << 28 | rng.randrange(1 << 28), max(0, len(payload) + shape.ip_lie),
                             shape.protocol, 64) + rng.randbytes(32)
    else:
        total = max(0, shape.header_words * 4 + len(payload) + shape.ip_lie)
        header = struct.pack(">BBHHHBBH", shape.version << 4 | shape.header_words, rng.randrange(256), total,
                             rng.randrange(1 << 16), shape.fragment, 64, shape.protocol, rng.randrange(1 << 16))
        header += rng.randbytes(8 + max(0, shape.header_words - 5) * 4)
    return front + header + payload + rng.randbytes(shape.trailer)


def transport(rng: random.Random, shape: Shape) -> bytes:
    """The part behind the network header, of `payload` bytes in all."""
    body = rng.randbytes(shape.payload)
    if shape.protocol == UDP and shape.payload >= 8:
        length = (shape.payload + shape.udp_lie) & 0xFFFF
        body = body[:4] + struct.pack(">H", length) + body[6:]
    return body


def any_shape(rng: random.Random, longest: int) -> Shape:
    """Mostly frames that make sense; each way not to make sense now and then."""
    version = rng.choice([4, 4, 4, 6, 6])
    longest_payload = max(0, longest - 14 - 8 - 60)
    sizes = [0, 1, 7, 8, 9, 19, 20, 21, 26, 27, 64, 100, 101, 1400]
    payload = rng.choice([*sizes, rng.randrange(400), rng.randrange(longest_payload + 1)])
    shape = Shape(
        tags=rng.choice([0, 0, 0, 1, 2]),
        version=version,
        header_words=rng.choice([5, 5, 5, rng.randrange(5, 16)]),
        protocol=rng.choice([TCP, UDP]),
        payload=min(payload, longest_payload),
        trailer=rng.choice([0, 0, 0, 1, 18]),
    )
    match rng.randrange(24):
        case 0:
            shape.protocol = rng.choice([0, 1, 44, 50, 58])
        case 1:
            shape.fragment = rng.choice([0x2000, 0x0001, 0x2001, 0x1FFF, 0x4000])
        case 2:
            shape.ip_lie = rng.choice([-1, 1, 2, 19, 64, 3000, -payload - 1])
        case 3:
            shape.udp_lie = rng.choice([-1, 1, 256, -256])
        case 4:
            shape.kind = rng.choice([0x0806, 0x88B5, 0x86DD, 0x0800, 0x8847, 0x0008])
        case 5:
            shape.tags = 3
        case 6:
            shape.version = rng.choice([0, 5, 7, 15])
        case 7:
            shape.header_words = rng.randrange(5)
        case _:
            pass
    return shape
