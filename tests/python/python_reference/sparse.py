"""Sparse matrices as cuSPARSE stores them, built from dense ones and read back, element by element."""

import numpy as np

from python_reference import fourier

#: cudaDataType and the precision of a real number, by name.
TYPES = {
    "f32": (0, "f32"),
    "f64": (1, "f64"),
    "f16": (2, "f16"),
    "i8": (3, None),
    "c32": (4, "f32"),
    "c64": (5, "f64"),
    "c16": (6, "f16"),
    "i32": (10, None),
    "bf16": (14, "bf16"),
    "cbf16": (15, "bf16"),
}
FORMATS = ("csr", "csc", "coo", "bsr", "blocked_ell", "sliced_ell")
COLUMN_ORDER, ROW_ORDER = 1, 2


def is_complex(kind):
    return kind.startswith("c")


def random_numbers(rng, kind, shape):
    """Return numbers that a type can hold, as complex ones."""
    if kind in ("i8", "i32"):
        return rng.integers(-9, 10, shape).astype(complex)
    numbers = rng.normal(size=shape) + (1j * rng.normal(size=shape) if is_complex(kind) else 0)
    return decoded(kind, encoded(kind, np.asarray(numbers).ravel())).reshape(shape)


def encoded(kind, values):
    """Return the bytes of numbers."""
    values = np.asarray(values, complex).ravel()
    if kind in ("i8", "i32"):
        return np.rint(values.real).astype(np.int8 if kind == "i8" else np.int32).view(np.uint8)
    parts = np.stack([values.real, values.imag], 1).ravel() if is_complex(kind) else values.real
    return fourier.encoded(TYPES[kind][1], np.ascontiguousarray(parts))


def decoded(kind, data):
    """Return the numbers of these bytes, as complex ones."""
    if kind in ("i8", "i32"):
        return data.view(np.int8 if kind == "i8" else np.int32).astype(complex)
    parts = fourier.decoded(TYPES[kind][1], data).astype(float)
    return parts[::2] + 1j * parts[1::2] if is_complex(kind) else parts.astype(complex)


def check_numbers(kind, found, wanted, scale):
    """Compare results with those in f64: rounded once, after sums of this size."""
    if kind in ("i8", "i32"):
        np.testing.assert_allclose(found, wanted, atol=0.5001)
        return
    relative, absolute = fourier.ROUNDING[TYPES[kind][1]]
    for part in ("real", "imag"):
        a, b = getattr(np.asarray(found), part), getattr(np.asarray(wanted), part)
        np.testing.assert_allclose(
            a, b, rtol=1.01 * relative, atol=absolute + 1e-13 * (1 + np.max(scale, initial=0.0))
        )


class Stored:
    """The arrays of a sparse matrix, and where its elements lie among the values.

    `elements` are (row, column, place) in the order of the format.
    """

    def __init__(self, dense, mask, form, base, block=(1, 1), order=ROW_ORDER, slice_rows=2):
        rows, columns = dense.shape
        self.form, self.base, self.shape = form, base, dense.shape
        self.elements = []
        offsets, indices = [0], []
        if form in ("csr", "csc"):
            turned = mask if form == "csr" else mask.T
            for line in range(turned.shape[0]):
                for other in np.flatnonzero(turned[line]):
                    row, column = (line, other) if form == "csr" else (other, line)
                    self.elements.append((row, column, len(indices)))
                    indices.append(other)
                offsets.append(len(indices))
            self.count = self.values = len(indices)
        elif form == "coo":
            pairs = np.argwhere(mask)
            offsets, indices = [int(r) for r, _ in pairs], [int(c) for _, c in pairs]
            self.elements = [(int(r), int(c), i) for i, (r, c) in enumerate(pairs)]
            self.count = self.values = len(indices)
        elif form == "bsr":
            tall, wide = block
            for i in range(rows // tall):
                for j in range(columns // wide):
                    if not mask[i * tall : (i + 1) * tall, j * wide : (j + 1) * wide].any():
                        continue
                    for r in range(tall):
                        for c in range(wide):
                            inside = r * wide + c if order == ROW_ORDER else c * tall + r
                            place = len(indices) * tall * wide + inside
                            self.elements.append((i * tall + r, j * wide + c, place))
                    indices.append(j)
                offsets.append(len(indices))
            self.count, self.values = len(indices), len(indices) * tall * wide
        elif form == "blocked_ell":
            size = block[0]
            kept = [
                [j for j in range(columns // size)
                 if mask[i * size : (i + 1) * size, j * size : (j + 1) * size].any()]
                for i in range(rows // size)
            ]  # fmt: skip
            width = max(map(len, kept), default=0)
            self.ell_columns = width * size
            for i, found in enumerate(kept):
                for b, j in enumerate(found):
                    for r in range(size):
                        for c in range(size):
                            place = (i * size + r) * self.ell_columns + b * size + c
                            self.elements.append((i * size + r, j * size + c, place))
                indices += found + [-1 - base] * (width - len(found))
            self.count, self.values = len(indices), rows * self.ell_columns
        else:
            for first in range(0, rows, slice_rows):
                lines = [np.flatnonzero(mask[r]) if r < rows else [] for r in
                         range(first, first + slice_rows)]  # fmt: skip
                width = max(map(len, lines))
                for k in range(width):
                    for r, line in enumerate(lines):
                        if k < len(line):
                            self.elements.append((first + r, int(line[k]), len(indices)))
                        indices.append(line[k] if k < len(line) else -1 - base)
                offsets.append(len(indices))
            self.count, self.values = int(mask.sum()), len(indices)
        self.offsets = np.array(offsets, np.int64) + base
        self.indices = np.array(indices, np.int64) + base
        self.numbers = np.zeros(self.values, complex)
        for row, column, place in self.elements:
            self.numbers[place] = dense[row, column]

    def dense(self, numbers=None):
        """Return the matrix with these values, or its own."""
        numbers = self.numbers if numbers is None else numbers
        found = np.zeros(self.shape, complex)
        for row, column, place in self.elements:
            found[row, column] = numbers[place]
        return found


def after(operation, matrix):
    """Return op(matrix): 0 itself, 1 transposed, 2 also conjugated."""
    return matrix if operation == 0 else matrix.T if operation == 1 else matrix.conj().T
