"""The public suites of `suites.py`: which of their programs are tried, how they are built and run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path

#: Architecture and what every program is built with. PTX goes into the binary, as by default.
NVCC = ("nvcc", "-cudart", "shared", "-arch=sm_75", "-O2", "-w")
#: What older suites call, and CUDA 13 has no more.
OLD_NAMES = (
    *("-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DcudaThreadExit=cudaDeviceReset"),
    # Members of cudaDeviceProp that are printed.
    *("-DclockRate=warpSize", "-DmemoryClockRate=warpSize"),
)
#: Samples that need more than CUDA: windows, several GPUs, drivers and libraries of other things.
_OTHER_NEEDS = {
    "graphics": re.compile(
        r"GL$|GL_|D3D|Vulkan|vulkan|EGL|NvSci|nvJPEG|NPP|marchingCubes|Mandelbrot|nbody|particles"
        r"|smoke|volumeRender|oceanFFT|bicubicTexture|bilateralFilter|boxFilter|fluids|SobelFilter"
        r"|recursiveGaussian|postProcess|imageDenoising|bindlessTexture|simpleTexture3D|randomFog"
        r"|volumeFiltering|simpleCUDA2GL|FunctionPointers|NV12"
    ),
    "several GPUs or processes": re.compile(
        r"P2P|p2p|MultiGPU|MultiDevice|MGPU|IPC|MPI|topologyQuery"
    ),
    "NVRTC at run time": re.compile(r"nvrtc|jitLto|JIT$"),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a suite.

    Attributes
    ----------
    name
        In the tables.
    root
        The suite's folder; a copy of it, or of the part that is needed, is where it is built.
    folder
        Where commands run, in the root.
    build
        Commands that build it.
    command
        The program and its arguments.
    verified
        What it says when its own check of the results is passed; empty: it has none.
    needs
        What it needs that is not there; such programs are not tried.
    """

    name: str
    root: Path
    folder: str
    build: tuple[list[str], ...]
    command: tuple[str, ...]
    verified: str = ""
    needs: str = ""


_PASSED = (
    r"PASS|[Ss]uccess|[Cc]orrect|returned OK|Results match|matched|Test passed|test OK|completed"
)


def cuda_samples(suites: Path) -> Iterator[Program]:
    """Yield the programs of https://github.com/NVIDIA/cuda-samples."""
    root = suites / "cuda-samples"
    common = str(root / "Common")
    for folder in sorted((root / "Samples").glob("[0-6]_*/*")):
        sources = sorted(
            path.name for path in folder.glob("*") if path.suffix in (".cu", ".cpp", ".c")
        )
        if not sources:
            continue
        text = "".join((folder / name).read_text("utf-8", "replace") for name in sources)
        needs = next((n for n, names in _OTHER_NEEDS.items() if names.search(folder.name)), "")
        libraries = [
            f"-l{library}"
            for library in ("cublas", "cusparse", "cufft", "cusolver", "curand", "nvrtc", "cuda")
            if re.search(rf"#include <{library}[_.]|{library}[A-Z]\w+\(", text)
            or (library == "cuda" and re.search(r"\bcu[A-Z]\w+\(", text))
        ]
        flags = ["-std=c++17", "-I", common, "-Xcompiler", "-fopenmp"]
        if "cdp" in folder.name:
            flags += ["-rdc=true", "-lcudadevrt"]
        fatbins = tuple(
            [*NVCC[:1], "-fatbin", "-arch=sm_75", "-I", common, "-o", f"{Path(s).stem}64.fatbin", s]
            for s in sources
            if s.endswith("_kernel.cu") and "cuModuleLoad" in text
        )
        build = [*NVCC, *flags, "-o", "program", *sources, *libraries]
        yield Program(
            f"{folder.parent.name[0]}/{folder.name}",
            folder,
            ".",
            (*fatbins, build),
            ("./program",),
            _PASSED,
            needs,
        )


