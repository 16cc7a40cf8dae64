"""Rodinia's programs."""

from __future__ import annotations

from . import inputs
from .program import Program

_HERE = "gpu-rodinia/cuda"

BFS = Program(
    name="bfs",
    abbreviation="BFS",
    memory_divergent=True,
    suite="Rodinia",
    paper_launches=24,
    folder=f"{_HERE}/bfs",
    sources=("bfs.cu",),
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
    folder=f"{_HERE}/cfd",
    sources=("euler3d.cu",),
    build="the headers in cuda-samples/Common",
    make_input=inputs.tetrahedra,
    input="a Delaunay mesh of random points with 97,046 cells, as many as fvcorr.domn.097K has",
    arguments=dict.fromkeys(("paper", "small"), ("domain",)),
    changes=(
        "`iterations` is 1: one of 2000 equal iterations, with the start the 10 launches of Table IV",
    ),
    workload="cfd",
)

KMEANS = Program(
    name="k-means",
    abbreviation="KMEANS",
    memory_divergent=True,
    suite="Rodinia",
    paper_launches=1,
    folder=f"{_HERE}/kmeans",
    sources=(
        *("kmeans_cuda.cu", "kmeans.c", "cluster.c", "kmeans_clustering.c", "rmse.c", "getopt.c"),
    ),
    make_input=inputs.network_records,
    input="494,020 points of 34 features, the shape of kdd_cup, random; 5 clusters",
    # One iteration: the points that move are fewer than the threshold at once.
    arguments=dict.fromkeys(("paper", "small"), ("-b", "-i", "kdd_cup", "-t", "1e9")),
    changes=(
        "texture references and their set-up are taken away, as they are gone from CUDA 12",
        "the kernel reads the same array through the read-only path (`__ldg`) instead of the texture "
        "`t_features`",
        "`c_clusters` stands without quotes: symbols are named by themselves since CUDA 5",
        "device 0 instead of 1: there is one device",
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
    folder=f"{_HERE}/backprop",
    sources=("backprop_cuda.cu", "backprop.c", "facetrain.c", "imagenet.c"),
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
    folder=f"{_HERE}/hotspot",
    sources=("hotspot.cu",),
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
    folder=f"{_HERE}/srad",
    sources=("srad_v2/srad.cu",),
    input="a random image of 2048 x 2048 points (`srad_v2`), one iteration",
    arguments={
        "paper": ("2048", "2048", "0", "127", "0", "127", "0.5", "1"),
        "small": ("128", "128", "0", "31", "0", "31", "0.5", "1"),
    },
    changes=(
        "its six arrays are one allocation of zeros, 2 MiB behind its start, as a GPU has memory there: "
        "blocks of the first and the last row read a row beyond an array, and do not use it",
    ),
    workload="srad",
)

BTREE = Program(
    name="b+tree",
    abbreviation="BT",
    memory_divergent=False,
    suite="Rodinia",
    paper_launches=2,
    folder=f"{_HERE}/b+tree",
    sources=(
        *("main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "kernel/kernel_gpu_cuda_wrapper_2.cu"),
        *("util/timer/timer.c", "util/num/num.c", "util/cuda/cuda.cu"),
    ),
    make_input=inputs.tree_keys,
    input="a million keys in random order; 6,000 range queries and 10,000 finds, as Rodinia's commands",
    arguments=dict.fromkeys(("paper", "small"), ("file", "keys", "command", "commands")),
    workload="b+tree",
)

PROGRAMS = (BFS, CFD, KMEANS, BACKPROP, HOTSPOT, SRAD, BTREE)
