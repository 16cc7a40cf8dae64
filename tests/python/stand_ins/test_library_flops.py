"""The arithmetic of calls of libraries in `App.operations`, against counts made here."""

import json
import math
import re
import sys

import numpy as np
import pytest

import warpstack as ws
from effort import rounds
from stand_ins import library_runner, solver_cases, sparse_cases
from warpstack.cuda import host
from warpstack.cuda.libraries import lapack_library

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-ins need Linux"
)


def traced_calls(folder, command):
    """Return the rows of a program's calls of libraries."""
    traced = host.trace_program(
        [sys.executable, *map(str, command)], folder / "out", gpu=ws.gpu("a100")
    )
    assert not traced.problem(), traced.problem()
    app = ws.load(folder / "out")
    table = app.operations
    line = ws.timeline(app, "a100").table
    lasts = (line["end_us"] - line["start_us"])[table["operation"] == "library"]
    found = table[table["operation"] == "library"]
    gpu = ws.gpu("a100")
    least = gpu.launch_us_nsys + found["bytes"] / (gpu.sustained_dram_bandwidth_gbs * 1e3)
    assert (lasts >= least * (1 - 1e-9)).all()
    assert (lasts[found["flops"] == 0] <= least[found["flops"] == 0] * (1 + 1e-9)).all()
    return found


def client_calls(folder, library, create, plan, memory):
    files = [folder / name for name in ("plan.json", "memory.npz", "results.npz")]
    files[0].write_text(json.dumps(plan))
    np.savez(files[1], **memory)
    return traced_calls(folder, [library_runner.CLIENT, library, create, *files])


FFT = """
import ctypes, json, sys
cuda, lib = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcufft.so.11")
memory = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 22)) == 0
assert cuda.cudaMemset(memory, 0, ctypes.c_size_t(1 << 22)) == 0
for kind, code, lengths, batch in json.loads(sys.argv[1]):
    plan = ctypes.c_int()
    sizes = (ctypes.c_int * len(lengths))(*lengths)
    assert lib.cufftPlanMany(ctypes.byref(plan), len(lengths), sizes, None, 1, 0, None, 1, 0, code,
                             batch) == 0
    ways = () if kind in ("R2C", "C2R", "D2Z", "Z2D") else (-1,)
    assert getattr(lib, "cufftExec" + kind)(plan, memory, memory, *ways) == 0
    assert lib.cufftDestroy(plan) == 0
"""
TRANSFORMS = {"C2C": 0x29, "R2C": 0x2A, "C2R": 0x2C, "Z2Z": 0x69, "D2Z": 0x6A, "Z2D": 0x6C}


def test_transforms_have_the_usual_count(tmp_path):
    rng = np.random.default_rng(3)
    wanted, counts = [], []
    for _ in range(rounds(120)):
        kind = str(rng.choice(list(TRANSFORMS)))
        rank = int(rng.integers(1, 4))
        lengths = rng.integers(1, (4000, 60, 16)[rank - 1], rank).tolist()
        batch = int(rng.integers(1, 8))
        wanted.append((kind, TRANSFORMS[kind], lengths, batch))
        points = math.prod(lengths)
        part = 1 if kind in ("C2C", "Z2Z") else 0.5
        counts.append(round(5 * part * points * math.log2(points) * batch))
    found = traced_calls(tmp_path, ["-c", FFT, json.dumps(wanted)])
    np.testing.assert_allclose(found["flops"], counts, atol=1)
    kinds = ["fp64" if "Z" in kind else "fp32" for kind, *_ in wanted]
    named = [name if count else "" for name, count in zip(kinds, counts, strict=True)]
    assert [a for a, c in zip(found["arithmetic"], counts, strict=True) if c] == list(
        filter(None, named)
    )
    assert not found["tensor_cores"].any()


def sum_of(m, n, of_step):
    """Return what the steps of a factorisation take, one after another."""
    return sum(of_step(m - k, n - k) for k in range(int(min(m, n))))


