"""Which queue a frame goes to: a small twin of the flow hash."""

from __future__ import annotations

ODD = 0x9E37_79B9_7F4A_7C15
MASK = (1 << 64) - 1
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
WITH_PORTS = (6, 17, 132)


def fold(total: int, data: bytes) -> int:
    for byte in data:
        total = (total << 7 | total >> 57) & MASK
        total = (total * 31 & MASK) ^ byte
    return total


def ip_flow(frame: bytes) -> int | None:
    ip = frame[14:]
    if frame[12:14] == IPV4 and len(ip) >= 20:
        addresses, protocol, header = ip[12:20], ip[9], (ip[0] & 15) * 4
        is_fragment = ip[6] & 0x3F != 0 or ip[7] != 0
    elif frame[12:14] == IPV6 and len(ip) >= 40:
        addresses, protocol, header, is_fragment = ip[8:40], ip[6], 40, False
    else:
        return None
    has_ports = protocol in WITH_PORTS and not is_fragment and len(ip) >= header + 4
    return fold(fold(protocol, addresses), ip[header : header + 4] if has_ports else b"")


def flow_hash(frame: bytes) -> int:
    total = ip_flow(frame)
    if total is None:
        total = fold(0, frame[:12])
    return (total * ODD & MASK) >> 32
