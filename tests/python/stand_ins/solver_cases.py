"""Random calls of cuSOLVER, and what their results have to fulfil."""

import numpy as np

from python_reference import sparse

LETTERS = {"f32": "S", "f64": "D", "c32": "C", "c64": "Z"}
REAL = {"f32": "f32", "f64": "f64", "c32": "f32", "c64": "f64"}
#: Errors of a factorisation of a small matrix, relative to its size.
PRECISION = {"f32": 3e-5, "f64": 1e-13, "c32": 3e-5, "c64": 1e-13}


class Builder:
    """The steps and the memory of one case."""

    def __init__(self, rng):
        self.rng = rng
        self.device, self.host, self.steps, self.lds = {}, {}, [], {}
        self.kind = str(rng.choice(list(LETTERS)))
        self.type = sparse.TYPES[self.kind][0]
        self.complex = sparse.is_complex(self.kind)

    def name(self, real, complex_=None):
        routine = complex_ if self.complex and complex_ else real
        return f"cusolverDn{LETTERS[self.kind]}{routine}"

    def array(self, name, data):
        self.device[name] = np.ascontiguousarray(data).view(np.uint8).ravel()
        return "@" + name

    def random(self, *shape):
        return sparse.random_numbers(self.rng, self.kind, shape)

    def rounded(self, matrix):
        return sparse.decoded(self.kind, sparse.encoded(self.kind, matrix)).reshape(matrix.shape)

    def matrix(self, name, matrix):
        """Put a matrix in memory, column by column with gaps, and return (place, ld)."""
        rows, columns = matrix.shape
        ld = max(1, rows + int(self.rng.integers(3)))
        self.lds[name] = (rows, columns, ld)
        padded = self.random(ld, columns) if columns else np.zeros((ld, 0))
        padded[:rows] = matrix
        self.gaps = getattr(self, "gaps", {}) | {name: padded[rows:]}
        return [self.array(name, sparse.encoded(self.kind, padded.T)), ld]

    def info(self):
        return self.array("info", np.full(1, -77, np.int32))

    def step(self, *words):
        self.steps.append([int(word) if isinstance(word, np.integer) else word for word in words])

    # What is found after the case.
    def read(self, found, name):
        rows, columns, ld = self.lds[name]
        numbers = sparse.decoded(self.kind, found[name]).reshape(columns, ld).T
        assert numbers[rows:].tolist() == self.gaps[name].tolist(), "what lies between is touched"
        return numbers[:rows]

    def close(self, found, wanted, scale=1.0):
        size = max(1, *np.shape(wanted))
        np.testing.assert_allclose(
            found, wanted, atol=PRECISION[self.kind] * size * max(1.0, float(np.max(scale)))
        )


def info_of(found):
    return int(found["info"].view(np.int32)[0])


def hermitian(build, size):
    a = build.random(size, size)
    return build.rounded((a + a.conj().T) / 2)


def positive(build, size):
    a = build.random(size, size)
    return build.rounded(a @ a.conj().T + size * np.eye(size))


def exchanged(matrix, pivots):
    """Return rows exchanged as LAPACK says: row i with row pivots[i], from 1, one after another."""
    found = matrix.copy()
    for i, pivot in enumerate(pivots):
        found[[i, pivot - 1]] = found[[pivot - 1, i]]
    return found


