"""Runs library_client.py, and other programs in Python, on the stand-ins."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from warpstack import _core

CLIENT = Path(__file__).parent / "library_client.py"
LIBRARIES = Path(_core.__file__).parent / "lib"


def run_python(*words, **variables):
    environment = {"LD_LIBRARY_PATH": str(LIBRARIES), **variables}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=dict(os.environ, **environment),
        capture_output=True,
        text=True,
        check=False,
    )


def run_client(folder, create, plan, memory, library, **variables):
    """Return the memory after the cases of a plan, case by case, and what was said."""
    files = [folder / name for name in ("plan.json", "memory.npz", "results.npz")]
    files[0].write_text(json.dumps(plan))
    np.savez(files[1], **memory)
    done = run_python(CLIENT, library, create, *files, **variables)
    assert done.returncode == 0, done.stderr
    found = [{} for _ in plan]
    with np.load(files[2]) as saved:
        for name, value in saved.items():
            number, rest = name.split(".", 1)
            found[int(number)][rest] = value
    return found, done.stderr


def check_cases(found, plan, checks, said):
    """Check what `run_client` found: no step has failed, and each case holds what it has to."""
    for number, check in enumerate(checks):
        failed = np.flatnonzero(found[number]["status"])
        assert not failed.size, (number, plan[number]["steps"][failed[0]], said[-500:])
        try:
            check(found[number])
        except AssertionError as error:
            raise AssertionError(f"case {number}: {plan[number]['steps']}: {error}") from error
