"""The program that measures: its source, and running it on this machine's GPU."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from warpstack.cuda.toolchain import find_nvcc
from warpstack.errors import InputError

__all__ = ["program_source", "run_program"]

_SOURCE = Path(__file__).with_name("calibrate.cu")
#: A run takes some seconds; on a card that is shared or very slow, several times as long.
_MOST_SECONDS = 600


def program_source() -> str:
    """Return the CUDA source of the program."""
    return _SOURCE.read_text(encoding="utf-8")


def run_program(*, quick: bool = False) -> str:
    """Compile the program with nvcc, run it on the first GPU, and return what it prints.

    Parameters
    ----------
    quick
        Whether it does less of everything: a trial, whose numbers mean little.

    Raises
    ------
    InputError
        If there is no nvcc or no GPU, or the program does not come to its end.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise InputError(
            "calibrate: nvcc was not found; install the CUDA toolkit, or write the program with "
            "--source, compile and run it where nvcc and the GPU are, and give its output"
        )
    with tempfile.TemporaryDirectory(prefix="warpstack-") as folder:
        program = Path(folder) / "calibrate"
        command = [nvcc, "-arch=native", "-o", str(program), str(_SOURCE)]
        _run(command, "nvcc does not compile the program")
        command = [str(program), *(["quick"] if quick else [])]
        return _run(command, "the program does not run to its end on this machine's GPU")


def _run(command: list[str], problem: str) -> str:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"calibrate: {problem} within {_MOST_SECONDS} s") from None
    except OSError as error:
        raise InputError(f"calibrate: {problem}: {error.strerror or error}") from None
    if result.returncode != 0:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        said = lines[-1] if lines else f"it ended with status {result.returncode} and no message"
        raise InputError(f"calibrate: {problem}: {said}")
    return result.stdout
