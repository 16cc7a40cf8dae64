"""Random calls of cuSOLVER's functions for sparse matrices, and what their results have to fulfil."""

import numpy as np

from python_reference import sparse
from stand_ins.solver_cases import LETTERS, PRECISION, REAL, planned


class Builder:
    """The steps and the memory of one case; arrays of the host are those of the device, too."""

    def __init__(self, rng):
        self.rng = rng
        self.kind = str(rng.choice(list(LETTERS)))
        self.on_device = bool(rng.random() < 0.5)
        self.device, self.host, self.steps = {}, {}, []

    def name(self, routine, has_host=True):
        where = "" if self.on_device or not has_host else "Host"
        return f"cusolverSp{LETTERS[self.kind]}{routine}{where}"

    def array(self, name, data, on_device=None):
        on_device = self.on_device if on_device is None else on_device
        (self.device if on_device else self.host)[name] = (
            np.ascontiguousarray(data).view(np.uint8).ravel()
        )
        return ("@" if on_device else "$") + name

    def numbers(self, name, values, on_device=None):
        return self.array(name, sparse.encoded(self.kind, values), on_device)

    def real(self, value):
        return [REAL[self.kind], float(value)]

    def number(self, value):
        if sparse.is_complex(self.kind):
            return [self.kind, float(value.real), float(value.imag)]
        return [self.kind, float(value.real)]

    def step(self, *words):
        self.steps.append([int(word) if isinstance(word, np.integer) else word for word in words])

    def descriptor(self, name="descr", base=None):
        base = int(self.rng.integers(2)) if base is None else base
        self.step("cusparseCreateMatDescr", "&" + name)
        self.step("cusparseSetMatIndexBase", name, base)
        return base

    def csr(self, matrix, stored, name="A", on_device=None):
        """Return nnz, descriptor, values, offsets and columns of a matrix."""
        base = self.descriptor()
        offsets, columns, values = [0], [], []
        for row in range(matrix.shape[0]):
            found = self.rng.permutation(np.flatnonzero(stored[row]))  # in any order
            columns += found.tolist()
            values += matrix[row, found].tolist()
            offsets.append(len(columns))
        self.base = base
        return [
            len(columns),
            "descr",
            self.numbers(f"{name}.values", values, on_device),
            self.array(f"{name}.offsets", np.array(offsets, np.int32) + base, on_device),
            self.array(f"{name}.columns", np.array(columns, np.int32) + base, on_device),
        ]

    def random(self, *shape):
        return sparse.random_numbers(self.rng, self.kind, shape)

    def read(self, found, name):
        return sparse.decoded(self.kind, found[name])

    def close(self, found, wanted, scale=1.0):
        size = max((1, *np.shape(wanted)))
        np.testing.assert_allclose(
            found, wanted, atol=PRECISION[self.kind] * size * max(1.0, scale)
        )


def rounded(build, matrix):
    return sparse.decoded(build.kind, sparse.encoded(build.kind, matrix)).reshape(matrix.shape)


def random_matrix(build, n, positive=False, columns=None):
    """Return a matrix and where it has elements; also where they are zero."""
    shape = (n, columns or n)
    stored = build.rng.random(shape) < build.rng.choice([0.1, 0.3, 0.8])
    if positive:
        factor = np.where(stored, build.random(*shape), 0)
        matrix = rounded(build, factor @ factor.conj().T + n * np.eye(n))
        return matrix, (matrix != 0) | np.eye(n, dtype=bool)
    stored |= np.eye(*shape, dtype=bool)[build.rng.permutation(shape[0])]
    return np.where(stored, build.random(*shape), 0), stored


def well_posed(matrix):
    return np.linalg.cond(matrix) < 100


def regular(build, n, **more):
    while True:
        matrix, stored = random_matrix(build, n, **more)
        if well_posed(matrix):
            return matrix, stored


