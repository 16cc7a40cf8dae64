"""The description that a card gets what is not measured from, chosen from what is described."""

from __future__ import annotations

import functools
import math
import re

from warpstack.calibration.measurements import Measurements
from warpstack.errors import InputError, shown
from warpstack.hardware.architectures import PAPERS, architecture
from warpstack.hardware.description import Gpu, gpu, gpus

__all__ = ["default_base", "products"]


@functools.lru_cache(maxsize=1)
def products() -> tuple[Gpu, ...]:
    """Return the described GPUs but for those of papers, which nobody can buy."""
    described = [gpu(name) for name in gpus()]
    return tuple(one for one in described if architecture(one) != PAPERS)


def default_base(run: Measurements) -> tuple[Gpu, tuple[str, ...]]:
    """Return the description nearest to a card, and notes on the choice.

    Those with the card's compute capability count, else those with the nearest lower one. Among these
    it is the one whose name the card's has in it, else the one with the nearest number of SMs and
    size of L2.

    Raises
    ------
    InputError
        If every described GPU has a higher compute capability.
    """
    capability = run.capability
    lower = [one for one in products() if one.compute_capability <= capability]
    if not lower:
        raise InputError(
            f"{run.where}:{run.lines['device.capability']}: no description is known for compute "
            f"capability {shown(run.texts['device.capability'])}; give base= (--base) the description "
            "nearest to the card, `warpstack gpus` lists them"
        )
    nearest = max(one.compute_capability for one in lower)
    card = _letters(run.texts["device.name"])

    def distance(one: Gpu) -> tuple[int, float]:
        name = _letters(one.name)
        sms = one.num_sms / run.properties["device.sms"]
        size = one.l2_size_kib * 1024 / run.properties["device.l2_size"]
        # A longer name says more: RTX A4000 has a40 in it, too.
        return -len(name) if name in card else 0, abs(math.log(sms)) + abs(math.log(size))

    found = min((one for one in lower if one.compute_capability == nearest), key=distance)
    if nearest == capability:
        return found, ()
    note = (
        f"no described GPU has compute capability {capability:g}: what is not measured comes from "
        f"{found.name}, of the nearest lower one, {nearest:g}; give --base another if it is nearer"
    )
    return found, (note,)


def _letters(name: str) -> str:
    """Return the letters and digits of a name, as ``rtx3090``."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
