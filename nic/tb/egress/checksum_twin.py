"""What a frame looks like when its checksums have been filled in: written from the RFCs, byte by byte.

RFC 791 (IPv4), 8200 (IPv6), 768 (UDP), 9293 (TCP), 1071 (the sum). Not written after the RTL: it walks the frame with
slices and knows nothing of beats.
"""

from __future__ import annotations

import struct

TAGS = (0x8100, 0x88A8)
TCP = 6
UDP = 17


def checksum(data: bytes) -> int:
    """The complement of the sum of 16-bit words, with an odd last byte padded by zero."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def network_at(frame: bytes) -> tuple[int, int]:
    """Type of the network header, and where it begins; at most two tags are known."""
    at = 12
    for _ in range(2):
        if frame[at : at + 2] and int.from_bytes(frame[at : at + 2], "big") in TAGS:
            at += 4
    return int.from_bytes(frame[at : at + 2], "big"), at + 2


def filled(frame: bytes) -> bytes:
    """The frame with its checksums, as far as it is understood."""
    kind, at = network_at(frame)
    if kind == 0x0800:
        return filled_v4(frame, at)
    if kind == 0x86DD:
        return filled_v6(frame, at)
    return frame


def filled_v4(frame: bytes, at: int) -> bytes:
    """The same for IPv4, whose header has a checksum of its own."""
    packet = frame[at:]
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return frame
    header_bytes = (packet[0] & 15) * 4
    total = int.from_bytes(packet[2:4], "big")
    if header_bytes < 20 or total < header_bytes or total > len(packet):
        return frame
    header = packet[:10] + b"\0\0" + packet[12:header_bytes]
    header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
    payload = packet[header_bytes:total]
    if int.from_bytes(packet[6:8], "big") & 0x3FFF == 0:
        payload = filled_payload(packet[12:20], packet[9], payload)
    return frame[:at] + header + payload + packet[total:]


def filled_v6(frame: bytes, at: int) -> bytes:
    """The same for IPv6 without extension headers."""
    packet = frame[at:]
    total = 40 + int.from_bytes(packet[4:6], "big")
    if len(packet) < 40 or packet[0] >> 4 != 6 or total > len(packet):
        return frame
    return frame[:at] + packet[:40] + filled_payload(packet[8:40], packet[6], packet[40:total]) + packet[total:]


def filled_payload(addresses: bytes, protocol: int, payload: bytes) -> bytes:
    """A TCP segment or UDP datagram with its checksum; everything else as it is."""
    if protocol == TCP and len(payload) >= 20:
        place = 16
    elif protocol == UDP and len(payload) >= 8 and int.from_bytes(payload[4:6], "big") == len(payload):
        place = 6
    else:
        return payload
    blank = payload[:place] + b"\0\0" + payload[place + 2 :]
    # Both pseudo headers add up to the same: addresses, length and protocol.
    value = checksum(addresses + struct.pack(">II", len(payload), protocol) + blank)
    if protocol == UDP and value == 0:
        value = 0xFFFF
    return payload[:place] + struct.pack(">H", value) + payload[place + 2 :]
