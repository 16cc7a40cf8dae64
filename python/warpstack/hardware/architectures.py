"""NVIDIA's architectures, and the order in which people look for a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpstack.hardware.description import Gpu

__all__ = ["ARCHITECTURES", "PAPERS", "architecture", "by_architecture", "overlaps_launches"]

#: The GPUs of papers, which are simulated ones.
PAPERS = "papers"
_OFPAPERS = ("gpumech-baseline", "pascal-mdm")
#: The first compute capability of each architecture, from old to new.
_SINCE = {
    "Maxwell": 5.0,
    "Pascal": 6.0,
    "Volta": 7.0,
    "Turing": 7.5,
    "Ampere": 8.0,
    "Ada": 8.9,
    "Hopper": 9.0,
    "Blackwell": 10.0,
}
#: What `architecture` returns, in the order of lists.
ARCHITECTURES = (*_SINCE, PAPERS)


def architecture(gpu: Gpu) -> str:
    """Return the architecture of a description that comes with the package.

    Parameters
    ----------
    gpu
        The description. Those of papers can have the compute capability of a card that they are like.

    Returns
    -------
    str
        One of `ARCHITECTURES`.
    """
    if gpu.name in _OFPAPERS:
        return PAPERS
    return [name for name, first in _SINCE.items() if first <= gpu.compute_capability][-1]


def overlaps_launches(gpu: Gpu) -> bool:
    """Return whether a GPU has programmatic dependent launch: from compute capability 9.0 on, or unknown."""
    return not 0 < gpu.compute_capability < 9


def by_architecture(gpus: Iterable[Gpu]) -> list[Gpu]:
    """Return descriptions by architecture, and in each by name, where a40 comes before a100."""

    def order(gpu: Gpu) -> tuple[int, list[str | int]]:
        # Texts and numbers take turns, so that only like is compared with like.
        parts = re.split(r"(\d+)", gpu.name)
        named = [int(part) if part.isdecimal() else part for part in parts]
        return ARCHITECTURES.index(architecture(gpu)), named

    return sorted(gpus, key=order)
