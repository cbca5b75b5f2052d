"""Defers an interrupt until an operation that must not be left half done is complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Ctrl-C, a signal from outside, a closed terminal.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interruptible() -> None:
    """Makes all of them end a run like Ctrl-C; ignored ones (nohup) stay ignored."""
    for number in INTERRUPTS[1:]:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def interrupts() -> Iterator[None]:
    """Defers interrupts meanwhile, and raises KeyboardInterrupt afterwards.

    A second Ctrl-C must not cut off what the first has begun.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            raise KeyboardInterrupt
