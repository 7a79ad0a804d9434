"""Confidence intervals, for the scripts that measure."""

import math


def interval(samples: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Of the median: the narrowest pair of order statistics that covers it; everything, if there are too few samples."""
    values, count = sorted(samples), len(samples)
    best = (0.0, math.inf)
    for low in range(count // 2):
        outside = 2 * sum(math.comb(count, k) for k in range(low + 1)) / 2**count
        if outside <= 1 - confidence:
            best = (values[low], values[count - 1 - low])
    return best