def lu(build):
    """P A = L U, and solutions with it."""
    rng = build.rng
    square = rng.random() < 0.6
    m, n = (int(k) for k in rng.integers(1, 16, 2))
    n = m if square else n
    a = build.random(m, n)
    generic, pivoting = rng.random() < 0.4, rng.random() < 0.8
    if not pivoting:
        a = build.rounded(a + 20 * np.eye(m, n))
    singular = rng.random() < 0.2
    column = int(rng.integers(min(m, n)))
    if singular:
        a[:, column] = 0
    place, width = build.matrix("A", a), np.int64 if generic else np.int32
    pivots = build.array("pivots", np.zeros(min(m, n), width)) if pivoting else None
    info = build.info()
    if generic:
        build.step("cusolverDnXgetrf", "h", None, m, n, build.type, *place, pivots, build.type,
                   None, 0, None, 0, info)  # fmt: skip
    else:
        build.step(build.name("getrf_bufferSize"), "h", m, n, *place, "&size")
        build.step(build.name("getrf"), "h", m, n, *place, None, pivots, info)
    solves = m == n and not singular
    if solves:
        trans, columns = int(rng.integers(3)), int(rng.integers(1, 5))
        b = build.random(m, columns)
        right = build.matrix("B", b)
        if generic:
            build.step("cusolverDnXgetrs", "h", None, trans, m, columns, build.type, *place, pivots,
                       build.type, *right, build.array("info2", np.ones(1, np.int32)))  # fmt: skip
        else:
            build.step(build.name("getrs"), "h", trans, m, columns, *place, pivots, *right,
                       build.array("info2", np.ones(1, np.int32)))  # fmt: skip

    def check(found):
        assert info_of(found) == (column + 1 if singular else 0)
        factors = build.read(found, "A")
        rows = found["pivots"].view(width) if pivoting else np.arange(1, min(m, n) + 1)
        assert all(i + 1 <= row <= m for i, row in enumerate(rows))
        k = min(m, n)
        lower = np.tril(factors[:, :k], -1) + np.eye(m, k)
        if pivoting:  # partial pivoting: no multiplier exceeds 1, or 2^(1/2) of complex numbers
            assert np.abs(np.tril(factors[:, :k], -1)).max(initial=0) < 1.5
        build.close(lower @ np.triu(factors[:k]), exchanged(a, rows), 30)
        if solves:
            assert found["info2"].view(np.int32)[0] == 0
            x, matrix = build.read(found, "B"), sparse.after(trans, a)
            build.close(matrix @ x, b, 10 * np.abs(matrix).max() * np.abs(x).max())

    return check


def cholesky(build):
    """A = L L^H or U^H U, solutions with it, and the inverse."""
    rng = build.rng
    n, fill = int(rng.integers(1, 16)), int(rng.integers(2))
    a = positive(build, n)
    fails = rng.random() < 0.2
    at = int(rng.integers(n))
    if fails:
        a[at, at] = -1
    generic = rng.random() < 0.4
    place, info = build.matrix("A", a), build.info()
    if generic:
        build.step("cusolverDnXpotrf", "h", None, fill, n, build.type, *place, build.type, None, 0,
                   None, 0, info)  # fmt: skip
    else:
        build.step(build.name("potrf_bufferSize"), "h", fill, n, *place, "&size")
        build.step(build.name("potrf"), "h", fill, n, *place, None, 0, info)
    b = build.random(n, int(rng.integers(1, 4)))
    inverts = not fails and rng.random() < 0.3
    if not fails:
        right = build.matrix("B", b)
        second = build.array("info2", np.ones(1, np.int32))
        if generic:
            build.step("cusolverDnXpotrs", "h", None, fill, n, b.shape[1], build.type, *place,
                       build.type, *right, second)  # fmt: skip
        else:
            build.step(build.name("potrs"), "h", fill, n, b.shape[1], *place, *right, second)
    if inverts:
        build.step(build.name("potri"), "h", fill, n, *place, None, 0, info)

    def check(found):
        assert info_of(found) == (at + 1 if fails else 0)
        if fails:
            return
        result = build.read(found, "A")
        kept = np.tril_indices(n) if fill == 0 else np.triu_indices(n)
        other = np.triu_indices(n, 1) if fill == 0 else np.tril_indices(n, -1)
        assert result[other].tolist() == a[other].tolist()
        if inverts:
            build.close(result[kept], np.linalg.inv(a)[kept])
        else:
            factor = np.tril(result) if fill == 0 else np.triu(result).conj().T
            build.close(factor @ factor.conj().T, a, np.abs(a).max())
        build.close(a @ build.read(found, "B"), b, np.abs(a).max())

    return check


def reflected(factors, tau, k):
    """Return Q, the product of k reflections I - tau v v^H, as LAPACK stores them."""
    m = factors.shape[0]
    q = np.eye(m, dtype=complex)
    for i in range(k):
        v = np.zeros(m, complex)
        v[i], v[i + 1 :] = 1, factors[i + 1 :, i]
        q = q @ (np.eye(m) - tau[i] * np.outer(v, v.conj()))
    return q


