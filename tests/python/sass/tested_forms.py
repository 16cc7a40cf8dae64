"""Which forms of machine code of sm_80 the tests execute, of those in executed-forms.csv.

    python tests/python/sass/tested_forms.py --write

runs the tests of this folder and writes the list beside this file anew: for each form a test that executes
it, and nothing where no test does. A test that the list names fails once it no longer executes the form:
tests that import `forms_are_executed` are held against the list.
"""

import argparse
import csv
from pathlib import Path

import pytest

import warpstack as ws
from warpstack.cuda.kernel import Kernel

FOLDER = Path(__file__).resolve().parent
LIST = FOLDER / "tested-forms.csv"
ARCHITECTURE = "sm_80"
#: Tests that execute machine code and do not look at what it computes.
WITHOUT_RESULTS = ("test_trace_of_a_workload",)


def name_of(item):
    """Return how the list calls a test."""
    return f"{item.path.name}::{item.name}"


def listed():
    """Return the committed list: {opcode with modifiers: test, or an empty text}."""
    with open(LIST, newline="") as file:
        return dict(csv.reader(file))


def forms_to_test():
    """Return the forms of the architecture that are executed, in the order of their list."""
    with open(LIST.with_name("executed-forms.csv"), newline="") as file:
        return [opcode for arch, opcode, _ in csv.reader(file) if arch == ARCHITECTURE]


def executed_by(module, kernel, trace):
    """Return the forms that a launch executed; without a trace, those of the kernel's code."""
    if trace is None:
        return set(module.instructions(kernel).opcode)
    table = trace.instructions
    return set(table.opcode[table.executions > 0])


@pytest.fixture(scope="session")
def forms_by_test():
    """Return the forms that the list expects of each test."""
    found = {}
    for form, test in listed().items():
        found.setdefault(test, set()).add(form)
    return found


@pytest.fixture(autouse=True)
def forms_are_executed(request, monkeypatch, forms_by_test):
    """Fail a test that the list names for a form and that no longer executes it."""
    launch = Kernel.launch
    forms = set()

    def noting_launch(kernel, *arguments, **options):
        trace = launch(kernel, *arguments, **options)
        module = kernel.module
        if isinstance(module, ws.cuda.MachineModule) and module.target == ARCHITECTURE:
            forms.update(executed_by(module, kernel.name, trace))
        return trace

    monkeypatch.setattr(Kernel, "launch", noting_launch)
    failed = request.session.testsfailed
    yield
    name = name_of(request.node)
    if forms:
        request.node.user_properties += [("test", name), ("forms", sorted(forms))]
    if request.session.testsfailed == failed:  # a test that has failed says enough
        lost = forms_by_test.get(name, set()) - forms
        assert not lost, "run tests/python/sass/tested_forms.py --write"


class Collector:
    """Takes from each test's report the forms that it executed."""

    def __init__(self):
        self.tests = {}

    def pytest_runtest_logreport(self, report):
        """Note the forms of a test that has passed."""
        found = dict(report.user_properties)
        if report.when != "teardown" or "forms" not in found:
            return
        if not found["test"].endswith(WITHOUT_RESULTS):
            self.tests[found["test"]] = set(found["forms"])

    def chosen(self):
        """Return a test for each form: whole workloads last, else the one of fewest forms."""
        order = sorted(
            self.tests, key=lambda t: ("test_workloads" in t, len(self.tests[t]), t), reverse=True
        )
        known = {form: test for test in order for form in self.tests[test]}
        return [(form, known.get(form, "")) for form in forms_to_test()]


def main():
    """Run the tests and print how many forms they execute, and which they do not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the list anew")
    arguments = parser.parse_args()
    collector = Collector()
    pytest.main(["-q", "-p", "no:cacheprovider", str(FOLDER)], plugins=[collector])
    rows = collector.chosen()
    without = [form for form, test in rows if not test]
    print(
        f"{len(rows) - len(without)} of {len(rows)} forms of {ARCHITECTURE} are executed by a test"
    )
    print(f"not: {', '.join(without)}")
    if arguments.write:
        with open(LIST, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
