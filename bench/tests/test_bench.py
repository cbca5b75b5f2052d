"""Intervals, verdicts, /proc readings and what goes into docs/measuring.md."""

from __future__ import annotations

import os
import threading
import time
import unittest
import xml.dom.minidom

from bench import intervals, picture, proc, publish, targets
from bench.idle import Memory
from bench.rounds import Cell, Sample


def cell(server: str, values: list[float], errors: int = 0, scenario: str = "plain") -> Cell:
    samples = [Sample(value, 100, errors, 1.0, 1.0, 0) for value in values]
    return Cell(scenario, server, "", samples)


class Intervals(unittest.TestCase):
    def test_equal_values_have_no_width(self) -> None:
        self.assertEqual(intervals.of([2.0] * 10), intervals.Interval(2.0, 2.0, 2.0))

    def test_one_wild_round_does_not_move_the_median(self) -> None:
        interval = intervals.of([1.0, 1.1, 0.9, 1.0, 1.0, 1.1, 0.9, 1.0, 1.0, 50.0])
        self.assertAlmostEqual(interval.median, 1.0)
        self.assertLess(interval.high, 2.0)

    def test_nothing_measured_is_an_error(self) -> None:
        self.assertRaises(ValueError, intervals.of, [])


class Targets(unittest.TestCase):
    def verdict(self, ours: Cell, floor: Cell) -> targets.Verdict:
        return targets.judge([ours, floor], [])[0]

    def test_met_when_the_lower_end_is_within(self) -> None:
        floor = cell("floor", [10.0] * 10)
        self.assertTrue(self.verdict(cell("tamarack", [11.9, 12.5] * 5), floor).met)
        self.assertFalse(self.verdict(cell("tamarack", [12.5] * 10), floor).met)

    def test_our_errors_disqualify_and_a_peers_do_not(self) -> None:
        fast, floor = [10.0] * 10, [10.0] * 10
        self.assertFalse(self.verdict(cell("tamarack", fast, errors=1), cell("floor", floor)).met)
        self.assertTrue(self.verdict(cell("tamarack", fast), cell("floor", floor, errors=1)).met)

    def test_idle_memory_is_held_to_its_bounds(self) -> None:
        memories = [Memory("tamarack", False, 1000, 0, 0), Memory("tamarack", True, 9000, 0, 0),
                    Memory("nginx", True, 8000, 0, 0)]
        self.assertEqual([one.met for one in targets.judge([], memories)], [True, False])


class Proc(unittest.TestCase):
    def test_work_of_this_process_is_seen(self) -> None:
        begun = time.process_time_ns()
        before = proc.process_ns(os.getpid())
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        spent = proc.spent_ns(before, proc.process_ns(os.getpid()))
        self.assertGreater(spent, 20_000_000)
        self.assertLessEqual(spent, time.process_time_ns() - begun)

    def test_a_thread_that_ended_is_counted_and_is_no_error(self) -> None:
        def work() -> None:
            until = time.thread_time() + 0.05
            while time.thread_time() < until:
                pass

        before = proc.process_ns(os.getpid())
        thread = threading.Thread(target=work)
        thread.start()
        during = proc.process_ns(os.getpid())
        thread.join()
        after = proc.process_ns(os.getpid())
        self.assertGreater(proc.spent_ns(before, after), 40_000_000)
        self.assertEqual(proc.ended(during, after), 0)

    def test_new_processes_count_and_lost_ones_are_told(self) -> None:
        self.assertEqual(proc.spent_ns({1: 5, 2: 9}, {1: 7, 3: 4}), 6)
        self.assertEqual(proc.ended({1: 5, 2: 9}, {1: 7, 3: 4}), 1)

    def test_memory_of_this_process_is_positive(self) -> None:
        proportional, resident = proc.memory_bytes(os.getpid())
        self.assertGreater(proportional, 1_000_000)
        self.assertGreaterEqual(resident, proportional)


class Publishing(unittest.TestCase):
    RESULT = {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {"cpu": "a CPU", "servers": {"floor": "f", "nginx": "nginx/1"}},
        "options": {"rounds": 10},
        "cells": [{"scenario": "plain", "server": "nginx", "variant": "",
                   "errors": 0, "cpu_us": {"median": 11.66}}],
        "memory": [],
    }

    def test_what_was_not_measured_is_a_dash(self) -> None:
        text = publish.section(self.RESULT, "x.json")
        self.assertIn("| 1 KiB file | – | – | – | 11.7 | – |", text)
        self.assertNotIn("100 KiB", text)

    def test_a_cell_with_errors_is_marked(self) -> None:
        cell = self.RESULT["cells"][0] | {"errors": 2}
        text = publish.section(self.RESULT | {"cells": [cell]}, "x.json")
        self.assertIn("| 11.7 † |", text)
        self.assertIn("† with errors", text)

    def test_only_the_marked_part_is_replaced(self) -> None:
        text = f"a\n{publish.BEGIN}\nold\n{publish.END}\nb\n"
        self.assertEqual(publish.replaced(text, "new"),
                         f"a\n{publish.BEGIN}\nnew\n{publish.END}\nb\n")
        self.assertRaises(SystemExit, publish.replaced, "no markers", "new")

    def test_the_picture_is_xml_with_a_bar_for_each(self) -> None:
        svg = xml.dom.minidom.parseString(picture.draw([("floor", 6.0), ("a<b", 12.0)]))
        self.assertEqual(len(svg.getElementsByTagName("rect")), 2)


if __name__ == "__main__":
    unittest.main()
