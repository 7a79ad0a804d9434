"""What needs no ranks."""

import array
import subprocess
import sys

import pytest

import equipoise as eq
from equipoise import errors, packing


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
    for empty in [], (), np.zeros(0), np.zeros((0, 0)):
        assert packing.coordinates(empty) == (0, b"", 0)
    for values in np.array(5.0), 5, "ab", {}:
        with pytest.raises(eq.UsageError):
            packing.number_of(values)
    assert packing.number_of(np.zeros((3, 0))) == 3 and packing.number_of(()) == 0
    with pytest.raises(eq.UsageError):
        packing.shape_of(np.array([object()]))


def test_equal_dtypes_are_one():
    np = pytest.importorskip("numpy")
    with_unit = np.zeros((2, 5), np.dtype("f8", metadata={"unit": "m"}))
    plain = np.zeros((7, 5))
    assert packing.shape_of(with_unit) != packing.shape_of(plain)
    assert packing.common_shape({1: packing.shape_of(with_unit), 4: packing.shape_of(plain)}) == (np.dtype("f8"), (5,))
    with pytest.raises(eq.UsageError, match=r"items of float32 \(5,\) on rank 2, and of float64 \(5,\) on rank 0"):
        packing.common_shape({0: packing.shape_of(plain), 2: packing.shape_of(plain.astype("f4"))})


def test_any_exception_becomes_a_short_sentence():
    class Silent(Exception):
        def __str__(self):
            raise ValueError

    assert errors.said(ValueError("a word")) == "a word" and errors.said(KeyError("a")) == "KeyError: 'a'"
    assert errors.said(Silent()) == "Silent" and errors.said(ValueError()) == "ValueError"
    assert len(errors.said(ValueError("x" * 10_000))) < 1_000 and len(errors.told(ValueError("x" * 10_000))) < 1_000
    assert errors.told(ValueError("x" * 10_000 + " the end")).endswith("the end")
    assert len(errors.told(ValueError("x" * 10_000), limit=None)) > 10_000
    for text in errors.said(ValueError("\udc80")), errors.told(ValueError("\udc80")):
        assert "?" in text and text.encode()


def test_points_have_one_length():
    dimensions, flat, count = packing.coordinates([(1, 2), (3, 4)])
    assert (dimensions, array.array("d", flat).tolist(), count) == (2, [1, 2, 3, 4], 2)
    with pytest.raises(eq.UsageError):
        packing.coordinates([(1,), (1, 2)])


def test_errors_are_what_users_catch():
    assert issubclass(eq.UsageError, ValueError) and issubclass(eq.UsageError, eq.Error) and issubclass(eq.StuckError, eq.Error)
    assert eq.UsageError("x").status == 2 and eq.StuckError("x").status == 3


def test_the_version_loads_no_mpi():
    program = "import equipoise as eq; print(eq.version()); print(open('/proc/self/maps').read())"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"{eq.__version__}\nno MPI in this process yet"), said
    assert "libmpi" not in said, said
