"""The public interface: names that are a contract, documentation, examples, files of the package."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import warpstack as ws

CONTRACT = {
    ws: [
        "load",
        "save",
        "gpu",
        "gpus",
        "Gpu",
        "App",
        "KernelTrace",
        "simulate_caches",
        "interval_profile",
        "IntervalProfile",
        "models",
        "predict",
        "patterns",
        "plot",
        "search",
        "workloads",
    ],
    ws.KernelTrace: [
        "name",
        "grid",
        "block",
        "shared_memory_bytes",
        "registers_per_thread",
        "num_warps",
        "num_instructions",
        "num_memory_instructions",
        "dpki",
    ],
    ws.Gpu: ["replace", "from_gpgpusim"],
    ws.MemoryProfile: ["totals", "per_pc"],
    ws.IntervalProfile: ["from_arrays"],
    ws.models: ["names", "evaluate"],
    ws.plot: ["cpi_stack", "axis_stacks", "heat_map", "curves", "speedup", "pareto"],
    ws.patterns: ["strided"],
    ws.workloads: ["names", "get", "load", "run", "check"],
}

GPU_FIELDS = [
    "num_sms",
    "clock_ghz",
    "issue_width",
    "scheduler",
    "warps_per_sm",
    "threads_per_sm",
    "blocks_per_sm",
    "registers_per_sm",
    "shared_memory_kib_per_sm",
    "l1_size_kib",
    "l1_ways",
    "l1_line_bytes",
    "l1_sector_bytes",
    "l1_mshrs",
    "l1_latency",
    "l2_size_kib",
    "l2_ways",
    "l2_line_bytes",
    "l2_sector_bytes",
    "l2_slices",
    "l2_latency",
    "dram_latency",
    "noc_bandwidth_gbs",
    "dram_bandwidth_gbs",
]

MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(ws.__path__, "warpstack.")
    if not info.name.endswith(("__main__", "_core"))
]


def test_names():
    for owner, names in CONTRACT.items():
        for name in names:
            assert hasattr(owner, name), (owner, name)
    for field in GPU_FIELDS:
        assert field in ws.Gpu.fields()
    assert {f.name for f in ws.Prediction.__dataclass_fields__.values()} >= {
        "ipc",
        "cpi",
        "cycles",
        "instructions",
        "cpi_stack",
    }


def test_models_of_the_papers():
    assert ws.models.names() == [
        "naive_interval",
        "markov_chain",
        "mt",
        "mt_mshr",
        "gpumech",
        "gpumech_plus",
        "mdm_queue",
        "mdm_mshr",
        "mdm",
        "mdm_cal2019",
        "mwp_cwp",
        "closed_network",
        "interval_simulation",
    ]


def test_gpus_of_the_papers_and_products():
    assert set(ws.gpus()) >= {
        "gpumech-baseline",
        "pascal-mdm",
        "gtx1080",
        "titan-v",
        "rtx2060",
        "qv100",
        "rtx3070",
        "a100",
        "h100-pcie",
        "h200",
    }
    pascal = ws.gpu("pascal-mdm")
    # MDM, Table III.
    assert (pascal.num_sms, pascal.clock_ghz, pascal.warps_per_sm, pascal.threads_per_sm) == (
        28,
        1.4,
        64,
        2048,
    )
    assert (pascal.l1_size_kib, pascal.l1_ways, pascal.l1_mshrs) == (48, 6, 128)
    assert (pascal.l2_size_kib, pascal.l2_slices, pascal.l2_ways, pascal.l2_latency) == (
        3072,
        24,
        8,
        120,
    )
    assert (pascal.noc_bandwidth_gbs, pascal.dram_bandwidth_gbs, pascal.dram_latency) == (
        1050,
        480,
        220,
    )
    assert (pascal.issue_width, pascal.scheduler) == (1, "gto")


@pytest.mark.parametrize("name", ws.gpus())
def test_every_gpu_predicts(name):
    table = ws.predict(ws.patterns.gather(blocks=8), ws.gpu(name), "all")
    assert (table["ipc"] > 0).all()


def public_objects():
    for module in [ws, *MODULES]:
        for name, member in vars(module).items():
            if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(member) or inspect.isclass(member):
                yield f"{module.__name__}.{name}", member
                if inspect.isclass(member):
                    for attribute, value in vars(member).items():
                        if not attribute.startswith("_") and (
                            inspect.isfunction(value) or isinstance(value, (property, classmethod))
                        ):
                            yield f"{module.__name__}.{name}.{attribute}", value


@pytest.mark.parametrize(("name", "member"), list(public_objects()))
def test_everything_public_is_documented(name, member):
    assert inspect.getdoc(member), f"{name} has no docstring"


@pytest.mark.parametrize("module", [ws, *MODULES], ids=lambda m: m.__name__)
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


def test_package_is_typed():
    folder = Path(ws.__file__).parent
    assert (folder / "py.typed").is_file()
    assert (folder / "_core.pyi").is_file()


def test_import_is_light():
    """Plotting loads on first use only: it takes longer than all the rest."""
    source = "import sys, warpstack; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", source], text=True) == "False\n"
