"""The heads of a load as a file, which wrk.lua and hammer.c both read.

A line is a word and fields separated by tabs: `order random|turn`, `kind WEIGHT STATUS METHOD
TEMPLATE BYTES` with the line ends of the head escaped and the length of the request's body (which
only wrk.lua sends), `page PATH HOST LENGTH HASH`.
"""

from __future__ import annotations

from pathlib import Path

from .. import compiled
from .tool import Order


def file(order: Order) -> Path:
    """The order's file, named by its contents: runs with the same requests share it."""
    return compiled.written("heads", written(order))


def written(order: Order) -> str:
    """The text of the file."""
    traffic = order.traffic
    lines = [f"order\t{'turn' if traffic.in_turn else 'random'}"]
    for kind in traffic.kinds:
        template = traffic.template(kind, order.validators, order.keep_alive)
        escaped = template.replace("\r\n", "\\r\\n")
        lines.append(f"kind\t{kind.weight}\t{kind.status}\t{kind.method}\t{escaped}\t{kind.sends}")
    # A body is compared if each response has it unchanged.
    whole = all(kind.status == 200 and not kind.coding and kind.method == "GET"
                for kind in traffic.kinds)
    for page in order.pages:
        length, digest = (page.length, page.hash) if whole else (-1, 0)
        lines.append(f"page\t{page.path}\t{page.host}\t{length}\t{digest}")
    return "\n".join(lines) + "\n"
