"""Random calls of cuSPARSE, and what has to be in memory after them."""

import numpy as np

from python_reference import sparse

#: Types of a matrix, of what it is multiplied with, of the result, and of the computation.
MIXES = (
    ("f32", "f32", "f32", "f32"),
    ("f64", "f64", "f64", "f64"),
    ("c32", "c32", "c32", "c32"),
    ("c64", "c64", "c64", "c64"),
    ("f16", "f16", "f16", "f32"),
    ("f16", "f16", "f32", "f32"),
    ("bf16", "bf16", "bf16", "f32"),
    ("bf16", "bf16", "f32", "f32"),
    ("c16", "c16", "c16", "c32"),
    ("i8", "i8", "i32", "i32"),
    ("i8", "i8", "f32", "f32"),
    ("f32", "f64", "f64", "f64"),
)
INDEX_TYPES = {2: np.int32, 3: np.int64}


class Builder:
    """The steps and the memory of one case."""

    def __init__(self, rng):
        self.rng = rng
        self.device, self.host, self.steps = {}, {}, []

    def array(self, name, data):
        self.device[name] = np.ascontiguousarray(data).view(np.uint8).ravel()
        return "@" + name

    def scalar(self, name, kind, value):
        """Pass a number in the memory of the pointer mode."""
        data = sparse.encoded(kind, [value])
        if not hasattr(self, "mode"):
            self.mode = int(self.rng.integers(2))
            self.step("cusparseSetPointerMode", "h", self.mode)
        if self.mode:
            return self.array(name, data)
        self.host[name] = data
        return "$" + name

    def step(self, *words):
        self.steps.append([int(word) if isinstance(word, np.integer) else word for word in words])

    def dense_matrix(self, name, kind, matrix, batch=1):
        """Describe a matrix (or a batch), and return where its elements lie."""
        rows, columns = matrix.shape[-2:]
        order = int(self.rng.choice([1, 2]))
        ld = (rows if order == 1 else columns) + int(self.rng.integers(3))
        stride = ld * (columns if order == 1 else rows) + int(self.rng.integers(3))
        i, j = np.mgrid[:rows, :columns]
        places = (j * ld + i) if order == 1 else (i * ld + j)
        places = np.stack([places + b * stride for b in range(batch)])
        numbers = sparse.random_numbers(self.rng, kind, batch * stride)
        numbers[places] = matrix.reshape(batch, rows, columns)
        values = self.array(f"{name}.values", sparse.encoded(kind, numbers))
        self.step("cusparseCreateDnMat", "&" + name, rows, columns, ld, values,
                  sparse.TYPES[kind][0], order)  # fmt: skip
        if batch > 1:
            self.step("cusparseDnMatSetStridedBatch", name, batch, stride)
        return places, numbers

    def dense_vector(self, name, kind, numbers):
        values = self.array(f"{name}.values", sparse.encoded(kind, numbers))
        self.step("cusparseCreateDnVec", "&" + name, len(numbers), values, sparse.TYPES[kind][0])

    def sparse_matrix(self, name, kind, stored, block=(1, 1), order=2, slice_rows=2, pad=0):
        """Describe a matrix whose indices have a random type."""
        types = [int(self.rng.choice([2, 3])) for _ in range(2)]
        if stored.form == "coo":
            types[0] = types[1]
        offsets, indices = (
            np.asarray(numbers, INDEX_TYPES[kind_of])
            for numbers, kind_of in zip((stored.offsets, stored.indices), types, strict=True)
        )
        arrays = [
            self.array(f"{name}.offsets", offsets),
            self.array(f"{name}.indices", indices),
            self.array(f"{name}.values", sparse.encoded(kind, stored.numbers)),
        ]
        rows, columns = stored.shape
        last = [stored.base, sparse.TYPES[kind][0]]
        form = stored.form
        where = "&" + name
        if form == "coo":
            self.step(
                "cusparseCreateCoo", where, rows, columns, stored.count, *arrays, types[1], *last
            )
        elif form == "bsr":
            self.step("cusparseCreateBsr", where, rows // block[0], columns // block[1], stored.count,
                      *block, *arrays, *types, *last, order)  # fmt: skip
        elif form == "blocked_ell":
            self.step("cusparseCreateBlockedEll", where, rows, columns, block[0], stored.ell_columns,
                      *arrays[1:], types[1], *last)  # fmt: skip
        elif form == "sliced_ell":
            self.step("cusparseCreateSlicedEll", where, rows, columns, stored.count, stored.values,
                      slice_rows, *arrays, *types, *last)  # fmt: skip
        else:
            self.step(f"cusparseCreate{form.title()}", where, rows, columns, stored.count, *arrays,
                      *types, *last)  # fmt: skip

    def random_matrix(self, name, kind, forms=sparse.FORMATS, shape=None, mask=None):
        """Describe a random matrix, and return how it is stored."""
        rng = self.rng
        form = rng.choice(forms)
        block = tuple(int(n) for n in rng.integers(1, 4, 2)) if form == "bsr" else (1, 1)
        if form == "blocked_ell":
            block = (int(rng.integers(1, 4)),) * 2
        order, slice_rows = int(rng.choice([1, 2])), int(rng.integers(1, 5))
        if shape is None:
            shape = [int(rng.integers(1, 14)) for _ in range(2)]
            shape = [-(-n // size) * size for n, size in zip(shape, block, strict=True)]
        if mask is None:
            mask = rng.random(shape) < rng.choice([0.1, 0.3, 0.6])
        dense = sparse.random_numbers(rng, kind, shape)
        stored = sparse.Stored(dense, mask, form, int(rng.integers(2)), block, order, slice_rows)
        self.sparse_matrix(name, kind, stored, block, order, slice_rows)
        return stored

    def number(self, kind):
        choice = self.rng.integers(4)
        return (
            complex(choice) if choice < 2 else complex(sparse.random_numbers(self.rng, kind, 1)[0])
        )

    def sparse_vector(self, name, kind, size):
        count = int(self.rng.integers(0, size + 1))
        indices = self.rng.permutation(size)[:count]
        numbers = sparse.random_numbers(self.rng, kind, count)
        base, index_type = int(self.rng.integers(2)), int(self.rng.choice([2, 3]))
        self.step("cusparseCreateSpVec", "&" + name, size, count,
                  self.array(f"{name}.indices", (indices + base).astype(INDEX_TYPES[index_type])),
                  self.array(f"{name}.values", sparse.encoded(kind, numbers)),
                  index_type, base, sparse.TYPES[kind][0])  # fmt: skip
        return indices, numbers


def spmv(build):
    """y = alpha op(A) x + beta y."""
    rng = build.rng
    a_kind, x_kind, y_kind, compute = MIXES[rng.integers(len(MIXES))]
    stored = build.random_matrix("A", a_kind)
    operation = int(rng.integers(3))
    matrix = sparse.after(operation, stored.dense())
    x = sparse.random_numbers(rng, x_kind, matrix.shape[1])
    y = sparse.random_numbers(rng, y_kind, matrix.shape[0])
    build.dense_vector("x", x_kind, x)
    build.dense_vector("y", y_kind, y)
    alpha, beta = build.number(compute), build.number(compute)
    words = ["h", operation, build.scalar("alpha", compute, alpha), "A", "x",
             build.scalar("beta", compute, beta), "y", sparse.TYPES[compute][0], 0]  # fmt: skip
    build.step("cusparseSpMV_bufferSize", *words, "&size")
    build.step("cusparseSpMV_preprocess", *words, None)
    build.step("cusparseSpMV", *words, None)
    wanted = alpha * (matrix @ x) + beta * y
    scale = abs(alpha) * (abs(matrix) @ abs(x)) + abs(beta * y)

    def check(found):
        sparse.check_numbers(y_kind, sparse.decoded(y_kind, found["y.values"]), wanted, scale)

    return check


def spmm(build):
    """C = alpha op(A) op(B) + beta C, of a batch that shares A."""
    rng = build.rng
    a_kind, b_kind, c_kind, compute = MIXES[rng.integers(len(MIXES))]
    stored = build.random_matrix("A", a_kind)
    operations = [int(rng.integers(3)) for _ in range(2)]
    matrix = sparse.after(operations[0], stored.dense())
    columns, batch = int(rng.integers(1, 9)), int(rng.choice([1, 1, 3]))
    shape = (matrix.shape[1], columns) if operations[1] == 0 else (columns, matrix.shape[1])
    b = sparse.random_numbers(rng, b_kind, (batch, *shape))
    c = sparse.random_numbers(rng, c_kind, (batch, matrix.shape[0], columns))
    build.dense_matrix("B", b_kind, b, batch)
    places, before = build.dense_matrix("C", c_kind, c, batch)
    alpha, beta = build.number(compute), build.number(compute)
    words = ["h", *operations, build.scalar("alpha", compute, alpha), "A", "B",
             build.scalar("beta", compute, beta), "C", sparse.TYPES[compute][0], 0]  # fmt: skip
    build.step("cusparseSpMM_bufferSize", *words, "&size")
    build.step("cusparseSpMM_preprocess", *words, None)
    build.step("cusparseSpMM", *words, None)
    wanted = before.copy()
    for i in range(batch):
        wanted[places[i]] = alpha * (matrix @ sparse.after(operations[1], b[i])) + beta * c[i]
    scale = abs(alpha) * matrix.shape[1] * abs(matrix).max(initial=0) * abs(b).max() + abs(beta) * 9

    def check(found):
        numbers = sparse.decoded(c_kind, found["C.values"])[: len(wanted)]
        sparse.check_numbers(c_kind, numbers, wanted, scale)

    return check


def sddmm(build):
    """C = alpha (op(A) op(B)) where C has elements, + beta C."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c64"]))
    stored = build.random_matrix("C", kind, ("csr", "bsr", "coo", "csc"))
    inner, operations = int(rng.integers(1, 8)), [int(rng.integers(3)) for _ in range(2)]
    shapes = [(stored.shape[0], inner), (inner, stored.shape[1])]
    factors = []
    for name, shape, operation in zip("AB", shapes, operations, strict=True):
        shape = shape if operation == 0 else shape[::-1]
        factors.append(sparse.random_numbers(rng, kind, shape))
        build.dense_matrix(name, kind, factors[-1])
    alpha, beta = build.number(kind), build.number(kind)
    words = ["h", *operations, build.scalar("alpha", kind, alpha), "A", "B",
             build.scalar("beta", kind, beta), "C", sparse.TYPES[kind][0], 0]  # fmt: skip
    build.step("cusparseSDDMM_bufferSize", *words, "&size")
    build.step("cusparseSDDMM", *words, None)
    full = alpha * (
        sparse.after(operations[0], factors[0]) @ sparse.after(operations[1], factors[1])
    )
    wanted = stored.numbers.copy()
    for row, column, place in stored.elements:
        wanted[place] = full[row, column] + beta * stored.numbers[place]

    def check(found):
        numbers = sparse.decoded(kind, found["C.values"])
        sparse.check_numbers(kind, numbers, wanted, 100 * inner)

    return check


def vectors(build):
    """Calls on a sparse and a dense vector."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c32", "c64", "f16", "bf16"]))
    compute = "f32" if kind in ("f16", "bf16") else kind
    size = int(rng.integers(1, 30))
    indices, x = build.sparse_vector("x", kind, size)
    y = sparse.random_numbers(rng, kind, size)
    build.dense_vector("y", kind, y)
    call = str(rng.choice(["Axpby", "Gather", "Scatter", "Rot", "SpVV"]))
    wanted_x, wanted_y = x.copy(), y.copy()
    result = None
    if call == "Axpby":
        alpha, beta = build.number(compute), build.number(compute)
        build.step("cusparseAxpby", "h", build.scalar("alpha", compute, alpha), "x",
                   build.scalar("beta", compute, beta), "y")  # fmt: skip
        wanted_y = beta * y
        wanted_y[indices] += alpha * x
    elif call == "Gather":
        build.step("cusparseGather", "h", "y", "x")
        wanted_x = y[indices]
    elif call == "Scatter":
        build.step("cusparseScatter", "h", "x", "y")
        wanted_y[indices] = x
    elif call == "Rot":
        c, s = build.number(compute), build.number(compute)
        build.step("cusparseRot", "h", build.scalar("c", compute, c), build.scalar("s", compute, s),
                   "x", "y")  # fmt: skip
        wanted_x, wanted_y[indices] = c * x + s * y[indices], c * y[indices] - s * x
    else:
        operation = int(rng.choice([0, 2]))
        place = build.scalar("result", compute, 0)
        build.step("cusparseSpVV", "h", operation, "x", "y", place, sparse.TYPES[compute][0], None)
        result = np.sum((x.conj() if operation == 2 else x) * y[indices])

    def check(found):
        sparse.check_numbers(kind, sparse.decoded(kind, found["x.values"]), wanted_x, 30)
        sparse.check_numbers(kind, sparse.decoded(kind, found["y.values"]), wanted_y, 30)
        if result is not None:
            sparse.check_numbers(compute, sparse.decoded(compute, found["result"]), [result], 100)

    return check


