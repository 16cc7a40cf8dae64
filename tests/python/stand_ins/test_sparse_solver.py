"""cuSOLVER's functions for sparse matrices on the stand-in: factorisations, orders, statuses."""

import sys

import pytest

from effort import rounds
from stand_ins import library_runner, sparse_solver_cases

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for cuSOLVER needs Linux"
)
VERSIONS = ("11", "12")


@pytest.mark.parametrize("seed", range(4))
def test_solutions_fulfil_their_systems(tmp_path, seed):
    plan, memory, checks = sparse_solver_cases.cases(seed, rounds(252))
    version = VERSIONS[seed % 2]
    names = [f"libcusolver.so.{version}", f"libcusparse.so.{version}", "libcudart.so.12"]
    found, said = library_runner.run_client(
        tmp_path, "cusolverSpCreate", plan, memory, ",".join(names)
    )
    library_runner.check_cases(found, plan, checks, said)


def test_all_functions_are_tried():
    plan, _, _ = sparse_solver_cases.cases(0, 252)
    names = {step[0] for each in plan for step in each["steps"]}
    both = ["csrlsvqr", "csrlsvchol", "csreigvsi", "csrcholFactor", "csrcholSolve", "csrqrSetup"]
    for routine in (*both, "csrqrFactor", "csrqrSolve", "csrqrZeroPivot", "csrcholZeroPivot"):
        for where in ("", "Host"):
            assert any(f"cusolverSp{letter}{routine}{where}" in names for letter in "SDCZ"), routine
    for routine in ("csrlsvlu", "csrluFactor", "csrluSolve", "csrluExtract", "csrluZeroPivot"):
        assert any(f"cusolverSp{letter}{routine}Host" in names for letter in "SDCZ"), routine
    for name in ("symrcm", "symmdq", "symamd", "metisnd", "perm", "issym"):
        assert f"cusolverSpXcsr{name}Host" in names
    assert "cusolverRfSolve" in names
    assert any(f"cusolverSp{letter}csrqrsvBatched" in names for letter in "SDCZ")
