"""Options of the stages: the order of accesses, L2 between kernels, models, and the profiler."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from typing import get_args

from warpstack._util.choices import DEFAULT_MODEL, InitialL2
from warpstack.cli.common.parser import CommandParser

__all__ = [
    "DEFAULT_MODELS",
    "add_access_order",
    "add_l2",
    "add_models",
    "add_profiler",
    "add_representative",
    "add_sample_blocks",
    "add_sample_launches",
    "add_sampling",
    "split",
]

#: The models of a command where none is asked for.
DEFAULT_MODELS = (DEFAULT_MODEL,)


def add_access_order(parser: argparse.ArgumentParser) -> None:
    """Add ``--access-order``."""
    from warpstack.memory.caches import ACCESS_ORDERS

    parser.add_argument(
        "--access-order",
        choices=ACCESS_ORDERS,
        default=ACCESS_ORDERS[0],
        help="in which order the warps of an SM access memory (default: auto, which is timed)",
    )


def add_l2(parser: argparse.ArgumentParser) -> None:
    """Add ``--flush-l2`` and ``--initial-l2``: what L2 holds."""
    parser.add_argument("--flush-l2", action="store_true", help="empty L2 between kernels")
    parser.add_argument(
        "--initial-l2",
        type=_initial_l2,
        default=None,
        metavar="empty|clean|dirty|SHARE",
        help="what L2 holds before the first kernel, with --flush-l2 before each: nothing, lines that nobody "
        "has written, lines that all are written, or this share of them (default: empty; under do_bench "
        "dirty)",
    )


def _initial_l2(text: str) -> float | str:
    if text in get_args(InitialL2):
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither empty, clean or dirty nor a share such as 0.5"
        ) from None


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add ``--sampling``."""
    parser.add_argument(
        "--sampling",
        type=_share_or_auto,
        default=1.0,
        metavar="SHARE",
        help="how many of the SMs of large launches to simulate (default: 1, all; auto: as few as leave "
        "IPC uncertain by at most 1 %%)",
    )


#: What ``--sample-blocks`` does where traces are evaluated.
_EVALUATED = (
    "evaluate about one in K thread blocks of large launches on as large a part of the GPU (default: 1, all; "
    "auto: as few as leave IPC uncertain by at most 5 %%)"
)


def add_sample_blocks(parser: argparse._ActionsContainer, about: str = _EVALUATED) -> None:
    """Add ``--sample-blocks``, and say what it is about."""
    parser.add_argument("--sample-blocks", type=_whole_or_auto, default=1, metavar="K", help=about)


def _whole_or_auto(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a whole number such as 8 nor auto"
        ) from None


def _share_or_auto(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a share such as 0.25 nor auto"
        ) from None


def add_sample_launches(parser: argparse.ArgumentParser) -> None:
    """Add ``--sample-launches``, whose value may be left out: it is False, True or a number."""
    parser.add_argument(
        "--sample-launches",
        nargs="?",
        const=True,
        default=False,
        metavar="ERROR",
        help="predict a few launches of each kind and say how far the sum may be off: by at most this "
        "(default: 0.01, 1 %%)",
    )
    if isinstance(parser, CommandParser):
        parser.afterwards.append(partial(_read_sample_launches, parser))


def _read_sample_launches(parser: CommandParser, arguments: argparse.Namespace) -> None:
    """Make a number of the value; a word that is not one is a trace that follows the option."""
    given = arguments.sample_launches
    if not isinstance(given, str):
        return
    try:
        arguments.sample_launches = float(given)
    except ValueError:
        if arguments.trace and not _is_path(given):
            parser.error(f"--sample-launches {given}: is neither an error such as 0.05 nor a trace")
        arguments.trace = [*arguments.trace, given]
        arguments.sample_launches = True


def add_representative(parser: argparse.ArgumentParser) -> None:
    """Add ``--selection``, ``--misses`` and ``--merge-threshold``: intervals of one representative warp."""
    from warpstack.interval.profile import MISS_SOURCES, SELECTIONS

    parser.add_argument(
        "--selection", choices=SELECTIONS, default="clustering", help="representative warp"
    )
    parser.add_argument(
        "--misses",
        choices=MISS_SOURCES,
        default="per_pc",
        help="where an interval's misses come from",
    )
    parser.add_argument(
        "--merge-threshold",
        type=float,
        default=0,
        metavar="CYCLES",
        help="stalls of at most this many cycles do not end an interval (default: 0)",
    )


def add_profiler(parser: argparse.ArgumentParser) -> None:
    """Add ``--profiler``."""
    from warpstack.hardware.profiler import PROFILERS

    parser.add_argument(
        "--profiler",
        choices=PROFILERS,
        default=PROFILERS[0],
        help="whose time to predict, launch included: Nsight Systems, Nsight Compute (which holds the "
        "base clock), nvprof, CUDA events, a batch of launches in a stream, or Triton's do_bench, which "
        "fills L2 before (default: nsys)",
    )


def add_anchor(parser: argparse.ArgumentParser) -> None:
    """Add ``--anchor``."""
    parser.add_argument(
        "--anchor",
        metavar="NAME",
        help="a better engine to run once per kernel on --gpu as it is; points are its answer times the "
        "ratio of the model's: a model that is not swept (about one more point), or simulate (the "
        "cycle-level simulator: 0.04 to 3.5 million warp instructions a second)",
    )


def add_models(parser: argparse.ArgumentParser, default: Sequence[str], besides: str = "") -> None:
    """Add ``--models``; `besides` names what can be given besides the models."""
    from warpstack.models import prediction

    parser.add_argument(
        "--models",
        "--model",
        "-m",
        action="extend",
        nargs="+",
        default=None,
        metavar="MODEL",
        help=f"{', '.join(prediction.names())}, {besides}or all (default: {' '.join(default)})",
    )
    if isinstance(parser, CommandParser):
        parser.afterwards.append(_give_back_traces)


def _give_back_traces(arguments: argparse.Namespace) -> None:
    """Make traces of what ``--models`` has taken: the option takes all words that follow it."""
    words = arguments.models or []
    places = [number for number, word in enumerate(words) if _is_path(word)]
    if not places or len(places) == len(words):
        return
    arguments.trace = [*arguments.trace, *(words[number] for number in places)]
    arguments.models = [word for number, word in enumerate(words) if number not in places]


def _is_path(word: str) -> bool:
    from warpstack.models import prediction

    if word in prediction.names():
        return False
    return os.sep in word or word.endswith((".g", ".cu", ".ptx")) or os.path.exists(word)


def split(values: Sequence[str]) -> list[str]:
    """Return names that are separated by commas, by spaces, or by both."""
    return [name for value in values for name in value.split(",") if name]