def dense_and_sparse(build):
    """A dense matrix of a sparse one, or the other way."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c32", "c64", "f16", "bf16"]))
    if rng.random() < 0.5:
        stored = build.random_matrix("A", kind)
        dense = stored.dense()
        places, before = build.dense_matrix(
            "B", kind, sparse.random_numbers(rng, kind, dense.shape)
        )
        build.step("cusparseSparseToDense", "h", "A", "B", 0, None)
        wanted = before.copy()
        wanted[places[0]] = dense

        def check(found):
            numbers = sparse.decoded(kind, found["B.values"])
            sparse.check_numbers(kind, numbers, wanted, 0)

        return check
    form = str(rng.choice(["csr", "csc", "coo"]))
    shape = [int(n) for n in rng.integers(1, 14, 2)]
    mask = rng.random(shape) < 0.4
    dense = np.where(mask, sparse.random_numbers(rng, kind, shape), 0)
    stored = sparse.Stored(dense, dense != 0, form, int(rng.integers(2)))
    empty = sparse.Stored(dense, dense != 0, form, stored.base)
    empty.offsets, empty.indices = empty.offsets * 0, empty.indices * 0
    empty.numbers = empty.numbers * 0
    empty.count = 0
    build.dense_matrix("B", kind, dense)
    build.sparse_matrix("A", kind, empty)
    build.step("cusparseDenseToSparse_analysis", "h", "B", "A", 0, None)
    build.step("cusparseSpMatGetSize", "A", "&rows", "&columns", "&count")
    build.step("cusparseDenseToSparse_convert", "h", "B", "A", 0, None)

    def check(found):
        assert [int(found[f"slots.{name}"]) for name in ("rows", "columns", "count")] == [
            *shape,
            stored.count,
        ]
        for name, numbers in (("offsets", stored.offsets), ("indices", stored.indices)):
            data = found[f"A.{name}"]
            width = np.int64 if data.nbytes == 8 * len(numbers) else np.int32
            assert data.view(width).tolist() == numbers.tolist()
        assert sparse.decoded(kind, found["A.values"]).tolist() == stored.numbers.tolist()

    return check


def triangle(build):
    """op(A) y = alpha x, of one vector or several."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c32", "c64"]))
    size = int(rng.integers(1, 12))
    mask = (rng.random((size, size)) < 0.4) | np.eye(size, dtype=bool)
    fill, unit, operation = (int(n) for n in rng.integers([2, 2, 3]))
    form = str(rng.choice(["csr", "coo", "csc", "sliced_ell"]))
    dense = sparse.random_numbers(rng, kind, (size, size)) / size
    dense = sparse.decoded(kind, sparse.encoded(kind, dense + np.eye(size) * 2)).reshape(size, size)
    stored = sparse.Stored(dense, mask, form, int(rng.integers(2)))
    build.sparse_matrix("A", kind, stored)
    for attribute, value in enumerate((fill, unit)):
        build.host[f"attribute{attribute}"] = np.array([value], np.int32).view(np.uint8)
        build.step("cusparseSpMatSetAttribute", "A", attribute, f"$attribute{attribute}", 4)
    matrix = stored.dense()
    matrix = np.tril(matrix) if fill == 0 else np.triu(matrix)
    if unit:
        matrix[np.diag_indices(size)] = 1
    alpha = build.number(kind)
    several = rng.random() < 0.5
    if several:
        turned = int(rng.integers(3))
        columns = int(rng.integers(1, 5))
        right = sparse.random_numbers(
            rng, kind, (size, columns) if turned == 0 else (columns, size)
        )
        build.dense_matrix("x", kind, right)
        places, before = build.dense_matrix(
            "y", kind, sparse.random_numbers(rng, kind, (size, columns))
        )
        name, operations = "SpSM", [operation, turned]
        right = sparse.after(turned, right)
    else:
        right = sparse.random_numbers(rng, kind, size)
        build.dense_vector("x", kind, right)
        build.dense_vector("y", kind, sparse.random_numbers(rng, kind, size))
        name, operations = "SpSV", [operation]
    words = ["h", *operations, build.scalar("alpha", kind, alpha), "A", "x", "y",
             sparse.TYPES[kind][0], 0]  # fmt: skip
    build.step(f"cusparse{name}_createDescr", "&solve")
    build.step(f"cusparse{name}_bufferSize", *words, "solve", "&size")
    build.step(f"cusparse{name}_analysis", *words, "solve", None)
    build.step(f"cusparse{name}_solve", *words, "solve")
    build.step(f"cusparse{name}_destroyDescr", "solve")
    solved = np.linalg.solve(sparse.after(operation, matrix), alpha * right)

    def check(found):
        wanted = solved
        if several:
            wanted = before.copy()
            wanted[places[0]] = solved
        numbers = sparse.decoded(kind, found["y.values"])
        sparse.check_numbers(kind, numbers, wanted, 1000 * (1 + abs(solved).max()))

    return check


