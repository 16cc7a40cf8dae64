"""The programs of Parboil, Polybench, NVIDIA's samples and GPGPU-Sim's suite."""

from __future__ import annotations

from . import inputs
from .program import Program

_PARBOIL = "gpu-app-collection/src/cuda/parboil"
_POLYBENCH = "gpu-app-collection/src/cuda/polybench-gpu-1.0"
_FDTD = "cuda-samples/Samples/5_Domain_Specific/FDTD3d"
_RAY = "ispass2009-benchmarks/RAY"
_PARBOIL_C = "../../common/src/parboil_cuda.c"
_PARBOIL_BUILD = "`--use_fast_math`"
_COMMON = "the headers in cuda-samples/Common"

SPMV = Program(
    name="spmv",
    abbreviation="SPMV",
    memory_divergent=True,
    suite="Parboil",
    paper_launches=1,
    folder=f"{_PARBOIL}/benchmarks/spmv",
    sources=(
        *("src/cuda/main.cu", "src/cuda/file.cc", "src/cuda/gpu_info.cc"),
        "common_src/convert-dataset/convert_dataset.c",
        "common_src/convert-dataset/mmio.c",
        _PARBOIL_C,
    ),
    build=_PARBOIL_BUILD,
    make_input=inputs.finite_elements,
    input="the matrix of cubic elements on 128 x 128 squares, 146,689 rows and 3.64 M entries as "
    "Dubcova3; how that one is numbered is not known here",
    arguments=dict.fromkeys(("paper", "small"), ("-i", "matrix.mtx,vector.bin", "-o", "output")),
    changes=(
        "the texture reference `tex_x_float` is taken away: these are gone from CUDA 12, and it is "
        "not used",
        "one of 50 equal launches, as in Table IV",
    ),
    options=("--on-fault", "continue"),
    why_options="padded entries have the column -1",
    workload="spmv",
)

STENCIL = Program(
    name="stencil",
    abbreviation="ST",
    memory_divergent=False,
    suite="Parboil",
    paper_launches=1,
    folder=f"{_PARBOIL}/benchmarks/stencil",
    sources=("src/cuda/main.cu", "src/cuda/file.cc", _PARBOIL_C),
    build=_PARBOIL_BUILD,
    make_input=inputs.volume,
    input="512 x 512 x 64 random points, one step",
    arguments={
        "paper": ("-i", "volume.bin", "-o", "output", "--", "512", "512", "64", "1"),
        "small": ("-i", "volume.bin", "-o", "output", "--", "64", "64", "8", "1"),
    },
    workload="stencil",
)

CONVOLUTION = Program(
    name="2d-convolution",
    abbreviation="2DCONV",
    memory_divergent=False,
    suite="Polybench",
    paper_launches=1,
    folder=_POLYBENCH,
    sources=("CUDA/2DCONV/2DConvolution.cu",),
    input="4096 x 4096 random points",
    arguments={"paper": (), "small": ()},
    small_changes=("`NI` and `NJ` are 256: the size is set where the program is compiled",),
    workload="2d-convolution",
)

FDTD = Program(
    name="fdtd3d",
    abbreviation="FDTD",
    memory_divergent=False,
    suite="SDK",
    paper_launches=1,
    folder=_FDTD,
    sources=("src/FDTD3d.cpp", "src/FDTD3dGPU.cu", "src/FDTD3dReference.cpp"),
    build=_COMMON,
    input="376 x 376 x 96 points (its default is 376 in z, too), one step",
    arguments={
        "paper": ("--dimx=376", "--dimy=376", "--dimz=96", "--timesteps=1"),
        "small": ("--dimx=96", "--dimy=96", "--dimz=96", "--timesteps=1"),
    },
    workload="fdtd3d",
)

RAY = Program(
    name="ray-tracing",
    abbreviation="RAY",
    memory_divergent=False,
    suite="GPGPUsim",
    paper_launches=1,
    folder=_RAY,
    sources=("rayTracing.cu", "makebmp.cpp", "EasyBMP.cpp"),
    build=f"{_COMMON}, and `helper_math.h` of them as `cutil_math.h`",
    changes=("`__global__ __device__` is `__global__`: today's compiler takes one of the two",),
    input="its own scene, 256 x 256 pixels",
    arguments={"paper": ("256", "256"), "small": ("64", "64")},
    workload="ray-tracing",
)

PROGRAMS = (SPMV, STENCIL, CONVOLUTION, FDTD, RAY)
