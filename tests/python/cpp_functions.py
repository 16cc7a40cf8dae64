"""Random functions of C++ on the host, as PTX and as machine code: all must give the same.

A source is compiled three times: by g++, where `__device__` and the like are nothing and intrinsics
have plain definitions (cpp_functions.h), and by NVIDIA's compiler to PTX and to machine code. Many
programs are in one source, since compiling takes longer than running. Run as a program, it prints for
each architecture and option how many were tried, refused and different, and the smallest program that
still fails of those that do:

    python tests/python/cpp_functions.py --count 10000 --seed 1
"""

import argparse
import collections
import copy
import ctypes
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import warpstack as ws
from cpp_expressions import FEATURES, SLOTS, WORDS
from cpp_writer import Block, write_program
from warpstack.errors import InputError

ARCHITECTURES = ["ptx", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
OPTIONS = {
    "O3": [],
    "O2": ["-Xptxas=-O2"],
    "O1": ["-Xptxas=-O1"],
    "O0": ["-Xptxas=-O0"],
    "G": ["-G"],
}
THREADS = 32
HEADER = Path(__file__).with_name("cpp_functions.h")
HOST_HEADERS = "#include <alloca.h>\n#include <fenv.h>\n#include <math.h>\n#include <string.h>\n"
#: Limit of a launch, in warp instructions.
STEP_LIMIT = 3_000_000
#: Frames of functions called by address have some hundred bytes each with -G.
STACK_BYTES = 16_384


def find_host_compiler():
    """Return g++ or what stands for it, or None."""
    return shutil.which("g++") or shutil.which("c++")


def without_headers():
    """Return the features that the headers of this machine do not have."""
    from warpstack.cuda.toolchain import _include_folders

    found = any((Path(folder) / "cuda_bf16.h").exists() for folder in _include_folders())
    lacking = () if found else ("half",)
    # NVRTC does not declare it.
    return (*lacking, "alloca") if ws.cuda.compilers()[0] == "nvrtc" else lacking


def source_of(programs, without=()):
    """Return the source of programs by their names."""
    head = "#define NO_HALF\n" if "half" in without else ""
    return head + HEADER.read_text() + "\n".join(p.text(name) for name, p in programs.items())


def inputs(seed):
    """Return what the threads read: half of it edges."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**64, (THREADS, WORDS), dtype=np.uint64)
    edges = [0, 1, 2, 3, 7, 31, 127, 128, 255, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1]
    edges += [2**63 - 1, 2**63, 2**64 - 1, 0x7F800000, 0x7FC00000, 0x3C003C00, 0xFF80, 0x3FF0 << 48]
    small = random.integers(-20, 20, words.shape).astype(np.uint64)
    pick = random.random(words.shape)
    chosen = random.choice(np.array(edges, np.uint64), words.shape)
    return np.where(pick < 0.35, chosen, np.where(pick < 0.55, small, words))


def on_the_host(programs, text, given):
    """Return what each program gives, compiled by g++."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "host.cpp", Path(folder) / "host.so"
        source.write_text(HOST_HEADERS + text)
        command = [find_host_compiler(), "-std=c++17", "-O0", "-fwrapv", "-ffp-contract=off", "-w"]
        command += ["-frounding-math", "-shared", "-fPIC", str(source), "-o", str(library)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr[:3000]
        loaded = ctypes.CDLL(str(library))
    thread = ctypes.c_uint32.in_dll(loaded, "THREAD")
    results = {}
    for name in programs:
        out = np.zeros((THREADS, SLOTS), np.uint64)
        for thread.value in range(THREADS):
            getattr(loaded, name)(
                given[name].ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p)
            )
        results[name] = out
    return results


def form_of(error):
    """Return what a refusal is about, without places."""
    text = str(error).split("\n")[-1] if "does not compile" in str(error) else str(error)
    text = re.sub(r"^.*?(?=machine code at|line \d)", "", text, count=1)
    text = re.sub(r"\bk\d+\w*", "k", text)
    return re.sub(r"0x[0-9a-f]+|\b\d{2,}\b|(?<=line )\d+", "N", text)[:160]


def on_the_device(programs, without, given, arch, options):
    """Return {name: results or InputError} of PTX or of an architecture's machine code."""
    device = ws.cuda.Device(0.5)
    how = {"arch": "sm_80"} if arch == "ptx" else {"machine_code": arch}
    try:
        module = ws.cuda.compile(
            source_of(programs, without),
            device=device,
            options=["--fmad=false", "-w", *options],
            **how,
        )
    except InputError as error:
        if len(programs) == 1:
            return dict.fromkeys(programs, error)
        names, half = list(programs), len(programs) // 2
        results = {}
        for part in (names[:half], names[half:]):
            part = {name: programs[name] for name in part}
            results |= on_the_device(part, without, given, arch, options)
        return results
    results = {}
    for name in programs:
        out = device.zeros((THREADS, SLOTS), np.uint64)
        try:
            with warnings.catch_warnings():  # copies of structures read what lies between fields
                warnings.simplefilter("ignore", ws.cuda.KernelWarning)
                module.kernel(name).launch(
                    1,
                    THREADS,
                    device.array(given[name]),
                    out,
                    stack_bytes=STACK_BYTES,
                    trace=False,
                    step_limit=STEP_LIMIT,
                )
            results[name] = out.to_host()
        except InputError as error:
            results[name] = error
    return results


def compare(programs, runs, without=()):
    """Return {(arch, option): {name: None, InputError or what differs}} of programs by name."""
    given = {name: inputs(program.seed) for name, program in programs.items()}
    expected = on_the_host(programs, source_of(programs, without), given)
    outcomes = {}
    for arch, option in runs:
        outcomes[arch, option] = outcome = {}
        found = on_the_device(programs, without, given, arch, OPTIONS[option])
        for name, result in found.items():
            if isinstance(result, InputError):
                outcome[name] = result
                continue
            wrong = np.argwhere(result != expected[name])
            outcome[name] = None
            if len(wrong):
                thread, slot = wrong[0]
                outcome[name] = (
                    f"{len(wrong)} of {result.size} words differ, first thread {thread}'s out[{slot}]: "
                    f"{result[thread, slot]:#x}, on the host {expected[name][thread, slot]:#x}"
                )
    return outcomes


def smaller(program):
    """Return the programs that lack some statements of one, the largest steps first."""
    sizes = {len(body) for body in program.bodies()}
    found = []
    for length in sorted({n for size in sizes for n in (size, size // 2, 1) if n}, reverse=True):
        for number, body in enumerate(program.bodies()):
            for at in range(0, len(body) - length + 1, length):
                less = copy.deepcopy(program)
                del less.bodies()[number][at : at + length]
                found.append(less)
    for number, body in enumerate(program.bodies()):
        for at, statement in enumerate(body):
            if isinstance(statement, Block):
                for part in range(len(statement.bodies())):  # a block's part in place of it
                    less = copy.deepcopy(program)
                    place = less.bodies()[number]
                    place[at : at + 1] = place[at].bodies()[part]
                    found.append(less)
    for number in range(len(program.functions) - 1):
        less = copy.deepcopy(program)
        del less.functions[number]
        found.append(less)
    return found


def compiles(program, without):
    """Return whether g++ takes a program."""
    command = [find_host_compiler(), "-std=c++17", "-fsyntax-only", "-w", "-x", "c++", "-"]
    text = HOST_HEADERS + source_of({"k0": program}, without)
    return (
        subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode
        == 0
    )


def shrink(program, run, without=(), patience=300.0):
    """Return the smallest program that fails as this one does, differently or refused."""

    def kind_of(outcome):
        return form_of(outcome) if isinstance(outcome, InputError) else outcome is not None

    kind = kind_of(compare({"k0": program}, [run], without)[run]["k0"])
    began, start = time.monotonic(), 0
    while time.monotonic() - began < patience:
        tries = smaller(program)
        if start >= len(tries):
            break
        for at in range(start, len(tries), 16):
            some = tries[at : at + 16]
            named = {f"k{n}": less for n, less in enumerate(some) if compiles(less, without)}
            outcomes = compare(named, [run], without)[run] if named else {}
            failing = [n for n, o in outcomes.items() if kind_of(o) == kind]
            if failing:
                program, start = named[failing[0]], 0
                break
        else:
            break
    return program


def check(count, seed, runs, without=None):
    """Compare programs; return [(seed, run, outcome)] of those that fail."""
    without = without_headers() if without is None else without
    programs = {f"k{n}": write_program(seed + n, without) for n in range(count)}
    failures = []
    for run, outcome in compare(programs, runs, without).items():
        failures += [(seed + int(name[1:]), run, o) for name, o in outcome.items() if o is not None]
    return failures


def main():
    parser = argparse.ArgumentParser(description="compare random functions with the host's")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first program; then one more each"
    )
    parser.add_argument("--batch", type=int, default=50, help="programs of one source")
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES, choices=ARCHITECTURES)
    parser.add_argument("--option", nargs="+", default=list(OPTIONS), choices=list(OPTIONS))
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no further batch"
    )
    parser.add_argument(
        "--every", type=int, default=1, help="of so many pairs of both, a batch tries one"
    )
    parser.add_argument("--shrink", type=int, default=3, help="how many failing programs to shrink")
    parser.add_argument("--without", nargs="+", default=[], choices=FEATURES, help="what none has")
    options = parser.parse_args()
    # PTX is the same for all levels of ptxas.
    runs = [(a, o) for a in options.arch for o in options.option if a != "ptx" or o in ("O3", "G")]
    without = (*without_headers(), *options.without)
    tried, refused, different = (collections.Counter() for _ in range(3))
    forms, failing = {}, {}
    began, done = time.monotonic(), 0
    while done < options.count and time.monotonic() - began < options.seconds:
        count, seed = min(options.batch, options.count - done), options.seed + done
        now = runs[(done // options.batch) % options.every :: options.every]
        for program, run, outcome in check(count, seed, now, without):
            key = form_of(outcome) if isinstance(outcome, InputError) else "different"
            (refused if isinstance(outcome, InputError) else different)[run] += 1
            forms.setdefault(key, collections.Counter())[run[0]] += 1
            if key not in failing or key == "different":
                print(f"program {program}, {' -'.join(run)}: {str(outcome)[:600]}", flush=True)
                failing.setdefault(key, []).append((program, run))
        for run in now:
            tried[run] += count
        done += count
        print(f"{done} programs, {time.monotonic() - began:.0f} s", flush=True)
    print("\n| architecture | option | functions | refused | different |\n|---|---|---:|---:|---:|")
    for run in runs:
        print(
            f"| {run[0]} | `-{run[1]}` | {tried[run]:,} | {refused[run]:,} | {different[run]:,} |"
        )
    for key, counts in forms.items():
        print(f"{sum(counts.values())} x {key}: {dict(counts)}")
    shrunk = [one for found in failing.values() for one in found][: options.shrink]
    for seed, run in shrunk:
        least = shrink(write_program(seed, without), run, without)
        outcome = compare({"k0": least}, [run], without)[run]["k0"]
        print(
            f"\n// program {seed}, {' -'.join(run)}: {outcome}\n{least.text('k0')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
