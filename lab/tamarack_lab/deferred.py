"""An interrupt that waits until something is done that must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# A Ctrl-C, an end from outside, a terminal that is closed.
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interruptible() -> None:
    """Lets all of them end a run as Ctrl-C does; what is ignored (nohup) stays so."""
    for number in INTERRUPTS[1:]:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def interrupts() -> Iterator[None]:
    """Keeps interrupts back meanwhile, and raises KeyboardInterrupt afterwards.

    Who is impatient presses Ctrl-C twice: the second must not cut off what the first has begun.
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
