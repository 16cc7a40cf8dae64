"""How L2 began and who measures, in words: what a table says that is not by the defaults."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from warpstack.cli.common.output import print_about

if TYPE_CHECKING:
    from warpstack._util.choices import Profiler
    from warpstack._util.options import Options

__all__ = ["options_given", "print_settings", "settings_text"]

_MEASURES: Final[Mapping[Profiler, str]] = {
    "nsys": "",
    "ncu": "as Nsight Compute measures",
    "nvprof": "as nvprof measures",
    "events": "as CUDA events measure",
    "batch": "as a batch of launches measures",
    "do_bench": "as Triton's do_bench measures",
}


def options_given(arguments: argparse.Namespace) -> Options:
    """Return the options that the flags of a command set; those that it has no flag for stay default."""
    from warpstack._util.options import Options

    known = Options.__dataclass_fields__
    given = {name: value for name, value in vars(arguments).items() if name in known}
    return Options(**given)


def settings_text(options: Options, models: Iterable[str] = ()) -> str:
    """Return in words what of L2 and the profiler is not by default, and which models do not see it."""
    from warpstack.models.prediction import blind_to_write_backs

    parts = []
    if options.written_share or options.flush_l2:
        when = "each launch" if options.flush_l2 else "the first launch"
        blind = ", ".join(dict.fromkeys(blind_to_write_backs(options, models)))
        verb = "do" if "," in blind else "does"
        unseen = f", which {blind} {verb} not see" if blind else ""
        parts.append(f"L2 {options.initial_words} before {when}{unseen}")
    if measures := _MEASURES[options.profiler]:
        parts.append(measures)
    return "; ".join(parts)


def print_settings(
    arguments: argparse.Namespace,
    options: Options,
    models: Iterable[str] = (),
    *,
    is_last: bool = True,
) -> None:
    """Print `settings_text` as a line of its own, nothing where all is by default or for programs."""
    text = settings_text(options, models)
    if text and not (arguments.json or arguments.csv):
        print_about(arguments, text, is_last=is_last)
