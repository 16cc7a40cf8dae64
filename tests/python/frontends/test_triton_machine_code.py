"""Triton's machine code computes what its PTX does, bit by bit, and its times follow from it."""

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.cuda import disassembly, machine_code

triton = pytest.importorskip("triton", reason="Triton is not here (warpstack[triton] brings it)")

import triton_kernels as kernels  # noqa: E402


def halves(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def singles(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


#: By name of the kernel: the grid, the arrays and numbers of a call, constants and options. Of the
#: arrays the kernel writes some.
CASES = {
    "add": (4, (singles(1, 1000), singles(2, 1000), singles(0, 1000), 1000), {"BLOCK": 256}),
    "softmax": (
        8,
        (singles(3, 37, 781), singles(0, 37, 781), 37, 781),
        {"BLOCK": 1024, "STAGES": 2},
    ),
    "matmul": (
        12,
        (halves(4, 200, 136), halves(5, 136, 72), halves(0, 200, 72), 200, 72, 136),
        {"BM": 64, "BN": 32, "BK": 32, "GROUP": 2},
    ),
    "persistent_matmul": (
        3,
        (halves(4, 200, 136), halves(5, 136, 72), halves(0, 200, 72), 200, 72, 136),
        {"BM": 64, "BN": 32, "BK": 32, "GROUP": 2, "num_stages": 4},
    ),
    "dropout": (6, (singles(6, 3000), singles(0, 3000), 3000, 0.4, 123), {"BLOCK": 512}),
    "layer_norm": (
        20,
        (
            *(singles(7, 20, 700), singles(0, 20, 700), singles(9, 700), singles(10, 700)),
            *(singles(0, 20), singles(0, 20), 700, 1e-5),
        ),
        {"BLOCK": 256},
    ),
    "layer_norm_backward": (
        1,  # what several programs add to the same sums depends on their order
        (
            *(singles(0, 1, 100), singles(8, 1, 100), singles(0, 4, 100), singles(0, 4, 100)),
            *(singles(7, 1, 100), singles(9, 100), singles(1, 1), np.abs(singles(2, 1))),
            *(np.zeros(8, np.int32), 100),
        ),
        {"GROUPS": 4, "BLOCK": 128},
    ),
    "sum_of_groups": (
        22,
        (singles(1, 4, 700), singles(2, 4, 700), singles(0, 700), singles(0, 700), 4, 700),
        {"BM": 16, "BN": 32},
    ),
    "attention": (
        (6, 1),
        (*(halves(seed, 1, 192, 64) for seed in (11, 12, 13, 0)), 64**-0.5, 192),
        {"DIM": 64, "BM": 32, "BN": 32, "CAUSAL": True},
    ),
    "sort_and_count": (
        1,
        (
            np.random.default_rng(1).integers(0, 16, 512).astype(np.int32),
            *(np.zeros(n, np.int32) for n in (512, 512, 16)),
        ),
        {"N": 512, "BINS": 16},
    ),
    "count_under_lock": (8, (np.zeros(1, np.int32), np.zeros(1, np.int32)), {}),
    "numbers": (
        1,
        (
            *(np.zeros(7), np.int32(7), 2**40, 0.1, 0.5, True),
            *((np.array([2.5], np.float32), 32), None),
        ),
        {},
    ),
}
#: Whose values come from approximations (of quotients, roots and powers of two), which PTX
#: leaves to the GPU: relative and absolute differences from those of machine code.
APPROXIMATE = {
    "softmax": (1e-6, 0),
    "dropout": (1e-6, 0),
    "layer_norm": (1e-6, 2e-6),
    "layer_norm_backward": (1e-6, 1e-7),
    "attention": (2e-3, 2e-4),
}


def on_device(value):
    if isinstance(value, tuple):
        return tuple(map(on_device, value))
    return ws.cuda.array(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89"])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_computes_what_ptx_does(name, target):
    grid, arguments, named = CASES[name]
    found = []
    for wants in (False, True):
        there = on_device(arguments)
        trace = ws.triton.launch(
            getattr(kernels, name), grid, *there, target=target, machine_code=wants, **named
        )
        assert trace.code == (target if wants else "ptx")
        found.append([np.asarray(x) for x in there if isinstance(x, ws.cuda.DeviceArray)])
    for of_ptx, of_machine_code in zip(*found, strict=True):
        if name in APPROXIMATE:
            relative, absolute = APPROXIMATE[name]
            np.testing.assert_allclose(of_machine_code, of_ptx, rtol=relative, atol=absolute)
        else:
            assert of_ptx.tobytes() == of_machine_code.tobytes()
    given = [x for x in arguments if isinstance(x, np.ndarray)]
    assert any(x.tobytes() != y.tobytes() for x, y in zip(given, found[0], strict=True))


def product(machine_code=None, target="sm_80", tile=(128, 128), size=256, **options):
    """A product of halves 1024 deep."""
    a, b = ws.cuda.array(halves(1, size, 1024)), ws.cuda.array(halves(2, 1024, size))
    return ws.triton.compile(
        kernels.matmul,
        *(a, b, ws.cuda.zeros((size, size), np.float16), size, size, 1024),
        **{"BM": tile[0], "BN": tile[1], "BK": 32, "GROUP": 2, **options},
        target=target,
        machine_code=machine_code,
    )


def test_the_kernel_and_its_trace_say_what_runs():
    default = product()
    assert (default.code, default.why_ptx) == ("sm_80", "")
    trace = default.launch(4)
    assert trace.code == "sm_80"
    assert trace.registers_per_thread == default.registers_per_thread
    assert trace.instructions.opcode.str.startswith("HMMA").any()
    of_ptx = product(machine_code=False)
    assert (of_ptx.code, of_ptx.why_ptx) == ("ptx", "machine_code is False")
    assert of_ptx.launch(4).shared_memory_bytes == trace.shared_memory_bytes


@pytest.mark.parametrize("tile", [(128, 128), (64, 64)])
def test_the_model_follows_the_simulator(tile):
    """The compiler spaces products by as many cycles as the tensor cores take, which count once."""
    for wants in (False, True):
        trace = product(machine_code=wants, tile=tile).launch(256 // tile[0] * (256 // tile[1]))
        predicted = ws.predict(trace, "a100", models=["closed_network"]).cycles[0]
        simulated = ws.simulate(trace, "a100").cycles
        assert 0.8 < predicted / simulated < 1.2, (wants, predicted, simulated)


def test_tools_that_are_missing_are_told_of_once(monkeypatch):
    monkeypatch.setattr(machine_code, "find_nvdisasm", lambda: None)
    monkeypatch.setattr(machine_code, "_noted", set())
    with pytest.warns(ws.cuda.MachineCodeWarning, match="PTX runs, .*nvdisasm is not installed"):
        kernel = product()
    assert kernel.code == "ptx"
    assert "pip install nvidia-cuda-nvdisasm" in kernel.why_ptx
    assert product().code == "ptx"  # and warns no more, which would be an error
    assert product(machine_code=False).code == "ptx"
    with pytest.raises(ws.InputError, match="machine_code = True: nvdisasm is not installed; pip"):
        product(machine_code=True)


def test_the_disassembler_of_triton_is_found(monkeypatch):
    monkeypatch.setattr(disassembly, "nvidia_packages", lambda: ())
    monkeypatch.setenv("PATH", "")
    disassembly.find_nvdisasm.cache_clear()
    try:
        found = disassembly.find_nvdisasm()
    finally:
        disassembly.find_nvdisasm.cache_clear()
    assert found is not None
    assert found.endswith("nvdisasm")


def test_an_instruction_that_is_not_executed_means_ptx(monkeypatch):
    """As for a kernel whose machine code has one: the listing gets it here."""

    def strange(*arguments):
        return listing_of(*arguments).replace(" HMMA.16816.F32 ", " HMMQ.16816.F32 ", 1)

    listing_of = machine_code.listing_of
    monkeypatch.setattr(machine_code, "listing_of", strange)
    machine_code._listing.cache_clear()
    try:
        kernel = product()
        assert kernel.code == "ptx"
        assert "HMMQ" in kernel.why_ptx
        assert kernel.launch(4).code == "ptx"
        with pytest.raises(ws.InputError, match=r"machine_code = True: .*HMMQ(.|\n)*=None runs"):
            product(machine_code=True)
    finally:
        machine_code._listing.cache_clear()


def test_tune_says_what_was_timed():
    x, out = ws.cuda.array(singles(1, 512)), ws.cuda.zeros(512)
    tables = [
        ws.triton.tune(
            *(kernels.add, 2, (x, x, out, 512), [{"BLOCK": 256}, {"BLOCK": 60}], "a100"),
            simulator=False,
            machine_code=wants,
        )
        for wants in (None, True, False)
    ]
    for table, code in zip(tables, ("sm_80", "sm_80", "ptx"), strict=True):
        assert table["code"][0] == code
        assert pd.isna(table["code"][1])  # it does not compile
    assert tables[0]["time_us"][0] == tables[1]["time_us"][0] != tables[2]["time_us"][0]
