"""The samples of the CUDA toolkit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .program import NVCC, Program

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
    "Boost": re.compile(r"^interval$"),
}
_PASSED = r"PASS|[Ss]uccess|[Cc]orrect|Results match|matched|[Tt]est passed|OK\b|completed|\b0 Fail"
#: Smaller inputs than the samples' own, where they take arguments.
_ARGUMENTS = {
    "FDTD3d": "--dimx=96 --dimy=96 --dimz=96 --timesteps=1",
    "MersenneTwisterGP11213": "--count=24000",
    "SobolQRNG": "--vectors=4096 --dimensions=16",
    "UnifiedMemoryPerf": "-kernel-iterations=1",
    "cdpAdvancedQuicksort": "--size=10000",
    "eigenvalues": "--matrix-size=512 --iters-timing=1",
    "globalToShmemAsyncCopy": "-wA=128 -hA=128 -wB=128 -hB=128",
    "matrixMul": "-wA=64 -hA=64 -wB=64 -hB=64",
    "matrixMulCUBLAS": "sizemult=1",
    "radixSortThrust": "-n=16384 -iterations=1",
    "reduction": "--n=65536",
    "reductionMultiBlockCG": "--n=65536",
    "threadFenceReduction": "--n=65536",
    "transpose": "-dimX=128 -dimY=128",
}
_TILES = (r"define ([MNK]_TILES) +\d+", r"define \1 16")
#: Constants of their sources that are made smaller: in which file, what is there, what comes there.
_EDITS = {
    "BlackScholes": (
        ("BlackScholes.cu", r"OPT_N += 4000000", "OPT_N = 40000"),
        ("BlackScholes.cu", r"NUM_ITERATIONS = 512", "NUM_ITERATIONS = 1"),
    ),
    "HSOpticalFlow": (("main.cpp", r"nSolverIters = 500", "nSolverIters = 5"),),
    "alignedTypes": (("alignedTypes.cu", r"MEM_SIZE += 50000000", "MEM_SIZE = 500000"),),
    "bf16TensorCoreGemm": (("bf16TensorCoreGemm.cu", *_TILES),),
    "binomialOptions": (("binomialOptions_common.h", r"MAX_OPTIONS 1024", "MAX_OPTIONS 64"),),
    "conjugateGradient": (("main.cpp", r"N = 1048576", "N = 4096"),),
    "conjugateGradientCudaGraphs": (
        ("conjugateGradientCudaGraphs.cu", r"N  = 1048576", "N = 4096"),
    ),
    "conjugateGradientMultiBlockCG": (
        ("conjugateGradientMultiBlockCG.cu", r"N  = 1048576", "N = 4096"),
    ),
    "conjugateGradientUM": (("main.cpp", r"N  = 1048576", "N = 4096"),),
    "convolutionSeparable": (("main.cpp", r"(image[WH] += )3072", r"\g<1>384"),),
    "convolutionTexture": (("main.cpp", r"(image[WH] += )3072", r"\g<1>384"),),
    "cudaCompressibleMemory": (("saxpy.cu", r"n = 10485760", "n = 1048576"),),
    "cudaTensorCoreGemm": (("cudaTensorCoreGemm.cu", *_TILES),),
    "dmmaTensorCoreGemm": (("dmmaTensorCoreGemm.cu", *_TILES),),
    "fastWalshTransform": (("fastWalshTransform.cu", r"log2Data += 23", "log2Data = 16"),),
    "globalToShmemAsyncCopy": (("globalToShmemAsyncCopy.cu", r"nIter = 100", "nIter = 1"),),
    "graphMemoryNodes": (("graphMemoryNodes.cu", r"NUM_ELEMENTS +8000000", "NUM_ELEMENTS 100000"),),
    "histogram": (("main.cpp", r"byteCount += 64 \* 1048576", "byteCount = 1048576"),),
    "immaTensorCoreGemm": (("immaTensorCoreGemm.cu", *_TILES),),
    "jacobiCudaGraphs": (("jacobi.h", r"N_ROWS 512", "N_ROWS 128"),),
    "lineOfSight": (("lineOfSight.cu", r"numIterations = 100", "numIterations = 1"),),
    "matrixMul": (("matrixMul.cu", r"nIter = 300", "nIter = 3"),),
    "mergeSort": (("main.cpp", r"N += 4 \* 1048576", "N = 262144"),),
    "quasirandomGenerator": (("quasirandomGenerator.cpp", r"N = 1048576", "N = 32768"),),
    "reduction": (("reduction.cpp", r"testIterations = 100", "testIterations = 1"),),
    "reductionMultiBlockCG": (
        ("reductionMultiBlockCG.cu", r"testIterations = 100", "testIterations = 1"),
    ),
    "scan": (("main.cpp", r"iCycles = 100", "iCycles = 1"),),
    "simpleCUBLAS_LU": (("simpleCUBLAS_LU.cpp", r"BATCH_SIZE 10000", "BATCH_SIZE 100"),),
    "simpleCudaGraphs": (("simpleCudaGraphs.cu", r"1 << 24", "1 << 18"),),
    "simpleMultiCopy": (("simpleMultiCopy.cu", r"N          = 1 << 22", "N = 1 << 16"),),
    "simplePitchLinearTexture": (
        ("simplePitchLinearTexture.cu", r"(n[xy]) = 2048", r"\1 = 256"),
        ("simplePitchLinearTexture.cu", r"NUM_REPS 100", "NUM_REPS 5"),
    ),
    "simpleStreams": (("simpleStreams.cu", r"n += 16 \* 1024 \* 1024", "n = 256 * 1024"),),
    "sortingNetworks": (("main.cpp", r"N += 1048576", "N = 65536"),),
    "tf32TensorCoreGemm": (("tf32TensorCoreGemm.cu", *_TILES),),
    "transpose": (("transpose.cu", r"NUM_REPS 100", "NUM_REPS 1"),),
    "warpAggregatedAtomicsCG": (
        ("warpAggregatedAtomicsCG.cu", r"NUM_ELEMS +10000000", "NUM_ELEMS 100000"),
    ),
}
#: Kernels of theirs are empty before compute capability 8.0, or the sample refuses to run.
_AMPERE = re.compile(r"bf16Tensor|dmmaTensor|tf32Tensor|globalToShmemAsyncCopy")


def cuda_samples(suites: Path) -> Iterator[Program]:
    """Yield the programs of https://github.com/NVIDIA/cuda-samples."""
    root = suites / "cuda-samples"
    common = str(root / "Common")
    for folder in sorted((root / "Samples").glob("[0-6]_*/*")):
        sources = sorted(
            str(path.relative_to(folder))
            for place in (folder, folder / "src")
            for path in place.glob("*")
            if path.suffix in (".cu", ".cpp", ".c")
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
        if "-lcusolver" in libraries and "-lcusparse" not in libraries:
            libraries.append("-lcusparse")  # cuSOLVER itself needs it
        flags = ["-std=c++17", "-I", common, "-I", "inc", "-Xcompiler", "-fopenmp"]
        flags += ["-Xlinker", "--as-needed"]
        fatbins = tuple(
            [*NVCC[:1], "-fatbin", "-arch=sm_75", "-I", common, "-o", f"{Path(s).stem}64.fatbin", s]
            for s in sources
            if s.endswith("_kernel.cu") and "cuModuleLoad" in text
        )
        target = "compute_80" if _AMPERE.search(folder.name) else "compute_75"
        if "cdp" in folder.name:
            flags += ["-rdc=true", "-lcudadevrt"]
            target = "sm_75"  # nvlink takes no PTX
        compiler = [option.replace("compute_75", target) for option in NVCC]
        # One sample compiles PTX itself, from a file.
        for_jit = tuple(
            [*NVCC[:1], "-ptx", "-arch=compute_75", "-o", f"{Path(s).stem}64.ptx", s]
            for s in sources
            if f"{Path(s).stem}64.ptx" in text
        )
        build = [*compiler, *flags, "-o", "program", *sources, *libraries]
        yield Program(
            f"{folder.parent.name[0]}/{folder.name}",
            folder,
            ".",
            (*fatbins, *for_jit, build),
            ("./program", *_ARGUMENTS.get(folder.name, "").split()),
            _PASSED,
            needs,
            _EDITS.get(folder.name, ()),
        )
