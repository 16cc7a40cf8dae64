"""Everything public, called with what does not belong there: one clear line, or it works.

By default a sample of all combinations, the same one each time.
``WARPSTACK_WRONG_ARGUMENTS=all`` tries all of them, ``WARPSTACK_WRONG_ARGUMENTS=SEED`` another sample.
"""

from __future__ import annotations

import inspect
import os
import random
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import public_calls
import pytest
import wrong_values

import warpstack as ws
from effort import rounds
from time_limit import TooSlow, time_limit

CHOICE = os.environ.get("WARPSTACK_WRONG_ARGUMENTS", "")
SEED = int(CHOICE) if CHOICE.isdigit() else 1
#: Combinations of the default run, of each kind.
SAMPLE = rounds(1000)
#: Tables, which most plots draw before they find what is wrong.
TABLES = rounds(40)
#: Seconds that one call may take; most take less than a hundredth.
LIMIT = 20


def problem_of(call: Any) -> str | None:
    """Return what is wrong with what comes out of a call, None if nothing."""
    try:
        with time_limit(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
            if inspect.isgenerator(result):
                list(result)
    except ws.InputError as error:
        return problem_of_message(str(error))
    except ws.workloads.ResultError:
        return None  # documented: outputs that differ
    except TooSlow:
        return f"takes more than {LIMIT} s"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        plt.close("all")
    return None


def problem_of_message(message: str) -> str | None:
    """Return what is wrong with a message, None if nothing."""
    try:
        message.encode()
    except UnicodeEncodeError:
        return f"message cannot be encoded: {message!a}"
    if not message.strip():
        return "empty message"
    if "\n" in message and not any(text in message for text in OF_SEVERAL_LINES):
        return f"message of several lines: {message[:300]!r}"
    if len(message) > 1500:
        return f"message of {len(message)} characters: {message[:200]}"
    if " at 0x" in message:
        return f"message with an address: {message[:300]}"
    if "incompatible function arguments" in message or "Traceback" in message:
        return f"message from within: {message[:300]}"
    return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arguments")


@pytest.fixture(scope="module")
def calls(folder):
    return public_calls.calls(public_calls.Given(folder))


@pytest.fixture(autouse=True)
def elsewhere(folder, monkeypatch):
    """Names of files that are written by chance stay in a folder of the test."""
    monkeypatch.chdir(folder)


def chosen(combinations: list[Any], sample: int) -> list[Any]:
    if CHOICE == "all":
        return combinations
    print(f"WARPSTACK_WRONG_ARGUMENTS={SEED}")
    return random.Random(SEED).sample(combinations, min(sample, len(combinations)))


def report(problems: list[str]) -> None:
    assert not problems, f"{len(problems)} of them:\n" + "\n".join(sorted(problems)[:2000])


def test_everything_public_has_a_call(calls):
    missing = [name for name, _ in public_calls.public_callables() if name not in calls]
    assert not missing, f"add calls of them to public_calls.py: {', '.join(missing)}"


#: Calls that end in an error even so, and what it says.
REFUSED = {
    "warpstack.cuda.kernel.Module.symbol": "variable",
    "warpstack.cuda.kernel.Module.bind_texture": "texture",
    "warpstack.cuda.machine_code.load_cubin": "ELF",
    "warpstack.hardware.description.Gpu.from_gpgpusim": "option",
    "warpstack.cuda.host.trace_program": "",
    "warpstack.traces.patterns.KernelBuilder.build": "no instruction",
    "warpstack.cuda.triton.compile": "",  # without a function; without Triton, first its lack
    "warpstack.models.triton_function.launch": "",
    "warpstack.models.triton_function.TritonFunction": "",
    "warpstack.models.triton_function.TritonFunction.warmup": "",
    "warpstack.models.triton_function.TritonFunction.run": "",
    "warpstack.models.triton.tune": "",
    "warpstack.cuda.numba.compile": "",
    "warpstack.cuda.numba.launch": "",
    "warpstack.models.prediction.unregister": "registered",
    "warpstack.traces.io.unregister": "registered",
    "warpstack.workloads.Session.symbol": "variable",
    "warpstack.plot.sliders.explore": "ipywidgets",
}


@pytest.mark.slow
def test_the_calls_are_valid(calls):
    problems = []
    for name, call in calls.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
            except ws.InputError as error:
                if REFUSED.get(name, "\0") not in str(error):
                    problems.append(f"{name}: {error}")
            except Exception as error:
                problems.append(f"{name}: {type(error).__name__}: {error}")
    plt.close("all")
    report(problems)


#: Work that was asked for; and the messages of several lines, which say what each warp waits for and what
#: a compiler said.
ASKED_FOR = ("warpstack.traces.patterns.", "warpstack.exploration.samples.")
OF_SEVERAL_LINES = ("is not done after max_cycles", "does not compile:")


def positions(call: public_calls.Call) -> Iterator[str]:
    """Yield the arguments of a call that can be replaced."""
    try:
        parameters = inspect.signature(call.function).parameters
    except ValueError:
        return
    for name, parameter in parameters.items():
        if name != "self" and parameter.kind not in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            yield name
    yield from (name for name in call.arguments if name not in parameters)


@pytest.mark.slow
def test_wrong_values(calls, folder):
    values = wrong_values.wrong_values(folder)
    combinations = [
        (call, argument, value)
        for call in calls.values()
        for argument in positions(call)
        for value in values
        if not (value == "2**31" and call.name.startswith(ASKED_FOR))
    ]
    problems = []
    for call, argument, value in chosen(combinations, SAMPLE):
        found = problem_of(lambda c=call, a=argument, v=value: c(**{a: values[v]}))
        if found:
            problems.append(f"{call.name}({argument}={value}): {found}")
    report(problems)


@pytest.mark.slow
def test_damaged_tables(calls):
    arguments = [
        (call, argument, given)
        for call in calls.values()
        for argument, given in call.arguments.items()
        if isinstance(given, pd.DataFrame)
    ]
    combinations = [
        (call, argument, what, make)
        for call, argument, given in chosen(arguments, 4)
        for what, make in wrong_values.damaged_tables(given)
    ]
    problems = []
    for call, argument, what, make in chosen(combinations, TABLES):
        table = make()
        found = problem_of(lambda c=call, a=argument, t=table: c(**{a: t}))
        if found:
            problems.append(f"{call.name}({argument} {what}): {found}")
    report(problems)