def qr(build):
    """A = Q R, the columns of Q, and products with Q."""
    rng = build.rng
    m, n = (int(k) for k in rng.integers(1, 13, 2))
    k = min(m, n)
    a = build.random(m, n)
    place, info = build.matrix("A", a), build.info()
    tau = build.array("tau", sparse.encoded(build.kind, np.zeros(k)))
    if rng.random() < 0.4:
        build.step("cusolverDnXgeqrf", "h", None, m, n, build.type, *place, build.type, tau,
                   build.type, None, 0, None, 0, info)  # fmt: skip
    else:
        build.step(build.name("geqrf"), "h", m, n, *place, tau, None, 0, info)
    side, trans = int(rng.integers(2)), int(rng.choice([0, 2]))
    other = int(rng.integers(1, 6))
    c = build.random(m, other) if side == 0 else build.random(other, m)
    right = build.matrix("C", c)
    words = [side, trans, *c.shape, k, *place, tau, *right]
    build.step(build.name("ormqr_bufferSize", "unmqr_bufferSize"), "h", *words, "&size")
    build.step(build.name("ormqr", "unmqr"), "h", *words, None, 0, info)
    makes = n <= m and rng.random() < 0.5
    if makes:
        build.step(build.name("orgqr", "ungqr"), "h", m, n, k, *place, tau, None, 0, info)

    def check(found):
        assert info_of(found) == 0
        result = build.read(found, "A")
        if makes:
            build.close(result.conj().T @ result, np.eye(n))
            upper = result.conj().T @ a
            build.close(np.tril(upper, -1), 0 * upper, 30)
            build.close(result @ upper, a, 30)
            if m == n:
                product = sparse.after(trans, result)
                wanted = product @ c if side == 0 else c @ product
                build.close(build.read(found, "C"), wanted, 30)
            return
        q = reflected(result, sparse.decoded(build.kind, found["tau"]), k)
        build.close(q.conj().T @ q, np.eye(m), 10)
        build.close(q @ np.triu(result), a, 30)
        product = sparse.after(trans, q)
        wanted = product @ c if side == 0 else c @ product
        build.close(build.read(found, "C"), wanted, 30)

    return check


def eigenvalues(build):
    """A V = V W of a symmetric matrix, of which one triangle is looked at."""
    rng = build.rng
    n, mode, fill = int(rng.integers(1, 13)), int(rng.integers(2)), int(rng.integers(2))
    a = hermitian(build, n)
    given = a + (np.triu(np.ones((n, n)), 1) if fill == 0 else np.tril(np.ones((n, n)), -1))
    place, info = build.matrix("A", given), build.info()
    w = build.array("W", sparse.encoded(REAL[build.kind], np.zeros(n)))
    way = rng.integers(3)
    if way == 0:
        build.step("cusolverDnXsyevd", "h", None, mode, fill, n, build.type, *place,
                   sparse.TYPES[REAL[build.kind]][0], w, build.type, None, 0, None, 0, info)  # fmt: skip
    elif way == 1:
        build.step(build.name("syevd_bufferSize", "heevd_bufferSize"), "h", mode, fill, n, *place, w,
                   "&size")  # fmt: skip
        build.step(build.name("syevd", "heevd"), "h", mode, fill, n, *place, w, None, 0, info)
    else:
        build.step("cusolverDnCreateSyevjInfo", "&jacobi")
        build.step(build.name("syevj", "heevj"), "h", mode, fill, n, *place, w, None, 0, info,
                   "jacobi")  # fmt: skip

    def check(found):
        assert info_of(found) == 0
        values = sparse.decoded(REAL[build.kind], found["W"]).real
        build.close(values, np.linalg.eigvalsh(a), 10)
        vectors = build.read(found, "A")
        if mode == 1:
            build.close(vectors.conj().T @ vectors, np.eye(n), 5)
            build.close(a @ vectors, vectors * values, 30)

    return check


