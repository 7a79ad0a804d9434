"""What needs no ranks."""

import array

import pytest

import equipoise as eq
from equipoise import packing


def test_numbers_are_packed():
    assert packing.packed([1, 2.5], "d", "weights") == (array.array("d", [1, 2.5]).tobytes(), 2)
    assert packing.packed(None, "d", "weights") == (None, None)
    assert packing.packed([True, 0, "x"], "B", "pinned") == (b"\1\0\1", 3)
    for values, code in (["x"], "d"), ([-1], "Q"), ([1.5], "i"), (3, "d"):
        with pytest.raises(eq.UsageError, match="^what: "):
            packing.packed(values, code, "what")


def test_arrays_are_packed_alike():
    np = pytest.importorskip("numpy")
    assert packing.packed(np.array([1, 2], dtype="i2"), "d", "weights") == packing.packed([1, 2], "d", "weights")
    assert packing.packed(np.array([3, 0]), "B", "pinned") == packing.packed([1, 0], "B", "pinned")
    for values, code in (np.zeros((2, 2)), "d"), (np.array([1.5]), "Q"), (np.array([-1]), "Q"), (np.array(["x"]), "d"):
        with pytest.raises(eq.UsageError):
            packing.packed(values, code, "what")
    assert packing.coordinates(np.zeros((4, 2)))[::2] == (2, 4)
    with pytest.raises(eq.UsageError):
        packing.shape_of(np.array([object()]))


def test_points_have_one_length():
    dimensions, flat, count = packing.coordinates([(1, 2), (3, 4)])
    assert (dimensions, array.array("d", flat).tolist(), count) == (2, [1, 2, 3, 4], 2)
    with pytest.raises(eq.UsageError):
        packing.coordinates([(1,), (1, 2)])


def test_errors_are_what_users_catch():
    assert issubclass(eq.UsageError, ValueError) and issubclass(eq.UsageError, eq.Error) and issubclass(eq.StuckError, eq.Error)
    assert eq.UsageError("x").status == 2 and eq.StuckError("x").status == 3


def test_the_version_names_an_mpi():
    assert eq.version().startswith(eq.__version__ + "\nMPI ")
