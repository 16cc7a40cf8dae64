"""Files, lines and inlined calls of instructions, against what nvdisasm says of the same code."""

import os
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from source_cases import CASES
from warpstack.cli import main
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_nvcc, find_ptxas

NVDISASM = find_nvdisasm()
# Entries of the compilers' cache name the files of the run that made them.
pytestmark = [
    pytest.mark.real_compilers,
    pytest.mark.skipif(
        NVDISASM is None or find_ptxas() is None or find_nvcc() is None,
        reason="nvcc, ptxas or nvdisasm is not installed",
    ),
]
HEADING = re.compile(r'\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
ADDRESS = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@\S+ )?\S")


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "main.cu"


@pytest.fixture(scope="module", params=list(CASES))
def case(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("case")
    return write(folder, CASES[request.param])


def said_by_nvdisasm(cubin, kernel):
    """Return, by address, the chain of places that nvdisasm prints, and whether it has just printed it.

    A chain begins with the instruction's own place and ends with that in code that was not inlined.
    nvdisasm does not repeat a chain for code of the same line, even if that was inlined elsewhere.
    """
    text = subprocess.run([NVDISASM, "-gi", cubin], capture_output=True, text=True, check=True)
    found, chain, heads, inside = {}, None, [], False
    for line in text.stdout.splitlines():
        if re.match(r"\s*\.section\s", line):
            inside, chain, heads = f".text.{kernel}," in line, None, []
        elif inside and (head := HEADING.match(line)):
            heads.append((os.path.basename(head[1]), int(head[2])))
        elif inside and (at := ADDRESS.match(line)):
            chain = heads or chain
            found[int(at[1], 16)] = (chain, bool(heads))
            heads = []
    return found


def chains_of(table):
    """Return the chain of places of each row of `KernelTrace.instructions`."""
    rows = zip(table["source_file"], table["source_line"], table["inlined_at"], strict=True)
    return [
        [(os.path.basename(f), line) for f, line in ((file, int(own)), *(c[1:] for c in calls))]
        for file, own, calls in rows
    ]


def traces(module):
    """Return the trace of each kernel of a module."""
    found = {}
    for name in module.kernels:
        out = ws.cuda.array(np.ones(4096, np.float32))
        found[name] = module.kernel(name).launch(
            1, 32, out, ws.cuda.array(np.ones(4096, np.float32)), 32
        )
    return {name: getattr(one, "trace", one) for name, one in found.items()}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_machine_code_has_the_places_of_nvdisasm(case, arch, tmp_path):
    cubin = tmp_path / "k.cubin"
    subprocess.run(
        [find_nvcc(), "-lineinfo", "-cubin", f"-arch={arch}", "main.cu", "-o", str(cubin)],
        cwd=case.parent,
        check=True,
    )
    compared = whole = 0
    for kernel, trace in traces(ws.cuda.load_cubin(cubin)).items():
        said = said_by_nvdisasm(cubin, kernel)
        table = trace.instructions
        for pc, chain in zip(table["pc"], chains_of(table), strict=True):
            if pc not in said or said[pc][0] is None:
                continue
            expected, is_fresh = said[pc]
            assert chain[0] == expected[0], hex(pc)
            compared += 1
            if is_fresh:
                assert chain == expected, hex(pc)
                whole += 1
    assert compared > 5
    assert whole > 2


def test_ptx_and_machine_code_name_the_same_places(case):
    """Each place and chain of machine code that comes from PTX is one of the PTX, with its functions."""
    of_ptx = traces(ws.cuda.compile(case, compiler="nvcc"))
    of_code = traces(ws.cuda.compile(case, compiler="nvcc", machine_code="sm_80"))
    assert of_ptx.keys() == of_code.keys()
    for name, trace in of_code.items():
        known = of_ptx[name].instructions
        chains = {tuple(chain) for chain in chains_of(known)}
        own = {chain[0] for chain in chains}
        table = trace.instructions
        # ptxas may leave out calls, but for the outermost place.
        new = [
            chain
            for chain in chains_of(table)
            if not any(chain[-1] == one[-1] and set(chain) <= set(one) for one in chains)
        ]
        # ptxas gives the first and last instructions the lines of the function's braces.
        assert len(new) <= 0.1 * len(table), new
        places = {chain[0] for chain in chains_of(table)}
        assert len(places & own) >= 0.8 * len(own)
        functions = {call.function for calls in known["inlined_at"] for call in calls}
        assert {c.function for calls in table["inlined_at"] for c in calls} <= functions
        assert all(functions)


@pytest.mark.parametrize("machine_code", [None, "sm_80"])
def test_files_are_where_they_were(case, machine_code):
    module = ws.cuda.compile(case, machine_code=machine_code)
    for trace in traces(module).values():
        for file in trace.source_files:
            if os.path.basename(file.name) == "grammar.y":  # of #line
                continue
            place = case.parent / file.name
            assert place.exists(), file
            if "cuda" not in file.name:
                assert file.bytes == place.stat().st_size, file


def test_saved_traces_and_pickles_keep_them(case, tmp_path):
    import pickle

    kernels = list(traces(ws.cuda.compile(case)).values())
    app = ws.App(kernels)
    ws.save(app, tmp_path / "saved")
    again = ws.load(tmp_path / "saved")
    for one, loaded in zip(app, again, strict=True):
        copy = pickle.loads(pickle.dumps(one))
        for other in (loaded, copy):
            assert other.source_files == one.source_files
            pd.testing.assert_frame_equal(other.instructions, one.instructions)
            assert other.digest == one.digest


class TestLines:
    """The nested case: main.cu calls outer, that inner, and that root twice."""

    @pytest.fixture
    def main_cu(self, tmp_path):
        return write(tmp_path, CASES["nested inlining through three files"])

    @pytest.fixture
    def trace(self, main_cu):
        return traces(ws.cuda.compile(main_cu))["k"]

    @pytest.mark.parametrize("simulate", [False, True])
    @pytest.mark.parametrize("inlined", ["own", "caller"])
    def test_sums(self, trace, inlined, simulate):
        table = ws.lines(trace, "a100", inlined=inlined, simulate=simulate)
        rows = ws.lines(trace, "a100", inlined=inlined, simulate=simulate, per_instruction=True)
        for one in (table, rows):
            assert one["share"].sum() == pytest.approx(1)
            assert one["executions"].sum() == trace.num_instructions
        if simulate:
            assert table["time_us"].sum() == pytest.approx(ws.simulate(trace, "a100").time_us)
        else:
            predicted = ws.predict(trace, "a100")["time_us"].iloc[0]
            assert table["time_us"].sum() == pytest.approx(predicted)
        assert not table.duplicated(["file", "source_line"]).any()

    def test_a_calling_line_has_both_sums(self, trace):
        table = ws.lines(trace, "a100", simulate=False)
        table["file"] = table["file"].map(os.path.basename)
        table = table.set_index(["file", "source_line"])
        inner = [("inner.cuh", line) for line in (3, 6, 7)]
        outer = [("outer.cuh", line) for line in (4, 5)]
        own = {place: table["share"].get(place, 0.0) for place in inner + outer}
        # By hand: outer's line 4 calls all of inner.cuh, and main's line 4 calls both files.
        both = table["share_with_inlined"]
        assert both[("outer.cuh", 4)] == pytest.approx(
            own[("outer.cuh", 4)] + sum(own[place] for place in inner)
        )
        assert both[("main.cu", 4)] == pytest.approx(
            table["share"].get(("main.cu", 4), 0.0) + sum(own.values())
        )
        by_caller = ws.lines(trace, "a100", simulate=False, inlined="caller")
        assert set(by_caller["file"].map(os.path.basename)) <= {"", "main.cu"}
        called = by_caller.set_index("source_line")["share"]
        assert called[4] == pytest.approx(both[("main.cu", 4)])
        assert np.allclose(by_caller["share_with_inlined"], by_caller["share"])

    def test_wrong_choice(self, trace):
        with pytest.raises(ws.InputError, match="inlined"):
            ws.lines(trace, "a100", inlined="outer")

    def test_listing_has_the_text_of_each_file(self, main_cu, capsys):
        arguments = ["lines", str(main_cu), "--gpu", "a100", "--no-simulate", "--wide"]
        assert main([*arguments, "--launch", "k<<<1, 32>>>(float[4096], float[4096], 32)"]) == 0
        text = capsys.readouterr().out
        sections = re.split(r"^(\S+):$", text.split("The lines that")[0], flags=re.MULTILINE)
        by_file = dict(zip(sections[1::2], sections[2::2], strict=True))
        assert set(by_file) == {"main.cu", "outer.cuh", "inner.cuh"}
        assert "return sqrtf(x);" in by_file["inner.cuh"]
        assert "float y = inner(x) + 1.0f;" in by_file["outer.cuh"]
        assert "a[i] = outer(b[i], n);" in by_file["main.cu"]
        assert "sqrtf" not in by_file["main.cu"] + by_file["outer.cuh"]

    def test_report_names_files(self, trace, tmp_path):
        ws.report(trace, "a100", tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text()
        assert "<td>inner.cuh</td>" in text
        assert "return sqrtf(x);" in text


class TestDoubts:
    @pytest.fixture
    def files(self, tmp_path):
        return write(tmp_path, CASES["a kernel of an included file"])

    def listed(self, trace, files, tmp_path, capsys, *more):
        ws.save(ws.App([trace]), tmp_path / "saved", overwrite=True)
        arguments = ["lines", str(tmp_path / "saved"), "--gpu", "a100", "--no-simulate", *more]
        assert main(arguments) == 0
        return capsys.readouterr()

    def test_the_text_is_that_of_the_included_file(self, files, tmp_path, capsys):
        trace = traces(ws.cuda.compile(files))["k"]
        said = self.listed(trace, files, tmp_path, capsys)
        assert "a[i] = b[i] * 2.0f;" in said.out
        assert "nothing else is here" not in said.out
        assert "warning" not in said.err

    def test_a_file_without_instructions(self, files, tmp_path, capsys):
        trace = traces(ws.cuda.compile(files))["k"]
        other = tmp_path / "other"
        other.mkdir()
        (other / "other.cu").write_text("// other\n")
        (files.parent / "kernel.cuh").rename(other / "kernel.cuh")
        said = self.listed(trace, files, tmp_path, capsys, "--source", str(other / "kernel.cuh"))
        assert "a[i] = b[i] * 2.0f;" in said.out
        assert "warning" not in said.err

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("#pragma once\n", "had"),
            (None, "was changed after it was compiled"),
        ],
    )
    def test_a_changed_file(self, files, tmp_path, capsys, text, words):
        trace = traces(ws.cuda.compile(files))["k"]
        header = files.parent / "kernel.cuh"
        if text is not None:
            header.write_text(text)
        later = header.stat().st_mtime + 100
        os.utime(header, (later, later))
        assert words in " ".join(self.listed(trace, files, tmp_path, capsys).err.split())

    def test_lines_beyond_the_end(self, files, tmp_path, capsys):
        """A trace of a file without a size: of PTX that another program compiled."""
        ptx = ws.cuda.compile(files).ptx
        ptx = re.sub(r'(\.file\s+\d+ )".*/(kernel.cuh)".*', r'\1"\2"', ptx)
        trace = traces(ws.cuda.compile(ptx))["k"]
        short = tmp_path / "short" / "kernel.cuh"
        short.parent.mkdir()
        short.write_text("#pragma once\n")
        said = self.listed(trace, files, tmp_path, capsys, "--source", str(short))
        assert "the file ends after line 1" in " ".join(said.err.split())