def hecbench(suites: Path) -> Iterator[Program]:
    """Yield every sixteenth program of https://github.com/zjin-lcf/HeCBench."""
    root = suites / "HeCBench" / "src"
    for folder in sorted(root.glob("*-cuda"), key=lambda path: path.name.lower())[::16]:
        makefile = folder / "Makefile"
        if not makefile.exists():
            continue
        text = makefile.read_text("utf-8", "replace")
        name = re.search(r"^program\s*=\s*(\S+)", text, re.MULTILINE)
        started = re.search(r"\./\$\(program\)([^\n|]*)", text)
        program = name[1] if name else "main"
        arguments = started[1].split() if started else []
        build = ["make", program, "ARCH=sm_75", "EXTRA_CFLAGS=-cudart shared -w", "-j1"]
        others = set(re.findall(r"\.\./([\w+-]+)-(?:cuda|sycl|omp|hip)", text))
        outside = sorted(others - {folder.name.removesuffix("-cuda")})
        yield Program(
            folder.name.removesuffix("-cuda"),
            folder if not outside and "../" not in text else root,
            "." if not outside and "../" not in text else folder.name,
            (build,),
            (f"./{program}", *arguments),
            r"PASS|[Ss]uccess|[Cc]orrect|match",
            "copies of its neighbours" if outside or "../" in text else "",
        )


def polybench(suites: Path) -> Iterator[Program]:
    """Yield CUDA of https://github.com/sgrauerg/polybenchGpu, with inputs of 128 x 128 values."""
    root = suites / "polybenchGpu"
    for source in sorted((root / "CUDA").glob("*/*.cu")):
        # The smallest inputs of the suite have 2048 x 2048 values.
        sizes = [f"-D{name}=128" for name in ("N", "M", "NI", "NJ", "NK", "NL", "NM", "NX", "NY")]
        sizes += [f"-D{name}=64" for name in ("NP", "NQ", "NR")]
        sizes += [f"-D{name}=10" for name in ("TMAX", "TSTEPS")]
        flags = [*sizes, "-DPOLYBENCH_TIME", "-DRUN_ON_CPU", "-I", "../../common"]
        command = [*NVCC, *OLD_NAMES, *flags, "-o", "program", source.name]
        folder = str(source.parent.relative_to(root))
        wanted = r"Threshold of [\d.]+ Percent: 0\b"
        yield Program(source.stem, root, folder, (command,), ("./program",), wanted)


def llm(suites: Path) -> Iterator[Program]:
    """Yield the programs in dev/cuda of https://github.com/karpathy/llm.c, each with its first kernel."""
    root = suites / "llm.c"
    for source in sorted((root / "dev" / "cuda").glob("*.cu")):
        command = [*NVCC, "--use_fast_math", "-std=c++17", "-Xcompiler", "-fopenmp"]
        command += ["-o", "program", source.name, "-lcublas", "-lcublasLt"]
        needs = "several GPUs or processes" if source.stem == "nccl_all_reduce" else ""
        run = ("./program", "1")
        yield Program(source.stem, root, "dev/cuda", (command,), run, r"Results match|OK", needs)


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
        command += ["-DHAVE_GETTIMEOFDAY", "-o", "program", *own]
        command += ["../../common/main.cpp", *common, "-lcublas"]
        run = ("./program", "-s", "1", "--passes", "1", "--iterations", "1")
        place = str(folder.relative_to(root))
        config = ["sh", "-c", "mkdir -p ../../../../config; touch ../../../../config/config.h"]
        yield Program(
            folder.name, root, place, (config, command), run, r"PASS|passed|Passed|correct"
        )


#: Programs of Rodinia that make their own inputs: sources, arguments.
_RODINIA = {
    "backprop": (["backprop_cuda.cu", "backprop.c", "facetrain.c", "imagenet.c"], ["1024"]),
    "gaussian": (["gaussian.cu"], ["-s", "64"]),
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
_RODINIA_DATA = (
    *(
        "b+tree",
        "bfs",
        "cfd",
        "dwt2d",
        "heartwall",
        "hotspot",
        "hotspot3D",
        "huffman",
        "hybridsort",
    ),
    *("kmeans", "leukocyte", "mummergpu", "myocyte", "nn", "srad/srad_v1"),
)


def rodinia(suites: Path) -> Iterator[Program]:
    """Yield https://github.com/yuhc/gpu-rodinia; programs that make their own inputs are tried."""
    root = suites / "gpu-rodinia"
    for name, (sources, arguments) in _RODINIA.items():
        command = [*NVCC, *OLD_NAMES, "-I", ".", "-I", "../common", "-o", "program", *sources]
        yield Program(name, root, f"cuda/{name}", (command,), ("./program", *arguments))
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


SUITES: dict[str, Callable[[Path], Iterator[Program]]] = {
    "cuda-samples": cuda_samples,
    "HeCBench": hecbench,
    "PolyBench": polybench,
    "llm.c": llm,
    "SHOC": shoc,
    "Rodinia": rodinia,
    "Pannotia": pannotia,
}