def systems(build):
    """A x = b in one call, or the first pivot that is zero."""
    rng = build.rng
    method = str(rng.choice(["qr", "chol", "lu"]))
    if method == "lu":
        build.on_device = False
    n, reorder = int(rng.integers(1, 24)), int(rng.integers(4))
    matrix, stored = regular(build, n, positive=method == "chol")
    singular = rng.random() < 0.2
    if singular:
        gone = int(rng.integers(n))
        matrix[gone] = matrix[:, gone] = 0
    given = matrix.copy()
    if method == "chol":  # the upper triangle is not read
        given[np.triu_indices(n, 1)] = 7
    b = build.random(n)
    arrays = build.csr(given, stored)
    build.step(
        build.name(f"csrlsv{method}"), "h", n, *arrays, build.numbers("b", b),
        build.real(1e-3 if singular else 0), reorder, build.numbers("x", build.random(n)), "&at",
    )  # fmt: skip

    def check(found):
        at = int(np.int32(found["slots.at"]))
        if singular:
            assert 0 <= at < n
            assert reorder or method == "lu" or at <= gone
            return
        assert at == -1
        x = build.read(found, "x")
        build.close(matrix @ x, b, 30 * np.abs(matrix).max() * np.abs(x).max())
        build.close(x, np.linalg.solve(matrix, b), 100 * np.abs(x).max() * np.linalg.cond(matrix))

    return check


def cholesky_steps(build):
    """The factors of a positive matrix, kept for several right-hand sides."""
    rng, host = build.rng, "" if build.on_device else "Host"
    n = int(rng.integers(1, 24))
    matrix, stored = random_matrix(build, n, positive=True)
    indefinite = rng.random() < 0.2
    row = int(rng.integers(n))
    if indefinite:
        matrix[row, row] = -1
    arrays, sides = build.csr(matrix, stored), build.random(2, n)
    build.step(f"cusolverSpCreateCsrcholInfo{host}", "&info")
    build.step(f"cusolverSpXcsrcholAnalysis{host}", "h", n, *arrays[:2], *arrays[3:], "info")
    build.step(build.name("csrcholBufferInfo"), "h", n, *arrays, "info", "&internal", "&work")
    build.step(build.name("csrcholFactor"), "h", n, *arrays, "info", None)
    build.step(build.name("csrcholZeroPivot"), "h", "info", build.real(0), "&at")
    for i, side in enumerate(() if indefinite else sides):
        build.step(build.name("csrcholSolve"), "h", n, build.numbers(f"b{i}", side),
                   build.numbers(f"x{i}", build.random(n)), "info", None)  # fmt: skip
    build.step(f"cusolverSpDestroyCsrcholInfo{host}", "info")

    def check(found):
        assert int(np.int32(found["slots.at"])) == (row if indefinite else -1)
        assert found["slots.internal"] > 0
        assert found["slots.work"] > 0
        for i, side in enumerate(() if indefinite else sides):
            x = build.read(found, f"x{i}")
            build.close(matrix @ x, side, 30 * np.abs(matrix).max() * np.abs(x).max())

    return check


