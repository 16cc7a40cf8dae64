"""The tests of PTX instructions once more, with the machine code that ptxas makes of each form.

What a form must give is said there, by plain definitions; here other instructions compute it.
"""

import dataclasses
import importlib.util
import itertools
import types
from pathlib import Path

import pandas as pd
import pytest
from tested_forms import forms_are_executed, forms_by_test  # noqa: F401

import machine_forms
import ptx_forms
import warpstack as ws
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or find_ptxas() is None, reason="ptxas or nvdisasm is not installed"
)

PTX_TESTS = Path(__file__).resolve().parents[1] / "ptx"
#: Tests of messages, and of what is not executed as machine code.
LEFT_OUT = {
    "test_other_modifiers_are_errors",  # of PTX
    "test_redux_of_floats",  # of sm_100a, whose tests have it
    "test_direct_and_recursive_calls",  # counts opcodes of PTX
    "test_endless_recursion_is_an_error",
    "test_vprintf",
    "test_assertfail",
    "test_malloc_and_free",
    "test_cp_async_lanes_that_read_different_sizes",  # ptxas copies all bytes or none
    "test_param_space_of_the_kernel",  # addresses of parameters
    "test_brx_idx",  # has a message of PTX
    "test_indirect_calls",  # the same, and lanes that do not meet behind the call
    "test_special_registers",  # some have other values
    "test_vote_activemask_elect",  # has elect, which sm_80 has not
    "test_atomics",  # has bf16, which sm_80 has not
    "test_dynamic_shared_memory",  # has a message of PTX
    "test_texture_references_and_queries",  # machine code has no references
}


#: Opcodes that ptxas makes of the forms and that are not executed yet: no others may be refused.
MISSING = {"F2FP", "MUFU"}


def module_named(name):
    spec = importlib.util.spec_from_file_location(name, PTX_TESTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases_of(function):
    """Return the arguments that a test's parametrization gives it, a dictionary each."""
    axes = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            names = [name.strip() for name in names]
            values = [v if len(names) > 1 else (v,) for v in mark.args[1]]
            axes.append([dict(zip(names, v, strict=True)) for v in values])
    return [{k: v for part in parts for k, v in part.items()} for parts in itertools.product(*axes)]


def collect(name):
    module = module_named(name)
    for label, function in vars(module).items():
        if label.startswith("test_") and label not in LEFT_OUT:
            for case in cases_of(function):
                text = "-".join([label.removeprefix("test_"), *map(str, case.values())])
                yield pytest.param(module, function, case, id=text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "case"),
    [*collect("test_ptx_instructions"), *collect("test_ptx_floats")],
)
def test_arithmetic(module, function, case, monkeypatch):
    tried = []
    monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for("sm_80"))

    def check(forms, count=512):
        forms = machine_forms.possible(forms, "sm_80", ptx_forms.kernel_text)
        forms = machine_forms.executed(forms, ptx_forms.kernel_text, MISSING)
        changed = {}
        for label, form in forms.items():
            extra = {**form.extra, **machine_forms.LIMITED.get(label, {})}
            same = machine_forms.same_but_for_nan(form)
            changed[label] = dataclasses.replace(form, same=same, extra=extra)
        tried.extend(forms)
        if forms:
            ptx_forms.check(changed, count)

    monkeypatch.setattr(module, "check", check)
    function(**case)
    assert tried or "bf16" in case.values()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "case"),
    [
        *collect("test_ptx_memory"),
        *collect("test_ptx_machine"),
        *collect("test_ptx_textures"),
    ],
)
def test_memory_and_warps(module, function, case, monkeypatch):
    monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for("sm_80"))
    function(**case)


matrices = module_named("test_ptx_matrix")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        (name, kinds)
        for name, kinds in matrices.FORMS
        # sm_80 has one type for both accumulators, one shape of f64, and no floats of 8 bits.
        if kinds[0] == kinds[3] and (kinds[1] != "f64" or name == "m8n8k4") and kinds[1][0] != "e"
    ],
    ids=lambda v: v if v[0] == "m" else ".".join(v),
)
def test_matrices(name, kinds, monkeypatch):
    check_matrices("sm_80", name, kinds, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds"),
    [(name, kinds) for name, kinds in matrices.FORMS if kinds[1][0] == "e"],
    ids=lambda v: v if v[0] == "m" else ".".join(v),
)
def test_matrices_of_small_floats(name, kinds, monkeypatch):
    check_matrices("sm_120a", name, kinds, monkeypatch)


def check_matrices(arch, name, kinds, monkeypatch):
    plain = matrices.run_mma

    def run_mma(opcode, *arguments):
        out, trace = plain(opcode, *arguments)
        table = trace.instructions
        names = set(table[table.op_class == "tensor"].opcode)
        assert names
        assert all(found[:4] in ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA") for found in names)
        rows = pd.DataFrame({"op_class": ["tensor"], "opcode": [opcode]})  # what PTX's trace has
        return out, types.SimpleNamespace(instructions=rows)

    monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(arch))
    monkeypatch.setattr(matrices, "run_mma", run_mma)
    matrices.test_mma(name, kinds)
