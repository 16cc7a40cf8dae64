"""Suites of small programs: PolyBench, llm.c, SHOC, Rodinia and Pannotia."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from original_programs import inputs

from .program import NVCC, OLD_NAMES, Program

#: Sizes in sources, and smaller ones.
_POLYBENCH_SIZES = (
    (r"(define +(?:M|N[IJKLMXY]?)) +\d+", r"\1 256"),
    (r"(define +N[PQR]) +\d+", r"\1 64"),
    (r"(define +(?:TMAX|TSTEPS)) +\d{2,}", r"\1 10"),
)
_LLM_SIZES = (
    (r"\bB = (4|8|32)\b", "B = 2"),
    (r"\bT = 1024\b", "T = 64"),
    (r"\bV = \d{5}\b", "V = 1024"),
    (r"repeat_times = \d+", "repeat_times = 1"),
    (r"int L = 12\b", "int L = 1"),
)


def _found(source: Path, edits: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str, str], ...]:
    """Return those edits that apply to a source."""
    text = source.read_text("utf-8", "replace")
    return tuple((source.name, old, new) for old, new in edits if re.search(old, text))


def polybench(suites: Path) -> Iterator[Program]:
    """Yield CUDA of https://github.com/sgrauerg/polybenchGpu, with inputs of 256 x 256 values."""
    root = suites / "polybenchGpu"
    for source in sorted((root / "CUDA").glob("*/*.cu")):
        # The smallest inputs of the suite have 2048 x 2048 values.
        header = next(source.parent.glob("*.cuh"), source)
        edits = _found(header, _POLYBENCH_SIZES)
        flags = ["-DPOLYBENCH_TIME", "-DRUN_ON_CPU", "-I", "../../common"]
        command = [*NVCC, *OLD_NAMES, *flags, "-o", "program", source.name]
        folder = str(source.parent.relative_to(root))
        wanted = r"Percent: 0\b|misses: 0\b"
        yield Program(source.stem, root, folder, (command,), ("./program",), wanted, edits=edits)


def llm(suites: Path) -> Iterator[Program]:
    """Yield the programs in dev/cuda of https://github.com/karpathy/llm.c, each with its first kernel.

    Batches, sequences and vocabularies are smaller than in the sources, and launches are not
    repeated for timing.
    """
    root = suites / "llm.c"
    for source in sorted((root / "dev" / "cuda").glob("*.cu")):
        command = [*NVCC, "--use_fast_math", "-std=c++17", "-Xcompiler", "-fopenmp"]
        command += ["-o", "program", source.name, "-lcublas", "-lcublasLt"]
        needs = "several GPUs or processes" if source.stem == "nccl_all_reduce" else ""
        # The first kernel of one is for another precision.
        run = ("./program", "2" if source.stem == "layernorm_backward" else "1")
        channels = ((r"\b(O?C) = 768", r"\1 = 192"),) if source.stem == "matmul_forward" else ()
        edits = _found(source, (*_LLM_SIZES, *channels))
        said = r"[Rr]esults match|OK"
        yield Program(source.stem, root, "dev/cuda", (command,), run, said, needs, edits)


def shoc(suites: Path) -> Iterator[Program]:
    """Yield those of level 1 of https://github.com/vetter/shoc: size 1, one pass."""
    root = suites / "shoc"
    shared = ["OptionParser", "Option", "ResultDatabase", "Timer", "CTimer", "ProgressBar"]
    more = {
        "bfs": ["Graph"],
        "stencil2d": [
            *("InitializeMatrix2D", "Matrix2DStatics", "Matrix2DFileSupport", "StencilFactory"),
            *("StencilUtil", "SerialStencilUtil", "HostStencil", "HostStencilFactory"),
            "ValidateMatrix2D",
        ],
    }
    for folder in sorted((root / "src" / "cuda" / "level1").glob("*")):
        if not folder.is_dir():
            continue
        own = [
            path.name
            for path in sorted(folder.glob("*.c*"))
            if path.suffix in (".cu", ".cpp") and not path.name.startswith(("tp", "TP", "MPI"))
        ]
        common = [f"../../../common/{name}.cpp" for name in [*shared, *more.get(folder.name, [])]]
        command = [
            *NVCC,
            *OLD_NAMES,
            "-I",
            "../../common",
            "-I",
            "../../../common",
            "-I",
            "../../../../config",
        ]
        command += ["-DHAVE_GETTIMEOFDAY", "-Drestrict=__restrict__", "-o", "program", *own]
        command += ["../../common/main.cpp", *common, "-lcublas"]
        run = ("./program", "-s", "1", "--passes", "1")
        place = str(folder.relative_to(root))
        config = ["sh", "-c", "mkdir -p ../../../../config; touch ../../../../config/config.h"]
        yield Program(
            folder.name, root, place, (config, command), run, r"PASS|passed|Passed|correct"
        )


