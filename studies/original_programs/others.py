"""The programs of Parboil, Polybench, NVIDIA's samples and GPGPU-Sim's suite."""

from __future__ import annotations

from . import inputs
from .program import Program, Repair

_PARBOIL = "gpu-app-collection/src/cuda/parboil"
_POLYBENCH = "gpu-app-collection/src/cuda/polybench-gpu-1.0"
_SAMPLES = "cuda-samples"
_FDTD = f"{_SAMPLES}/Samples/5_Domain_Specific/FDTD3d"
_RAY = "ispass2009-benchmarks/RAY"

SPMV = Program(
    name="spmv",
    abbreviation="SPMV",
    memory_divergent=True,
    suite="Parboil",
    paper_launches=1,
    folders=(f"{_PARBOIL}/benchmarks/spmv", f"{_PARBOIL}/common"),
    sources=(
        *(f"{_PARBOIL}/benchmarks/spmv/src/cuda/{each}" for each in ("main.cu", "file.cc")),
        f"{_PARBOIL}/benchmarks/spmv/src/cuda/gpu_info.cc",
        f"{_PARBOIL}/benchmarks/spmv/common_src/convert-dataset/convert_dataset.c",
        f"{_PARBOIL}/benchmarks/spmv/common_src/convert-dataset/mmio.c",
        f"{_PARBOIL}/common/src/parboil_cuda.c",
    ),
    includes=(
        f"{_PARBOIL}/common/include",
        f"{_PARBOIL}/benchmarks/spmv/common_src/convert-dataset",
    ),
    flags=("--use_fast_math",),
    make_input=inputs.finite_elements,
    input="the matrix of cubic elements on 128 x 128 squares, 146,689 rows and 3.64 M entries as "
    "Dubcova3; how that one is numbered is not known here",
    arguments=dict.fromkeys(("paper", "small"), ("-i", "matrix.mtx,vector.bin", "-o", "output")),
    repairs=(
        Repair(
            f"{_PARBOIL}/benchmarks/spmv/src/cuda/spmv_jds.h",
            r"texture<float,1> tex_x_float;",
            "",
            "texture references are gone from CUDA 12; this one is not used",
        ),
        Repair(
            f"{_PARBOIL}/benchmarks/spmv/src/cuda/main.cu",
            r"i<50",
            "i<1",
            "one of 50 equal launches, as in Table IV",
        ),
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
    folders=(f"{_PARBOIL}/benchmarks/stencil", f"{_PARBOIL}/common"),
    sources=(
        *(f"{_PARBOIL}/benchmarks/stencil/src/cuda/{each}" for each in ("main.cu", "file.cc")),
        f"{_PARBOIL}/common/src/parboil_cuda.c",
    ),
    includes=(f"{_PARBOIL}/common/include",),
    flags=("--use_fast_math",),
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
    folders=(_POLYBENCH,),
    sources=(f"{_POLYBENCH}/CUDA/2DCONV/2DConvolution.cu",),
    input="4096 x 4096 random points",
    arguments={"paper": (), "small": ()},
    repairs=(
        Repair(
            f"{_POLYBENCH}/CUDA/2DCONV/2DConvolution.cu",
            r"(#define N[IJ]) 4096",
            r"\1 256",
            "the small size; it is set where the program is compiled",
            sizes=("small",),
        ),
    ),
    workload="2d-convolution",
)

FDTD = Program(
    name="fdtd3d",
    abbreviation="FDTD",
    memory_divergent=False,
    suite="SDK",
    paper_launches=1,
    folders=(_FDTD, f"{_SAMPLES}/Common"),
    sources=tuple(
        f"{_FDTD}/src/{each}" for each in ("FDTD3d.cpp", "FDTD3dGPU.cu", "FDTD3dReference.cpp")
    ),
    includes=(f"{_FDTD}/inc", f"{_SAMPLES}/Common"),
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
    folders=(_RAY, f"{_SAMPLES}/Common"),
    sources=tuple(f"{_RAY}/{each}" for each in ("rayTracing.cu", "makebmp.cpp", "EasyBMP.cpp")),
    includes=(_RAY, f"{_SAMPLES}/Common"),
    repairs=(
        Repair(
            f"{_RAY}/rayTracing_kernel.cu",
            r"__global__\s+__device__",
            "__global__",
            "today's compiler takes one of the two",
        ),
    ),
    input="its own scene, 256 x 256 pixels",
    arguments={"paper": ("256", "256"), "small": ("64", "64")},
    workload="ray-tracing",
)

PROGRAMS = (SPMV, STENCIL, CONVOLUTION, FDTD, RAY)