def qr_steps(build):
    """The x that minimises |b - (A - mu I) x|."""
    rng, host = build.rng, "" if build.on_device else "Host"
    n = int(rng.integers(1, 16))
    m = n + int(rng.integers(0, 6))
    shift = complex(build.random(1)[0]) if rng.random() < 0.3 else 0j
    while True:
        matrix, stored = random_matrix(build, m, columns=n)
        less = matrix - shift * np.eye(m, n)
        if well_posed(less):
            break
    singular = rng.random() < 0.2 and shift == 0
    column = int(rng.integers(n))
    if singular:
        matrix[:, column] = 0
    arrays, sides = build.csr(matrix, stored), build.random(2, m)
    build.step(f"cusolverSpCreateCsrqrInfo{host}", "&info")
    build.step(f"cusolverSpXcsrqrAnalysis{host}", "h", m, n, *arrays[:2], *arrays[3:], "info")
    build.step(build.name("csrqrBufferInfo"), "h", m, n, *arrays, "info", "&internal", "&work")
    build.step(build.name("csrqrSetup"), "h", m, n, *arrays, build.number(shift), "info")
    at_once = not singular and rng.random() < 0.5
    first = [build.numbers("b0", sides[0]), build.numbers("x0", build.random(n))]
    build.step(build.name("csrqrFactor"), "h", m, n, arrays[0],
               *(first if at_once else (None, None)), "info", None)  # fmt: skip
    build.step(build.name("csrqrZeroPivot"), "h", "info", build.real(1e-12), "&at")
    if not singular:
        if not at_once:
            build.step(build.name("csrqrSolve"), "h", m, n, *first, "info", None)
        build.step(build.name("csrqrSolve"), "h", m, n, build.numbers("b1", sides[1]),
                   build.numbers("x1", build.random(n)), "info", None)  # fmt: skip
    build.step(f"cusolverSpDestroyCsrqrInfo{host}", "info")

    def check(found):
        assert int(np.int32(found["slots.at"])) == (column if singular else -1)
        for i, side in enumerate(() if singular else sides):
            x = build.read(found, f"x{i}")
            wanted = np.linalg.lstsq(less, side, rcond=None)[0]
            build.close(x, wanted, 100 * np.abs(wanted).max() * np.linalg.cond(less) ** 2)

    return check


def batches(build):
    """Systems of the same structure."""
    build.on_device = True
    n, count = int(build.rng.integers(1, 12)), int(build.rng.integers(1, 5))
    matrix, stored = regular(build, n)
    arrays = build.csr(matrix, stored)
    offsets, columns = (build.device[f"A.{part}"].view(np.int32) for part in ("offsets", "columns"))
    factors = build.rng.uniform(0.5, 2, count)
    matrices = [rounded(build, matrix * factor) for factor in factors]
    rows = np.repeat(np.arange(n), np.diff(offsets))
    build.numbers(
        "A.values", np.concatenate([each[rows, columns - build.base] for each in matrices])
    )
    sides = build.random(count, n)
    build.step("cusolverSpCreateCsrqrInfo", "&info")
    build.step("cusolverSpXcsrqrAnalysisBatched", "h", n, n, *arrays[:2], *arrays[3:], "info")
    build.step(build.name("csrqrBufferInfoBatched"), "h", n, n, *arrays, count, "info", "&internal",
               "&work")  # fmt: skip
    build.step(build.name("csrqrsvBatched"), "h", n, n, *arrays, build.numbers("b", sides),
               build.numbers("x", build.random(count, n)), count, "info", None)  # fmt: skip

    def check(found):
        for each, side, x in zip(
            matrices, sides, build.read(found, "x").reshape(count, n), strict=True
        ):
            build.close(each @ x, side, 100 * np.abs(each).max() * np.abs(x).max())

    return check


def dense(build, found, name, shape):
    """Return the matrix of compressed rows that a call has written."""
    offsets = found[f"{name}.offsets"].view(np.int32) - build.base
    columns = found[f"{name}.columns"].view(np.int32) - build.base
    values = build.read(found, f"{name}.values")
    matrix = np.zeros(shape, complex)
    for row in range(shape[0]):
        part = slice(offsets[row], offsets[row + 1])
        assert (np.diff(columns[part]) > 0).all(), "columns ascend"
        matrix[row, columns[part]] = values[part]
    return matrix


