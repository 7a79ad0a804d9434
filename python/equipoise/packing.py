"""From what users give to what the native module takes: packed numbers, pickled items, contiguous arrays.

Nothing here communicates. What is wrong is raised on this rank, as UsageError where it is this module that finds it, and the callers pass it to
all ranks.
"""

import pickle
import sys
from array import array

from .errors import UsageError, said

PROTOCOL = 5


def numpy():
    """numpy, if this program has imported it: nothing here needs it otherwise."""
    return sys.modules.get("numpy")


def is_array(value):
    """Whether a value is a numpy array."""
    np = numpy()
    return np is not None and isinstance(value, np.ndarray)


def packed(values, code, what):
    """Numbers as the bytes of an array of this type code ('d', 'Q', 'B', 'i'), and how many there are."""
    if values is None:
        return None, None
    np = numpy()
    try:
        if np is not None and isinstance(values, np.ndarray):
            if values.ndim != 1:
                raise UsageError(f"{what}: an array of {values.ndim} dimensions, and one is needed")
            if code in "QBi" and values.dtype.kind == "f" or values.dtype.kind in "OUSc":
                raise UsageError(f"{what}: an array of {values.dtype}, and whole numbers are needed" if code in "QBi" else f"{what}: an array of {values.dtype} is no array of numbers")
            if code == "Q" and values.size and values.dtype.kind == "i" and values.min() < 0:
                raise UsageError(f"{what}: {values.min()} is negative")
            if code == "B":
                values = values != 0
            return np.ascontiguousarray(values, dtype={"d": "f8", "Q": "u8", "B": "u1", "i": "i4"}[code]).tobytes(), len(values)
        if code == "B":
            values = [1 if value else 0 for value in values]
        out = array(code, values)
    except UsageError:
        raise
    except Exception as why:  # iterating calls the caller's own code
        raise UsageError(f"{what}: {said(why)}") from why
    return out.tobytes(), len(out)


def coordinates(values):
    """Coordinates, a sequence of points or an array [n][dimensions], as (dimensions, packed doubles, number of points).

    Without points there are 0 dimensions, which suit those of any other rank.
    """
    if values is None:
        return 0, None, None
    if is_array(values):
        if values.ndim == 1 and len(values) == 0:
            return 0, b"", 0
        if values.ndim != 2:
            raise UsageError(f"coordinates: an array of {values.ndim} dimensions, and [n][1 to 3] is needed")
        flat, _ = packed(values.reshape(-1), "d", "coordinates")
        return values.shape[1], flat, values.shape[0]
    try:
        points = [tuple(point) for point in values]
    except Exception as why:  # iterating calls the caller's own code
        raise UsageError(f"coordinates: {said(why)}") from why
    dimensions = len(points[0]) if points else 0
    if any(len(point) != dimensions for point in points):
        raise UsageError("coordinates: points of different length")
    flat, _ = packed([number for point in points for number in point], "d", "coordinates")
    return dimensions, flat, len(points)


def pickled(item, what):
    """An item as bytes."""
    try:
        return pickle.dumps(item, protocol=PROTOCOL)
    except Exception as why:  # pickling calls the item's own code
        raise UsageError(f"{what} cannot be pickled: {said(why)}") from why


def number_of(items):
    """The number of items in a list or an array."""
    if is_array(items):
        if items.ndim == 0:
            raise UsageError("an array without dimensions has no items")
    elif not isinstance(items, (list, tuple)):
        raise UsageError(f"a {type(items).__name__}, and a list or an array is needed")
    return len(items)


def shape_of(items):
    """What all ranks must have alike of an array: its dtype and the shape of one item, pickled; nothing if it is empty."""
    if len(items) == 0:
        return b""
    if items.dtype.hasobject:
        raise UsageError(f"an array of {items.dtype}: arrays of objects cannot be moved, a list of them can")
    return pickle.dumps((items.dtype, items.shape[1:]), protocol=PROTOCOL)


def common_shape(shapes):
    """Dtype and shape of the items of all ranks, of what ``shape_of`` gave by rank."""
    (first, given), *others = shapes.items()
    dtype, shape = pickle.loads(given)
    for rank, other in others:
        if other == given:
            continue
        # Equal dtypes may be pickled differently: metadata, which says nothing about an item's bytes, is in the pickle.
        its_dtype, its_shape = pickle.loads(other)
        if (its_dtype, its_shape) != (dtype, shape):
            raise UsageError(f"items of {its_dtype} {its_shape} on rank {rank}, and of {dtype} {shape} on rank {first}")
    return dtype, shape