def sparse_product(build):
    """C = alpha A B of compressed rows, in the two ways of cuSPARSE."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c32", "c64"]))
    a = build.random_matrix("A", kind, ("csr",))
    mask = rng.random((a.shape[1], int(rng.integers(1, 12)))) < 0.3
    b = build.random_matrix("B", kind, ("csr",), mask.shape, mask)
    shape = (a.shape[0], b.shape[1])
    count = (abs(a.dense()) > 0).astype(int) @ (abs(b.dense()) > 0).astype(int)
    stored = sparse.Stored(a.dense() @ b.dense(), count > 0, "csr", 0)
    arrays = [
        build.array("C.offsets", np.zeros(shape[0] + 1, np.int32)),
        build.array("C.indices", np.zeros(stored.count, np.int32)),
        build.array("C.values", sparse.encoded(kind, np.zeros(stored.count))),
    ]
    build.array("buffer", np.zeros(256, np.uint8))
    build.step("cusparseCreateCsr", "&C", *shape, 0, arrays[0], None, None, 2, 2, 0,
               sparse.TYPES[kind][0])  # fmt: skip
    alpha = build.number(kind)
    scalars = [build.scalar("alpha", kind, alpha), build.scalar("beta", kind, 0)]
    build.step("cusparseSpGEMM_createDescr", "&product")
    last = [sparse.TYPES[kind][0], 0, "product"]
    words = ["h", 0, 0, scalars[0], "A", "B", scalars[1], "C", *last]
    plain = ["h", 0, 0, "A", "B", "C", 0, "product"]
    again = rng.random() < 0.5
    if again:
        build.step("cusparseSpGEMMreuse_workEstimation", *plain, "&size", None)
        build.step("cusparseSpGEMMreuse_nnz", *plain, "&size", None, "&size", None, "&size", None)
        build.step("cusparseSpGEMMreuse_nnz", *plain, *(["&size", "@buffer"] * 3))
    else:
        for name in ("workEstimation", "compute"):
            build.step(f"cusparseSpGEMM_{name}", *words, "&size", None)
            build.step(f"cusparseSpGEMM_{name}", *words, "&size", "@buffer")
    build.step("cusparseSpMatGetSize", "C", "&rows", "&columns", "&count")
    build.step("cusparseCsrSetPointers", "C", *arrays)
    if again:
        build.step("cusparseSpGEMMreuse_copy", *plain, "&size", "@buffer")
        build.step("cusparseSpGEMMreuse_compute", *words)
    else:
        build.step("cusparseSpGEMM_copy", *words)

    def check(found):
        assert int(found["slots.count"]) == stored.count
        assert found["C.offsets"].view(np.int32).tolist() == stored.offsets.tolist()
        assert found["C.indices"].view(np.int32).tolist() == stored.indices.tolist()
        numbers = sparse.decoded(kind, found["C.values"])
        sparse.check_numbers(kind, numbers, alpha * stored.numbers, 100)

    return check


def transposed(build):
    """Compressed columns of compressed rows, and arrays of indices."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c64"]))
    shape = [int(n) for n in rng.integers(1, 14, 2)]
    mask = rng.random(shape) < 0.4
    dense = sparse.random_numbers(rng, kind, shape)
    base = int(rng.integers(2))
    rows, columns, pairs = (
        sparse.Stored(dense, mask, form, base) for form in ("csr", "csc", "coo")
    )
    given = [
        build.array("values", sparse.encoded(kind, rows.numbers)),
        build.array("offsets", rows.offsets.astype(np.int32)),
        build.array("indices", rows.indices.astype(np.int32)),
    ]
    found_arrays = [
        build.array("T.values", sparse.encoded(kind, columns.numbers * 0)),
        build.array("T.offsets", np.zeros(shape[1] + 1, np.int32)),
        build.array("T.indices", np.zeros(rows.count, np.int32)),
    ]
    build.step("cusparseCsr2cscEx2", "h", *shape, rows.count, *given, *found_arrays,
               sparse.TYPES[kind][0], 1, base, 1, None)  # fmt: skip
    build.array("rows", np.zeros(rows.count, np.int32))
    build.array("back", np.zeros(shape[0] + 1, np.int32))
    build.step("cusparseXcsr2coo", "h", "@offsets", rows.count, shape[0], "@rows", base)
    build.step("cusparseXcoo2csr", "h", "@rows", rows.count, shape[0], "@back", base)
    order = rng.permutation(rows.count)
    build.array("mixed.rows", pairs.offsets[order].astype(np.int32))
    build.array("mixed.columns", pairs.indices[order].astype(np.int32))
    build.array("places", np.zeros(rows.count, np.int32))
    by_row = bool(rng.integers(2))
    build.step("cusparseCreateIdentityPermutation", "h", rows.count, "@places")
    build.step(f"cusparseXcoosortBy{'Row' if by_row else 'Column'}", "h", *shape, rows.count,
               "@mixed.rows", "@mixed.columns", "@places", None)  # fmt: skip

    def check(found):
        def numbers(name):
            return found[name].view(np.int32).tolist()

        assert numbers("T.offsets") == columns.offsets.tolist()
        assert numbers("T.indices") == columns.indices.tolist()
        assert sparse.decoded(kind, found["T.values"]).tolist() == columns.numbers.tolist()
        assert numbers("rows") == pairs.offsets.tolist()
        assert numbers("back") == rows.offsets.tolist()
        both = list(zip(numbers("mixed.rows"), numbers("mixed.columns"), strict=True))
        assert both == sorted(both, key=lambda pair: pair if by_row else pair[::-1])
        before = list(zip(pairs.offsets[order], pairs.indices[order], strict=True))
        assert both == [before[i] for i in numbers("places")]

    return check