def dense_count(routine, numbers, words):
    """Return the operations of a routine on real numbers, from its steps one by one where it has some."""
    if routine == "getrf":  # each step updates what is left
        m, n = numbers[:2]
        return sum_of(m, n, lambda rows, columns: 2 * rows * columns)
    if routine == "geqrf":  # a reflector multiplies what is left
        m, n = numbers[:2]
        return sum_of(m, n, lambda rows, columns: 4 * rows * columns)
    if routine == "potrf":
        n = numbers[1]
        return sum_of(n, n, lambda rows, columns: rows * columns)
    if routine == "potri":
        return 2 * sum_of(numbers[1], numbers[1], lambda rows, columns: rows * columns)
    if routine in ("getrs", "potrs"):
        n, sides = numbers[1:3]
        return 2 * n * n * sides
    if routine in ("orgqr", "ungqr"):
        m, n, k = numbers[:3]
        return sum(4 * (m - j) * (n - j) for j in range(k))
    if routine in ("ormqr", "unmqr"):
        side, _, m, n, k = numbers[:5]
        order, others = (m, n) if side == 0 else (n, m)
        return sum(4 * (order - j) * others for j in range(k))
    if routine in ("syevd", "heevd", "syevj", "heevj"):
        mode, _, n = numbers[:3]
        return n**3 * (9 if mode else 4 / 3)
    assert routine in ("sygvd", "hegvd", "sygvj", "hegvj"), routine
    _, mode, _, n = numbers[:4]
    return n**3 * (4 / 3 + (10 if mode else 4 / 3))


@pytest.mark.skipif(lapack_library() is None, reason="scipy-openblas32 is not installed")
def test_dense_solvers_have_the_counts_of_their_steps(tmp_path):
    plan, memory, _ = solver_cases.cases(11, rounds(120))
    found = client_calls(tmp_path, "libcusolver.so.12", "cusolverDnCreate", plan, memory)
    steps = [
        step
        for case in plan
        for step in case["steps"]
        if not re.search("bufferSize|Create|Destroy|Set", step[0])
    ]
    assert len(steps) == len(found)
    tried = set()
    calls = zip(steps, found["flops"], found["arithmetic"], found["tensor_cores"], strict=True)
    for step, flops, arithmetic, tensor_cores in calls:
        letter, routine = re.fullmatch(r"cusolverDn([SDCZX])(\w+)", step[0]).groups()
        # Sizes come before the first array.
        numbers = [word for word in step[1:] if isinstance(word, int)]
        if letter == "X":
            continue  # they compute what those of a type do
        if routine.endswith("Batched") or routine.startswith("gesvd"):
            continue
        wanted = dense_count(routine, numbers, step) * (4 if letter in "CZ" else 1)
        # Leading terms: they leave out what is less by a factor of the size.
        size = max(numbers[:5])
        assert abs(flops - wanted) <= 4 * (4 if letter in "CZ" else 1) * 4 * size**2 + 1, step
        assert not flops or arithmetic == ("fp64" if letter in "DZ" else "fp32")
        assert not flops or tensor_cores == (letter in "DZ")
        tried.add(routine)
    assert {"getrf", "getrs", "potrf", "potrs", "geqrf"} <= tried


def test_products_with_sparse_matrices_count_their_elements(tmp_path):
    plan, memory, _ = sparse_cases.cases(11, rounds(252))
    kept, stores, wanted = [], {}, []
    for number, case in enumerate(plan):
        elements, columns, work = {}, {}, []
        for step in case["steps"]:
            name = step[0].removeprefix("cusparse")
            if name in ("CreateCsr", "CreateCsc", "CreateCoo"):
                elements[step[1][1:]] = step[4]
            if name == "CreateDnMat":
                columns[step[1][1:]] = step[3]
            if name in ("SpMV", "SpMM"):
                work.append(step)
        others = [
            step[0]
            for step in case["steps"]
            if re.search("SDDM|SpS|GEM|Axpby|Rot|SpVV|Gather|Scatter|csr|coo|csc|nnz|ToDense|ToSparse",
                         step[0])
        ]  # fmt: skip
        is_batch = any("Batch" in step[0] for step in case["steps"])
        if (
            others
            or is_batch
            or not work
            or not all(
                (step[4] if step[0] == "cusparseSpMV" else step[5]) in elements for step in work
            )
        ):
            continue
        for step in work:
            vector = step[0] == "cusparseSpMV"
            matrix, compute = (step[4], step[8]) if vector else (step[5], step[9])
            pairs = elements[matrix] * (1 if vector else columns[step[8]])
            wanted.append((pairs * (8 if compute in (4, 5) else 2), compute))
        for name in (*case["device"], *case["host"]):
            stores[f"{len(kept)}.{name}"] = memory[f"{number}.{name}"]
        kept.append(case)
    assert len(wanted) >= rounds(252) // 20
    found = client_calls(tmp_path, "libcusparse.so.12", "cusparseCreate", kept, stores)
    assert found["flops"].tolist() == [count for count, _ in wanted]
    names = {0: "fp32", 1: "fp64", 4: "fp32", 5: "fp64", 10: "int32"}
    assert found["arithmetic"].tolist() == [names[compute] for _, compute in wanted]
    assert not found["tensor_cores"].any()
