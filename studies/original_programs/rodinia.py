"""Rodinia's programs."""

from __future__ import annotations

from . import inputs
from .program import Program, Repair

_HERE = "gpu-rodinia/cuda"


def _sources(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{_HERE}/{folder}/{name}" for name in names)


BFS = Program(
    name="bfs",
    abbreviation="BFS",
    memory_divergent=True,
    suite="Rodinia",
    paper_launches=24,
    folders=(f"{_HERE}/bfs",),
    sources=_sources("bfs", "bfs.cu"),
    make_input=inputs.random_graph,
    input="a random graph of 1 M nodes and 6 M edges, as its generator makes them",
    arguments=dict.fromkeys(("paper", "small"), ("graph.txt",)),
    workload="bfs",
)

CFD = Program(
    name="cfd",
    abbreviation="CFD",
    memory_divergent=True,
    suite="Rodinia",
    paper_launches=10,
    folders=(f"{_HERE}/cfd", "cuda-samples/Common"),
    sources=_sources("cfd", "euler3d.cu"),
    includes=("cuda-samples/Common",),
    make_input=inputs.tetrahedra,
    input="a Delaunay mesh of random points with 97,046 cells, as many as fvcorr.domn.097K has",
    arguments=dict.fromkeys(("paper", "small"), ("domain",)),
    repairs=(
        Repair(
            f"{_HERE}/cfd/euler3d.cu",
            r"#define iterations 2000",
            "#define iterations 1",
            "one of 2000 equal iterations: with the start, the 10 launches of Table IV",
        ),
    ),
    workload="cfd",
)

KMEANS = Program(
    name="k-means",
    abbreviation="KMEANS",
    memory_divergent=True,
    suite="Rodinia",
    paper_launches=1,
    folders=(f"{_HERE}/kmeans",),
    sources=_sources(
        "kmeans",
        *("kmeans_cuda.cu", "kmeans.c", "cluster.c", "kmeans_clustering.c", "rmse.c", "getopt.c"),
    ),
    make_input=inputs.network_records,
    input="494,020 points of 34 features, the shape of kdd_cup, random; 5 clusters",
    # One iteration: the points that move are fewer than the threshold at once.
    arguments=dict.fromkeys(("paper", "small"), ("-b", "-i", "kdd_cup", "-t", "1e9")),
    repairs=(
        Repair(
            f"{_HERE}/kmeans/kmeans_cuda_kernel.cu",
            r"texture<float, 1, cudaReadModeElementType> \w+;",
            "",
            "texture references are gone from CUDA 12",
        ),
        Repair(
            f"{_HERE}/kmeans/kmeans_cuda_kernel.cu",
            r"tex1Dfetch\(t_features,\s*addr\)",
            "__ldg(features + addr)",
            "the same array, read through the read-only path instead of a texture",
        ),
        Repair(
            f"{_HERE}/kmeans/kmeans_cuda.cu",
            r"/\* set up texture \*/.*?(?=/\* copy clusters to constant memory \*/)",
            "",
            "the textures' set-up",
        ),
        Repair(
            f"{_HERE}/kmeans/kmeans_cuda.cu",
            r'"c_clusters"',
            "c_clusters",
            "symbols are named by themselves since CUDA 5",
        ),
        Repair(
            f"{_HERE}/kmeans/kmeans_cuda.cu",
            r"cudaSetDevice\(1\)",
            "cudaSetDevice(0)",
            "there is one device",
        ),
    ),
    launches=2,
    why_launches="the inversion and the first step of the clustering",
    workload="k-means",
)

BACKPROP = Program(
    name="backprop",
    abbreviation="BP",
    memory_divergent=False,
    suite="Rodinia",
    paper_launches=2,
    folders=(f"{_HERE}/backprop",),
    sources=_sources("backprop", "backprop_cuda.cu", "backprop.c", "facetrain.c", "imagenet.c"),
    input="65,536 input units, random",
    arguments={"paper": ("65536",), "small": ("1024",)},
    workload="backprop",
)

HOTSPOT = Program(
    name="hotspot",
    abbreviation="HS",
    memory_divergent=False,
    suite="Rodinia",
    paper_launches=1,
    folders=(f"{_HERE}/hotspot",),
    sources=_sources("hotspot", "hotspot.cu"),
    make_input=inputs.chip,
    input="random temperatures and powers of 1024 x 1024 points, two steps in one launch",
    arguments={
        "paper": ("1024", "2", "2", "temperature", "power", "output"),
        "small": ("64", "2", "2", "temperature", "power", "output"),
    },
    workload="hotspot",
)

SRAD = Program(
    name="srad",
    abbreviation="SRAD",
    memory_divergent=False,
    suite="Rodinia",
    paper_launches=2,
    folders=(f"{_HERE}/srad",),
    sources=(f"{_HERE}/srad/srad_v2/srad.cu",),
    input="a random image of 2048 x 2048 points (`srad_v2`), one iteration",
    arguments={
        "paper": ("2048", "2048", "0", "127", "0", "127", "0.5", "1"),
        "small": ("128", "128", "0", "31", "0", "31", "0.5", "1"),
    },
    repairs=(
        Repair(
            f"{_HERE}/srad/srad_v2/srad.cu",
            r"(?=cudaMalloc\(\(void\*\*\)& J_cuda)",
            "void *before; cudaMalloc(&before, 1 << 21); cudaMemset(before, 0, 1 << 21);\n\t",
            "memory before the image, as a GPU has there: blocks of the first row read a row before "
            "the image, and do not use it",
        ),
    ),
    workload="srad",
)

BTREE = Program(
    name="b+tree",
    abbreviation="BT",
    memory_divergent=False,
    suite="Rodinia",
    paper_launches=2,
    folders=(f"{_HERE}/b+tree",),
    sources=_sources(
        "b+tree",
        *("main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "kernel/kernel_gpu_cuda_wrapper_2.cu"),
        *("util/timer/timer.c", "util/num/num.c", "util/cuda/cuda.cu"),
    ),
    make_input=inputs.tree_keys,
    input="a million keys in random order; 6,000 range queries and 10,000 finds, as Rodinia's commands",
    arguments=dict.fromkeys(("paper", "small"), ("file", "keys", "command", "commands")),
    workload="b+tree",
)

PROGRAMS = (BFS, CFD, KMEANS, BACKPROP, HOTSPOT, SRAD, BTREE)
