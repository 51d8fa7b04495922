"""How many seeds a random test runs with."""

from __future__ import annotations

import os

# Of that many seeds a short run takes one.
SHARE = 3


def seeds(count: int) -> range:
    """`count` seeds, or a third of them in a short run: the others repeat the same choices in another order."""
    return range(-(-count // SHARE) if os.environ.get("BENCH_SHORT") else count)
