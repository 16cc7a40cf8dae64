"""Whether the caches of a GPU can be: their lines, sets, slices and carve-outs.

A `Gpu` checks itself with this when it is made, so that nothing here knows the class.
"""

from __future__ import annotations

import math
from typing import Any

from warpstack.errors import InputError
from warpstack.hardware.fields import short, shown_name

__all__ = ["SECTOR_BYTES", "check_geometry"]

#: What coalesced accesses are counted in.
SECTOR_BYTES = 32
#: Lines of all caches together that a simulation can hold: 3 GiB of state.
_MOST_LINES = 2**26
#: Banks of DRAM of all channels together that a simulation can hold.
_MOST_BANKS = 2**20


def check_geometry(gpu: Any) -> None:
    """Raise `InputError` unless the caches of a GPU divide into lines, sets and slices."""
    lines = gpu.num_sms * gpu.l1_size_kib * 1024 / gpu.l1_line_bytes
    lines += gpu.l2_size_kib * 1024 / gpu.l2_line_bytes
    if lines > _MOST_LINES:
        raise InputError(
            f"GPU {shown_name(gpu.name)}: num_sms = {gpu.num_sms} times l1_size_kib = "
            f"{gpu.l1_size_kib:g}, and l2_size_kib = {gpu.l2_size_kib:g}, are {lines:.3g} "
            f"cache lines; at most {_MOST_LINES} can be simulated"
        )
    for level, slices, interleave in (
        ("l1", 1, gpu.l1_line_bytes),
        ("l2", gpu.l2_slices, gpu.l2_slice_interleave_bytes),
    ):
        size = getattr(gpu, f"{level}_size_kib") * 1024
        ways, line, sector = (
            getattr(gpu, f"{level}_{part}") for part in ("ways", "line_bytes", "sector_bytes")
        )
        where = f"GPU {shown_name(gpu.name)}"
        if line % 32 or line > 256:
            raise InputError(
                f"{where}: {level}_line_bytes = {line} is not a multiple of 32 up to 256"
            )
        if sector % 32 or line % sector:
            raise InputError(
                f"{where}: {level}_sector_bytes = {sector} is not a multiple of 32 that divides "
                f"{level}_line_bytes = {line}"
            )
        unit = line * ways * slices
        if size % unit:
            near = max(round(size / unit), 1) * unit / 1024
            parts = f"{level}_line_bytes * {level}_ways" + (" * l2_slices" if slices > 1 else "")
            raise InputError(
                f"{where}: {level}_size_kib = {size / 1024:g} is not a multiple of {parts} = "
                f"{unit / 1024:g} KiB; the nearest that is: {near:g}"
            )
        if interleave % line:
            raise InputError(
                f"{where}: l2_slice_interleave_bytes = {interleave} is not a multiple of "
                f"l2_line_bytes = {line}"
            )

    for level in ("l1", "l2"):
        ways = getattr(gpu, f"{level}_ways")
        if getattr(gpu, f"{level}_replacement") == "plru" and ways & (ways - 1):
            raise InputError(
                f"GPU {shown_name(gpu.name)}: {level}_ways = {ways} is not a power of two, which "
                f"{level}_replacement = plru needs"
            )
    if gpu.dram_channels and gpu.l2_slices % gpu.dram_channels:
        raise InputError(
            f"GPU {shown_name(gpu.name)}: dram_channels = {gpu.dram_channels} does not divide "
            f"l2_slices = {gpu.l2_slices}"
        )
    where = f"GPU {shown_name(gpu.name)}"
    if gpu.l1_latency_place == "before_tags" and math.ceil(gpu.l1_latency) > gpu.l2_latency:
        raise InputError(
            f"{where}: l2_latency = {gpu.l2_latency:g} is less than l1_latency = {gpu.l1_latency:g}, "
            "which is part of it where l1_latency_place = before_tags; raise it, or let the latency "
            "pass after_tags"
        )
    channels = gpu.dram_channels or gpu.l2_slices
    if gpu.dram_row_bytes and gpu.dram_banks * channels > _MOST_BANKS:
        raise InputError(
            f"{where}: dram_banks = {gpu.dram_banks} of each of {channels} channels are more than "
            f"{_MOST_BANKS} banks; the most that a simulation can hold"
        )
    if gpu.dram_banks % gpu.dram_interleaved_banks:
        raise InputError(
            f"{where}: dram_interleaved_banks = {gpu.dram_interleaved_banks} does not divide "
            f"dram_banks = {gpu.dram_banks}"
        )
    # Until the next refresh closes it, a row must be open for long enough to be read, however late
    # it can be opened after the one before.
    opened = max(gpu.dram_trfc, gpu.dram_tras + gpu.dram_trp, gpu.dram_trrd)
    if 0 < gpu.dram_trefi <= opened + gpu.dram_trcd:
        raise InputError(
            f"{where}: dram_trefi = {gpu.dram_trefi} is not more than {opened + gpu.dram_trcd}, that "
            "is dram_trcd and the longest of dram_trfc, dram_tras + dram_trp and dram_trrd: refreshes "
            "would leave no time for accesses"
        )
    _check_carve_outs(gpu)


def _check_carve_outs(gpu: Any) -> None:
    where = f"GPU {shown_name(gpu.name)}"
    unified, carve_outs = gpu.unified_l1_kib, gpu.shared_memory_carve_outs_kib
    if bool(unified) != bool(carve_outs):
        raise InputError(
            f"{where}: unified_l1_kib = {unified:g} and shared_memory_carve_outs_kib = "
            f"{short(carve_outs)} belong together; give both or none"
        )
    for carve_out in carve_outs:
        left = unified - carve_out
        ways, line = gpu.l1_ways, gpu.l1_line_bytes
        sets = gpu.l1_size_kib * 1024 / line / ways
        unit = (line * ways if gpu.adaptive_l1_keeps == "ways" else line * sets) / 1024
        if left <= 0 or left % unit:
            raise InputError(
                f"{where}: a carve-out of {carve_out:g} KiB leaves L1 {left:g} of unified_l1_kib = "
                f"{unified:g}, which is not a positive multiple of {unit:g} KiB, its "
                + ("ways" if gpu.adaptive_l1_keeps == "ways" else "sets")
            )
        grown = round(left / unit)
        if gpu.adaptive_l1_keeps == "sets" and gpu.l1_replacement == "plru" and grown & (grown - 1):
            raise InputError(
                f"{where}: a carve-out of {carve_out:g} KiB leaves L1 {grown} ways, which is not a "
                "power of two, as l1_replacement = plru needs; keep the ways (adaptive_l1_keeps)"
            )