#: Programs of Rodinia: sources, arguments.
_RODINIA = {
    "b+tree": (
        [
            *("main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "kernel/kernel_gpu_cuda_wrapper_2.cu"),
            *("util/timer/timer.c", "util/num/num.c", "util/cuda/cuda.cu"),
        ],
        ["file", "keys", "command", "commands"],
    ),
    "bfs": (["bfs.cu"], ["graph.txt"]),
    "backprop": (["backprop_cuda.cu", "backprop.c", "facetrain.c", "imagenet.c"], ["1024"]),
    "cfd": (["euler3d.cu"], ["domain"]),
    "gaussian": (["gaussian.cu"], ["-s", "64"]),
    "hotspot": (["hotspot.cu"], ["64", "2", "2", "temperature", "power", "output"]),
    "lavaMD": (
        [
            *("main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "util/num/num.c"),
            *("util/timer/timer.c", "util/device/device.cu"),
        ],
        ["-boxes1d", "2"],
    ),
    "lud/cuda": (["lud.cu", "lud_kernel.cu", "../common/common.c"], ["-s", "64", "-v"]),
    "nw": (["needle.cu"], ["256", "10"]),
    "particlefilter": (
        ["ex_particle_CUDA_naive_seq.cu"],
        ["-x", "32", "-y", "32", "-z", "3", "-np", "256"],
    ),
    "pathfinder": (["pathfinder.cu"], ["1000", "20", "5"]),
    "srad/srad_v2": (["srad.cu"], ["128", "128", "0", "31", "0", "31", "0.5", "2"]),
    "streamcluster": (
        ["streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu"],
        ["3", "6", "16", "512", "512", "100", "none", "output.txt", "1"],
    ),
}
#: What makes the inputs of some, in the small size of the study of the papers' own benchmarks.
_RODINIA_INPUTS = {
    "b+tree": inputs.tree_keys,
    "bfs": inputs.random_graph,
    "cfd": inputs.tetrahedra,
    "hotspot": inputs.chip,
}
#: Of 2000 equal iterations, one.
_RODINIA_EDITS = {"cfd": (("euler3d.cu", "define iterations 2000", "define iterations 1"),)}
_RODINIA_DATA = (
    *("dwt2d", "heartwall", "hotspot3D", "huffman", "hybridsort", "kmeans", "leukocyte"),
    *("mummergpu", "myocyte", "nn", "srad/srad_v1"),
)


def rodinia(suites: Path) -> Iterator[Program]:
    """Yield https://github.com/yuhc/gpu-rodinia: programs whose inputs can be made are tried."""
    root = suites / "gpu-rodinia"
    for name, (sources, arguments) in _RODINIA.items():
        command = [*NVCC, *OLD_NAMES, "-Xcompiler", "-fcommon", "-Xcompiler", "-fopenmp"]
        command += ["-I", ".", "-I", "../common", "-I", str(suites / "cuda-samples" / "Common")]
        command += ["-o", "program", *sources]
        make = _RODINIA_INPUTS.get(name)
        yield Program(
            name,
            root,
            f"cuda/{name}",
            (command,),
            ("./program", *arguments),
            edits=_RODINIA_EDITS.get(name, ()),
            make_input=None if make is None else functools.partial(make, size="small"),
        )
    for name in _RODINIA_DATA:
        yield Program(
            name, root, f"cuda/{name}", (), (), needs="inputs that are not in its repository"
        )


def pannotia(suites: Path) -> Iterator[Program]:
    """Yield Pannotia as https://github.com/accel-sim/gpu-app-collection has it, with a graph of https://github.com/pannotia/pannotia."""
    root = suites / "gpu-app-collection" / "src" / "cuda" / "pannotia"
    graph = suites / "pannotia" / "dataset" / "floydwarshall" / "256_16384.gr"
    parser = ["../graph_parser/parse.cpp", "../graph_parser/util.cpp"]
    programs = {
        "bc": ("bc", ["BC.cu", parser[1]], []),
        "color_max": ("color", ["coloring_max.cu", *parser], ["0"]),
        "color_maxmin": ("color", ["coloring_maxmin.cu", *parser], ["0"]),
        "fw": ("fw", ["Floyd-Warshall.cu", "parse.cpp", parser[1]], []),
        "fw_block": ("fw", ["Floyd-Warshall-Block.cu", "parse.cpp", parser[1]], []),
        "mis": ("mis", ["mis.cu", *parser], ["0"]),
        "pagerank": ("pagerank", ["pagerank.cu", *parser], ["0"]),
        "pagerank_spmv": ("pagerank", ["pagerank_spmv.cu", *parser], ["0"]),
        "sssp_csr": ("sssp", ["sssp_csr.cu", *parser], ["0"]),
        "sssp_ell": ("sssp", ["sssp_ell.cu", *parser], ["0"]),
    }
    for name, (folder, sources, arguments) in programs.items():
        command = [*NVCC, *OLD_NAMES, "-I", "../graph_parser", "-o", "program", *sources]
        run = ("./program", str(graph), *arguments)
        yield Program(name, root, folder, (command,), run)
