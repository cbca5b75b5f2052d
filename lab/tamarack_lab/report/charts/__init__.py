"""The charts of a report as Vega-Lite specifications. `of` lists those of an experiment."""

from __future__ import annotations

from tamarack_lab.results import Experiment

from ..theme import Look
from .affinity import affinity
from .bars import bars
from .chart import Chart
from .cores import cores
from .curves import curves
from .percentiles import percentiles
from .scatter import scatters
from .spread import spreads
from .twins import twins

__all__ = ["Chart", "of"]


def of(experiment: Experiment, drawn: dict[str, Look], quick: bool) -> list[Chart]:
    """All charts of an experiment, the one that answers its question first."""
    side_by_side = curves if experiment.x else bars
    return [
        *cores(experiment, drawn, quick),
        *percentiles(experiment, drawn, quick),
        *(affinity(experiment, drawn, quick) or side_by_side(experiment, drawn, quick)),
        *twins(experiment, drawn, quick),
        *scatters(experiment, drawn),
        *spreads(experiment, drawn, quick),
    ]