def lu_steps(build):
    """P A Q^T = L U on the host, extracted, and of doubles refactored on the device."""
    rng = build.rng
    build.on_device = False
    refactors = rng.random() < 0.5
    if refactors:
        build.kind = "f64"
    n = int(rng.integers(1, 16))
    matrix, stored = regular(build, n)
    arrays = build.csr(matrix, stored)
    if refactors and build.base:
        build.steps[-1][-1] = 0
        for name in ("A.offsets", "A.columns"):
            build.host[name] = (build.host[name].view(np.int32) - 1).view(np.uint8)
        build.base = 0
    b = build.random(n)
    build.step("cusolverSpCreateCsrluInfoHost", "&info")
    build.step("cusolverSpXcsrluAnalysisHost", "h", n, *arrays[:2], *arrays[3:], "info")
    build.step(build.name("csrluBufferInfo"), "h", n, *arrays, "info", "&internal", "&work")
    build.step(build.name("csrluFactor"), "h", n, *arrays, "info",
               build.real(rng.choice([0.1, 1.0])), None)  # fmt: skip
    build.step(build.name("csrluZeroPivot"), "h", "info", build.real(0), "&at")
    build.step(build.name("csrluSolve"), "h", n, build.numbers("b", b),
               build.numbers("x", build.random(n)), "info", None)  # fmt: skip
    build.step("cusolverSpXcsrluNnzHost", "h", "&nnz_l", "&nnz_u", "info")
    # With room for all elements that there can be.
    order = [build.array(name, np.zeros(n, np.int32)) for name in "PQ"]
    for name in "LU":
        build.numbers(f"{name}.values", np.zeros(n * n))
        build.array(f"{name}.offsets", np.zeros(n + 1, np.int32))
        build.array(f"{name}.columns", np.zeros(n * n, np.int32))
    factors = [[f"${name}.{part}" for part in ("values", "offsets", "columns")] for name in "LU"]
    build.step(build.name("csrluExtract"), "h", *order, "descr", *factors[0], "descr", *factors[1],
               "info", None)  # fmt: skip
    new = np.where(stored, rounded(build, matrix * (1 + 0.01 * rng.normal(size=matrix.shape))), 0)
    if refactors:
        refactor(build, n, arrays, factors, order, new, b)

    def check(found):
        assert int(np.int32(found["slots.at"])) == -1
        x = build.read(found, "x")
        build.close(matrix @ x, b, 300 * np.abs(matrix).max() * np.abs(x).max())
        p, q = found["P"].view(np.int32), found["Q"].view(np.int32)
        assert sorted(p) == sorted(q) == list(range(n))
        lower, upper = dense(build, found, "L", (n, n)), dense(build, found, "U", (n, n))
        assert (np.triu(lower) == 0).all()
        assert (np.tril(upper, -1) == 0).all()
        product = (lower + np.eye(n)) @ upper
        build.close(product, matrix[np.ix_(p, q)], 100 * np.abs(lower).max(initial=1))
        for name in "LU":
            offsets = found[f"{name}.offsets"].view(np.int32)
            assert int(np.int32(found[f"slots.nnz_{name.lower()}"])) == offsets[n] - offsets[0]
        if refactors:
            x = build.read(found, "d.x")
            build.close(new @ x, b, 1e4 * np.abs(new).max() * np.abs(x).max())

    return check


def refactor(build, n, arrays, factors, order, new, b):
    """Solve a system with other values, whose factors have the same places."""
    columns, offsets = (build.host[f"A.{part}"].view(np.int32) for part in ("columns", "offsets"))
    values = [new[row, columns[offsets[row] : offsets[row + 1]]] for row in range(n)]
    on_device = [
        build.array("d.offsets", offsets, True),
        build.array("d.columns", columns, True),
        build.numbers("d.values", np.concatenate(values), True),
    ]
    build.step("cusolverRfCreate", "&rf")
    build.step("cusolverRfSetNumericProperties", "rf", build.real(0), build.real(0))
    build.step("cusolverRfSetAlgs", "rf", 0, 1)
    build.step("cusolverRfSetMatrixFormat", "rf", 0, 2)
    build.step("cusolverRfSetResetValuesFastMode", "rf", 1)
    build.step("cusolverRfSetupHost", n, arrays[0], *arrays[3:], arrays[2], "nnz_l",
               factors[0][1], factors[0][2], factors[0][0], "nnz_u", factors[1][1], factors[1][2],
               factors[1][0], *order, "rf")  # fmt: skip
    build.step("cusolverRfAnalyze", "rf")
    copies = [build.array(f"d.{name}", np.zeros(n, np.int32), True) for name in "PQ"]
    for target, source in zip(copies, order, strict=True):
        build.step("cudaMemcpy", target, source, 4 * n, 1)
    build.step("cusolverRfResetValues", n, arrays[0], *on_device, *copies, "rf")
    build.step("cusolverRfRefactor", "rf")
    build.step("cusolverRfSolve", "rf", *copies, 1, None, n, build.numbers("d.x", b, True), n)
    build.step("cusolverRfDestroy", "rf")


