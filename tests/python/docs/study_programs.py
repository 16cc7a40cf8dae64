"""What several tests of studies need: a program that runs without a compiler."""

import shlex
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).resolve().parents[1] / "stand_ins" / "host_client.py"


@pytest.fixture(name="stand_in_program")
def writer_of_programs():
    """Return a function that writes FOLDER/program: a CUDA program that runs a scenario of `host_client`.

    It first prints its arguments and the files beside which it runs.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("the stand-in for libcudart needs Linux")

    def write(folder, scenario, *lines):
        folder.mkdir(parents=True, exist_ok=True)
        client = shlex.join([sys.executable, str(CLIENT), "libcudart.so.12", scenario])
        said = ('echo "arguments: $*"', 'echo "beside:" *')
        text = "\n".join(("#!/bin/sh", *said, *lines, f"exec {client}", ""))
        program = folder / "program"
        program.write_text(text)
        program.chmod(0o755)

    return write
