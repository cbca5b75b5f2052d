"""The arithmetic of the affinity part: targets, tables, what is left out."""

from __future__ import annotations

import unittest

from bench import affinity
from bench.affinity import (
    ADAPTING, CROWDED, FREE, KEPT, MOVES, PINNED, QUOTA, QUOTA_MANY, ROUNDS_MAX, SHORT, Row)


def rows(part: str, adapting: float, free: float, pinned: float, errors: int = 0) -> list[Row]:
    """Rounds without any noise."""
    values = {ADAPTING: adapting, FREE: free, PINNED: pinned}
    return [Row(part, name, "requests/s", [value] * ROUNDS_MAX, errors)
            for name, value in values.items()]


class Judging(unittest.TestCase):
    """Verdicts on made-up rows."""

    def verdicts(self, measured: list[Row]) -> dict[str, bool]:
        """By what is judged, without the scenario's name."""
        return {one.what.removeprefix("affinity: "): one.met for one in affinity.judge(measured)}

    def test_adapting_is_compared_with_both(self) -> None:
        """At least 0.95 of the unpinned server, and clearly more than the pinned one."""
        for part in (SHORT, CROWDED):
            unpinned = f"{part}: adapting against unpinned"
            pinned = f"{part}: adapting against pinned"
            for measured, met in (((96, 100, 80), (True, True)), ((94, 100, 95), (False, False)),
                                  ((100, 100, 95), (True, False))):
                self.assertEqual(self.verdicts(rows(part, *measured)),
                                 dict(zip((unpinned, pinned), met, strict=True)))

    def test_with_kept_connections_nothing_is_won(self) -> None:
        """Both loops always have work: only that adapting costs nothing is judged."""
        self.assertEqual(self.verdicts(rows(KEPT, 96, 100, 99)),
                         {f"{KEPT}: adapting against unpinned": True})

    def test_errors_prove_nothing(self) -> None:
        """A target is not met by a server that made errors."""
        self.assertFalse(any(self.verdicts(rows(SHORT, 100, 100, 50, errors=1)).values()))

    def test_migrations_and_quota_have_bounds(self) -> None:
        """Fewer than five in 100,000; at most one period in a hundred more."""
        moved = [Row(MOVES, PINNED, "", [4.0, 5.5, 4.5])]
        self.assertEqual(self.verdicts(moved), {"migrations of pinned loops": True})
        for part in (QUOTA, QUOTA_MANY):
            for more, met in ((0.009, True), (0.02, False)):
                quota = [Row(part, ADAPTING, "", [0.1 + more] * 10),
                         Row(part, FREE, "", [0.1] * 10)]
                self.assertEqual(self.verdicts(quota), {f"{part}: adapting against unpinned": met})

    def test_nothing_measured_is_nothing_shown(self) -> None:
        """A part that could not run has no row and no verdict."""
        self.assertEqual(affinity.judge([]), [])
        self.assertEqual(affinity.lines([Row("quota", FREE, "", [])]), [])


if __name__ == "__main__":
    unittest.main()
