"""Which forms of machine code are executed, of those that kernels of public suites use.

    python tests/python/sass/executed_forms.py ../shared/reference/sass-forms.csv --write

writes the list beside this file anew. A form that needs another architecture's operands is tried with
the operands that it has there.
"""

import argparse
import csv
import re
from pathlib import Path

from warpstack import _core

LIST = Path(__file__).with_name("executed-forms.csv")
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
NAN = {"-QNAN": "0xffc00000", "+QNAN": "0x7fc00000"}


def listed_operands(text):
    """Return operands as a listing has them."""
    text = re.sub(r"^(R\d+) (?=0x)", r"\1,", text)  # of RET
    text = text.replace(" ", "").replace(".reuse", "")
    for name, bits in NAN.items():
        text = text.replace(name, bits)
    return text


def problem(arch, opcode, operands):
    """Return why a form is not executed; an empty text if it is."""
    return _core.sass_problem(opcode, listed_operands(operands), int(arch.removeprefix("sm_")))


def forms(path):
    """Return (arch, opcode, operands) of a table of forms."""
    with open(path, newline="") as file:
        return [
            (row["arch"], row["opcode"], row["example_operands"])
            for row in csv.DictReader(file)
            if row["arch"] in ARCHITECTURES
        ]


def executed():
    """Return the committed list."""
    with open(LIST, newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


def main():
    """Print how many forms of each architecture are executed, and those that are not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="sass-forms.csv")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    arguments = parser.parse_args()
    all_forms = forms(arguments.table)
    good = [form for form in all_forms if not problem(*form)]
    for arch in ARCHITECTURES:
        here = [form for form in all_forms if form[0] == arch]
        bad = [form for form in here if form not in good]
        print(f"{arch}: {len(here) - len(bad)} of {len(here)}; not: {', '.join(f[1] for f in bad)}")
    if arguments.write:
        with open(LIST, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(good)


if __name__ == "__main__":
    main()
