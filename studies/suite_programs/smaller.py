"""Suites of small programs: PolyBench, llm.c, SHOC, Rodinia and Pannotia."""

from __future__ import annotations

import functools

from original_programs import inputs

from .program import Program

#: The smallest inputs of the suite have 2048 x 2048 values.
_POLYBENCH_SIZE = "all of M, N, NI to NM and NX, NY 256"
_POLYBENCH = dict.fromkeys(
    (
        *("2DConvolution", "2mm", "3DConvolution", "3mm", "adi", "atax", "bicg", "correlation"),
        *("covariance", "gemm", "gemver", "gesummv", "gramschmidt", "lu", "mvt", "syr2k", "syrk"),
    ),
    _POLYBENCH_SIZE,
) | {
    "doitgen": "NP, NQ and NR 64",
    "fdtd2d": f"{_POLYBENCH_SIZE}, TMAX 10",
    "jacobi1D": f"{_POLYBENCH_SIZE}, TSTEPS 10",
    "jacobi2D": f"{_POLYBENCH_SIZE}, TSTEPS 10",
}
#: Programs of https://github.com/sgrauerg/polybenchGpu.
POLYBENCH = tuple(
    Program(name, f"{name}.cu in CUDA", (), r"Percent: 0\b|misses: 0\b", build=build)
    for name, build in sorted(_POLYBENCH.items())
)

_LLM_ONCE = "repeat_times = 1"
_LLM_SIZE = f"B = 2, T = 64, {_LLM_ONCE}"
_LLM_VOCABULARY = f"{_LLM_SIZE}, V = 1024"
_LLM = {
    "adamw": _LLM_ONCE,
    "attention_backward": _LLM_SIZE,
    "attention_forward": _LLM_SIZE,
    "classifier_fused": _LLM_VOCABULARY,
    "crossentropy_forward": _LLM_VOCABULARY,
    "crossentropy_softmax_backward": _LLM_VOCABULARY,
    "encoder_backward": _LLM_VOCABULARY,
    "encoder_forward": _LLM_VOCABULARY,
    "fused_residual_forward": _LLM_SIZE,
    "gelu_backward": _LLM_SIZE,
    "gelu_forward": _LLM_SIZE,
    "global_norm": f"L = 1, {_LLM_ONCE}",
    "layernorm_backward": _LLM_SIZE,
    "layernorm_forward": _LLM_SIZE,
    "matmul_backward": _LLM_SIZE,
    "matmul_backward_bias": _LLM_SIZE,
    "matmul_forward": f"{_LLM_SIZE}, C = 192, OC = 192 * 4",
    "nccl_all_reduce": "",
    "permute": _LLM_ONCE,
    "residual_forward": _LLM_SIZE,
    "softmax_forward": _LLM_VOCABULARY,
    "trimat_forward": _LLM_SIZE,
}
#: Programs of https://github.com/karpathy/llm.c: each with its first kernel, but for one, whose first is
#: for another precision.
LLM = tuple(
    Program(
        name,
        f"dev/cuda/{name}.cu",
        ("2" if name == "layernorm_backward" else "1",),
        r"[Rr]esults match|OK",
        "several GPUs or processes" if name == "nccl_all_reduce" else "",
        build,
    )
    for name, build in _LLM.items()
)

#: Level 1 of https://github.com/vetter/shoc: size 1, one pass.
SHOC = tuple(
    Program(
        name,
        f"src/cuda/level1/{name}",
        ("-s", "1", "--passes", "1"),
        r"PASS|passed|Passed|correct",
    )
    for name in (
        *("bfs", "fft", "gemm", "md", "md5hash", "neuralnet", "reduction", "scan", "sort"),
        *("spmv", "stencil2d", "triad"),
    )
)

#: Programs of Rodinia and their arguments.
_RODINIA = {
    "b+tree": "file keys command commands",
    "bfs": "graph.txt",
    "backprop": "1024",
    "cfd": "domain",
    "gaussian": "-s 64",
    "hotspot": "64 2 2 temperature power output",
    "lavaMD": "-boxes1d 2",
    "lud/cuda": "-s 64 -v",
    "nw": "256 10",
    "particlefilter": "-x 32 -y 32 -z 3 -np 256",
    "pathfinder": "1000 20 5",
    "srad/srad_v2": "128 128 0 31 0 31 0.5 2",
    "streamcluster": "3 6 16 512 512 100 none output.txt 1",
}
_RODINIA_BUILD = {
    "cfd": "`euler3d.cu`, `iterations` 1 instead of 2000 equal ones",
    "particlefilter": "`ex_particle_CUDA_naive_seq.cu`",
    "streamcluster": "`streamcluster_cuda_cpu.cpp` and `streamcluster_cuda.cu`",
}
#: What makes the inputs of some, in the small size of the study of the papers' own benchmarks.
_RODINIA_INPUTS = {
    "b+tree": inputs.tree_keys,
    "bfs": inputs.random_graph,
    "cfd": inputs.tetrahedra,
    "hotspot": inputs.chip,
}
_RODINIA_DATA = (
    *("dwt2d", "heartwall", "hotspot3D", "huffman", "hybridsort", "kmeans", "leukocyte"),
    *("mummergpu", "myocyte", "nn", "srad/srad_v1"),
)
#: Programs of https://github.com/yuhc/gpu-rodinia whose inputs can be made.
RODINIA = (
    *(
        Program(
            name,
            f"cuda/{name}",
            tuple(arguments.split()),
            build=_RODINIA_BUILD.get(name, ""),
            make_input=functools.partial(_RODINIA_INPUTS[name], size="small")
            if name in _RODINIA_INPUTS
            else None,
        )
        for name, arguments in _RODINIA.items()
    ),
    *(
        Program(name, f"cuda/{name}", needs="inputs that are not in its repository")
        for name in _RODINIA_DATA
    ),
)

_GRAPH = "256_16384.gr"
_PANNOTIA = {
    "bc": "bc/BC.cu",
    "color_max": "color/coloring_max.cu",
    "color_maxmin": "color/coloring_maxmin.cu",
    "fw": "fw/Floyd-Warshall.cu",
    "fw_block": "fw/Floyd-Warshall-Block.cu",
    "mis": "mis/mis.cu",
    "pagerank": "pagerank/pagerank.cu",
    "pagerank_spmv": "pagerank/pagerank_spmv.cu",
    "sssp_csr": "sssp/sssp_csr.cu",
    "sssp_ell": "sssp/sssp_ell.cu",
}
#: Pannotia as https://github.com/accel-sim/gpu-app-collection has it, with a graph of
#: https://github.com/pannotia/pannotia.
PANNOTIA = tuple(
    Program(
        name,
        f"src/cuda/pannotia/{source}",
        (_GRAPH,) if name in ("bc", "fw", "fw_block") else (_GRAPH, "0"),
        beside=f"{_GRAPH} of Pannotia's dataset/floydwarshall",
    )
    for name, source in _PANNOTIA.items()
)