def eigenvalues(build):
    """The eigenvalue nearest to a number."""
    rng = build.rng
    n = int(rng.integers(2, 12))
    values = rng.permutation(np.arange(1, n + 1)) * 2.0
    q = np.linalg.qr(build.random(n, n))[0]
    matrix = rounded(build, q * values @ q.conj().T)
    stored = np.ones((n, n), bool)
    wanted = float(rng.choice(values))
    shift = wanted + float(rng.uniform(-0.3, 0.3))
    arrays = build.csr(matrix, stored)
    start = build.numbers("x0", q.sum(1) + 0.01 * build.random(n))
    build.step(build.name("csreigvsi"), "h", n, *arrays, build.number(complex(shift)), start, 200,
               build.real(PRECISION[build.kind]), build.numbers("mu", np.zeros(1)),
               build.numbers("x", build.random(n)))  # fmt: skip

    def check(found):
        mu, x = build.read(found, "mu")[0], build.read(found, "x")
        build.close([mu], [wanted], 100 * n)
        build.close(matrix @ x, mu * x, 1000 * n)
        build.close([np.linalg.norm(x)], [1], 10)

    return check


def orders(build):
    """Orders of rows, and matrices in them."""
    rng = build.rng
    build.on_device = False
    n = int(rng.integers(1, 40))
    stored = rng.random((n, n)) < 2 / n
    if rng.random() < 0.5:
        stored |= stored.T
    matrix = np.where(stored, build.random(n, n), 0)
    arrays = build.csr(matrix, stored)
    routine = str(rng.choice(["symrcm", "symmdq", "symamd", "metisnd"]))
    p = build.array("p", np.full(n, -7, np.int32))
    options = [None] if routine == "metisnd" else []
    build.step(f"cusolverSpXcsr{routine}Host", "h", n, *arrays[:2], *arrays[3:], *options, p)
    build.step("cusolverSpXcsrissymHost", "h", n, *arrays[:2], arrays[3],
               build.array("ends", build.host["A.offsets"].view(np.int32)[1:]), arrays[4],
               "&symmetric")  # fmt: skip
    q = build.array("q", rng.permutation(n).astype(np.int32))
    new = [
        build.array("B.offsets", build.host["A.offsets"].view(np.int32)),
        build.array("B.columns", build.host["A.columns"].view(np.int32)),
    ]
    names = ["h", n, n, *arrays[:2], *new, p, q]
    build.step("cusolverSpXcsrperm_bufferSizeHost", *names, "&size")
    build.step("cusolverSpXcsrpermHost", *names,
               build.array("map", np.arange(arrays[0], dtype=np.int32)), None)  # fmt: skip

    def check(found):
        p, q = found["p"].view(np.int32), found["q"].view(np.int32)
        assert sorted(p) == list(range(n))
        assert int(np.int32(found["slots.symmetric"])) == (stored == stored.T).all()
        values = build.read(found, "A.values")[found["map"].view(np.int32)]
        found["B.values"] = sparse.encoded(build.kind, values)
        np.testing.assert_array_equal(dense(build, found, "B", (n, n)), matrix[np.ix_(p, q)])

    return check


KINDS = (systems, cholesky_steps, qr_steps, batches, lu_steps, eigenvalues, orders)


def cases(seed, count):
    """Return the cases of sparse matrices."""
    return planned(KINDS, Builder, seed, count)
