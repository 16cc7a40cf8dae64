"""The programs of Mars and Tango, all of them memory-divergent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import inputs
from .program import Program, no_input

_MARS = "Graph500/imp/GraphGPU/src/Mars/sample_apps"
_TANGO = "gpu_bench_cuda_11.3/Tango/GPU"


def _mars(
    folder: str,
    name: str,
    abbreviation: str,
    paper_launches: int,
    make_input: Callable[[Path, str], None],
    read: str,
    text: str,
    changes: tuple[str, ...] = (),
) -> Program:
    sources = ("main.cu", "MarsLib.cu", "MarsScan.cu", "MarsSort.cu", "MarsUtils.cpp")
    return Program(
        name=name,
        abbreviation=abbreviation,
        memory_divergent=True,
        suite="Mars",
        paper_launches=paper_launches,
        folder=f"{_MARS}/{folder}",
        sources=sources,
        make_input=make_input,
        input=text,
        arguments=dict.fromkeys(("paper", "small"), (read,)),
        changes=changes,
        options=("--on-fault", "continue", "--allow-uninitialized"),
        why_options="the library's mapper and prefix sum read a record past the end, and records "
        "that nobody wrote",
        workload=name,
    )


COUNT = _mars(
    "PageViewCount",
    "pageview-count",
    "PVC",
    358,
    inputs.page_views,
    "log",
    "32,768 views of 1024 pages, as its generator makes them (its script asks for 1,000,000)",
)
RANK = _mars(
    "PageViewRank",
    "pageview-rank",
    "PVR",
    258,
    inputs.page_ranks,
    "log",
    "131,072 pages, as its generator makes them (its script asks for 1,000,000)",
)
INDEX = _mars(
    "InvertedIndex",
    "inverted-index",
    "IIX",
    158,
    inputs.web_pages,
    "pages/",
    "4 MB of HTML with random words and links (its script makes 28 MB of three pages)",
    changes=(
        "a barrier of `MarsLib.cu` within `#ifndef __DEVICE_EMULATION__` is taken away: only some "
        "threads of a warp reach it, undefined since Volta, and it orders nothing",
    ),
)

ALEXNET = Program(
    name="alexnet",
    abbreviation="AN",
    memory_divergent=True,
    suite="Tango",
    paper_launches=22,
    folder=f"{_TANGO}/AlexNet",
    sources=("alexnet_host.cu",),
    make_input=inputs.alexnet,
    input="a random image, random weights of the convolutions, and zeros for the rest: values decide "
    "on no address",
    arguments=dict.fromkeys(("paper", "small"), ("1",)),
    changes=("the program ends before its third layer, after what is traced",),
    launches=10,
    why_launches="the first layer, and half of the second's convolution",
    options=("--on-fault", "continue", "--allow-uninitialized"),
    why_options="a padded convolution reads past the end of its input; weights that the input lacks "
    "are not set",
    workload="alexnet",
)

RESNET = Program(
    name="resnet",
    abbreviation="RN",
    memory_divergent=True,
    suite="Tango",
    paper_launches=222,
    folder=f"{_TANGO}/ResNet",
    sources=("resnet_host.cu",),
    make_input=no_input,
    input="none: the weights are not in its repository, and their values decide on no address",
    arguments=dict.fromkeys(("paper", "small"), ("1",)),
    changes=(
        "the program ends before `res2a_branch2b`, after what is traced",
        "the shortcut's convolution (`execute3DconvolutionCuda_split` of `Layer2_pool_GPU`) is left "
        "out: the next one in four times as many blocks, with 66 M warp instructions",
    ),
    why_launches="those after the first convolution, up to the second one of the first residual block",
    options=(*("--allow-uninitialized", "--kernel", "convolution|Norm|Scale|ReLU|Elt"),),
    why_options="weights that the input lacks are not set; the first convolution alone would have 60 M "
    "warp instructions",
    workload="resnet",
)

PROGRAMS = (COUNT, RANK, INDEX, ALEXNET, RESNET)