def incomplete(build):
    """Factors without fill-in: their product is the matrix where it has elements."""
    rng = build.rng
    kind = str(rng.choice(["f32", "f64", "c32", "c64"]))
    size, base = int(rng.integers(1, 10)), int(rng.integers(2))
    cholesky = bool(rng.integers(2))
    mask = (rng.random((size, size)) < 0.4) | np.eye(size, dtype=bool)
    mask |= mask.T
    dense = sparse.random_numbers(rng, kind, (size, size)) / size
    dense = dense + dense.conj().T if cholesky else dense
    dense = np.where(mask, dense + 4 * np.eye(size), 0)
    dense = sparse.decoded(kind, sparse.encoded(kind, dense)).reshape(size, size)
    missing = rng.random() < 0.2
    if missing:
        row = int(rng.integers(size))
        mask[row, row] = False
    stored = sparse.Stored(dense, mask, "csr", base)
    letter, name = {"f32": "S", "f64": "D", "c32": "C", "c64": "Z"}[kind], (
        "ic" if cholesky else "ilu"
    )  # fmt: skip
    words = ["h", size, stored.count, "matrix",
             build.array("values", sparse.encoded(kind, stored.numbers)),
             build.array("offsets", stored.offsets.astype(np.int32)),
             build.array("indices", stored.indices.astype(np.int32)), "info"]  # fmt: skip
    build.step("cusparseCreateMatDescr", "&matrix")
    build.step("cusparseSetMatIndexBase", "matrix", base)
    build.step(f"cusparseCreateCsr{name}02Info", "&info")
    call = f"cusparse{letter}csr{name}02"
    build.step(f"{call}_bufferSize", *words, "&size")
    build.step(f"{call}_analysis", *words, 0, None)
    place = build.scalar("position", "i32", 0)
    build.may_fail = len(build.steps)
    build.step(f"cusparseXcsr{name}02_zeroPivot", "h", "info", place)
    if not missing:
        build.step(call, *words, 0, None)

    def check(found):
        position = int(found["position"].view(np.int32)[0])
        assert (found["status"][build.may_fail] == 9) == missing
        assert position == (row + base if missing else -1)
        if missing:
            return
        factors = stored.dense(sparse.decoded(kind, found["values"]))
        lower = np.tril(factors) if cholesky else np.tril(factors, -1) + np.eye(size)
        product = lower @ (lower.conj().T if cholesky else np.triu(factors))
        kept = np.tril(mask) if cholesky else mask
        precision = 1e-5 if kind in ("f32", "c32") else 1e-12
        np.testing.assert_allclose(product[kept], dense[kept], atol=precision)
        if cholesky:  # the other triangle is as it was
            above = np.triu(mask, 1)
            assert factors[above].tolist() == dense[above].tolist()

    return check


KINDS = (
    spmv,
    spmm,
    sddmm,
    vectors,
    dense_and_sparse,
    triangle,
    sparse_product,
    transposed,
    incomplete,
)


def cases(seed, count):
    """Return a plan for library_client.py, its memory, and for each case what checks it."""
    plan, memory, checks = [], {}, []
    rng = np.random.default_rng(seed)
    for number in range(count):
        build = Builder(rng)
        check = KINDS[number % len(KINDS)](build)
        plan.append({"device": list(build.device), "host": list(build.host), "steps": build.steps})
        for name, data in (build.device | build.host).items():
            memory[f"{number}.{name}"] = data
        checks.append((check, getattr(build, "may_fail", None)))
    return plan, memory, checks