def pairs(build):
    """A x = w B x, A B x = w x or B A x = w x."""
    rng = build.rng
    n, kind, fill = int(rng.integers(1, 10)), int(rng.integers(1, 4)), int(rng.integers(2))
    a, b = hermitian(build, n), positive(build, n)
    first, second, info = build.matrix("A", a), build.matrix("B", b), build.info()
    w = build.array("W", sparse.encoded(REAL[build.kind], np.zeros(n)))
    words = ["h", kind, 1, fill, n, *first, *second, w, None, 0, info]
    if rng.random() < 0.5:
        build.step(build.name("sygvd", "hegvd"), *words)
    else:
        build.step("cusolverDnCreateSyevjInfo", "&jacobi")
        build.step(build.name("sygvj", "hegvj"), *words, "jacobi")

    def check(found):
        assert info_of(found) == 0
        values = sparse.decoded(REAL[build.kind], found["W"]).real
        vectors = build.read(found, "A")
        left, right = {1: (a, b), 2: (a @ b, np.eye(n)), 3: (b @ a, np.eye(n))}[kind]
        scale = 10 * np.abs(left).max() * max(1, np.abs(vectors).max()) * n
        build.close(left @ vectors, right @ vectors * values, scale)
        factor = build.read(found, "B")
        factor = np.tril(factor) if fill == 0 else np.triu(factor).conj().T
        build.close(factor @ factor.conj().T, b, np.abs(b).max())

    return check


def singular_values(build):
    """A = U S V^H, with the vectors that are asked for."""
    rng = build.rng
    m, n = (int(k) for k in rng.integers(1, 12, 2))
    jacobi = rng.random() < 0.4
    if not jacobi:
        m, n = max(m, n), min(m, n)
    a, k = build.random(m, n), min(m, n)
    place, info = build.matrix("A", a), build.info()
    s = build.array("S", sparse.encoded(REAL[build.kind], np.zeros(k)))
    if jacobi:
        mode, econ = int(rng.integers(2)), int(rng.integers(2))
        job_u = job_v = "N" if mode == 0 else "S" if econ else "A"
    else:
        job_u, job_v = (str(job) for job in rng.choice(list("ASNO"), 2))
        job_v = "N" if job_u == job_v == "O" else job_v
    u = build.matrix("U", build.random(m, m if job_u == "A" else k))
    v_shape = (n if job_v == "A" else k, n)
    v = build.matrix("V", build.random(*(v_shape[::-1] if jacobi else v_shape)))
    if jacobi:
        build.step("cusolverDnCreateGesvdjInfo", "&jacobi")
        build.step(build.name("gesvdj"), "h", mode, econ, m, n, *place, s, *u, *v, None, 0, info,
                   "jacobi")  # fmt: skip
    elif rng.random() < 0.4:
        build.step("cusolverDnXgesvd", "h", None, ord(job_u), ord(job_v), m, n, build.type, *place,
                   sparse.TYPES[REAL[build.kind]][0], s, build.type, *u, build.type, *v, build.type,
                   None, 0, None, 0, info)  # fmt: skip
    else:
        build.step(build.name("gesvd_bufferSize"), "h", m, n, "&size")
        build.step(build.name("gesvd"), "h", ord(job_u), ord(job_v), m, n, *place, s, *u, *v, None, 0,
                   None, info)  # fmt: skip

    def check(found):
        assert info_of(found) == 0
        values = sparse.decoded(REAL[build.kind], found["S"]).real
        build.close(values, np.linalg.svd(a, compute_uv=False), 10)
        after, left, right = (build.read(found, name) for name in "AUV")
        right = right.conj().T if jacobi else right
        left = after[:, :k] if job_u == "O" else left
        right = after[:k] if job_v == "O" else right
        if job_u != "N":
            build.close(left.conj().T @ left, np.eye(left.shape[1]), 5)
        if job_v != "N":
            build.close(right @ right.conj().T, np.eye(right.shape[0]), 5)
        if "N" not in (job_u, job_v):
            build.close(left[:, :k] * values @ right[:k], a, 20)

    return check


KINDS = (lu, cholesky, qr, eigenvalues, pairs, singular_values)


def planned(kinds, builder, seed, count):
    """Return a plan for library_client.py, its memory, and for each case what checks it.

    `kinds` take turns; each is given what `builder` makes of random numbers, and returns the check.
    """
    plan, memory, checks = [], {}, []
    rng = np.random.default_rng(seed)
    for number in range(count):
        build = builder(rng)
        checks.append(kinds[number % len(kinds)](build))
        plan.append({"device": list(build.device), "host": list(build.host), "steps": build.steps})
        for data in (build.device, build.host):
            memory.update({f"{number}.{name}": array for name, array in data.items()})
    return plan, memory, checks


def cases(seed, count):
    """Return the cases of dense matrices."""
    return planned(KINDS, Builder, seed, count)
