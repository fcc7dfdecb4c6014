# SPDX-License-Identifier: MIT
"""spread: a median with its range.

Means are not used: one disturbed run would shift them. Few runs justify only the median and the
range.
"""
import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Spread:
    """The median, the smallest and the largest of `count` figures."""

    median: float
    low: float
    high: float
    count: int

    def text(self):
        """`2.91 (2.85 to 3.02)`, or only the figure if there is one; large figures are rounded."""
        digits = 2 if self.median < 10 else 1 if self.median < 100 else 0
        middle, low, high = (f"{figure:.{digits}f}" for figure in (self.median, self.low, self.high))
        return middle if self.count == 1 else f"{middle} ({low} to {high})"


def spread(figures):
    """The spread of the figures without None; None if no figure remains."""
    known = [figure for figure in figures if figure is not None]
    if not known:
        return None
    return Spread(statistics.median(known), min(known), max(known), len(known))


def paired_ratios(figures, bases):
    """figure / base for each round, which cancels disturbances of a whole round."""
    return spread(
        figure / base if figure is not None and base else None
        for figure, base in zip(figures, bases)
    )
