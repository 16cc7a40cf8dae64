"""From a run of the program to a description of its GPU."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from warpstack._core import GPU_FIELDS
from warpstack._util.arguments import as_path, printable
from warpstack._util.checked import checked
from warpstack._util.files import write_file
from warpstack._util.lazy import pandas as pd
from warpstack.calibration.estimates import Estimate, estimates, observations
from warpstack.calibration.measurements import Measurements, read_measurements
from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.yaml_description import description_text

__all__ = ["Calibration", "calibrate"]

#: The description whose values stand for what is not measured, by compute capability: the newest one
#: that is not above the card's.
_BASES = {
    (5, 0): "titan-x-maxwell",
    (6, 0): "gtx1080",
    (7, 0): "titan-v",
    (7, 5): "rtx2080ti",
    (8, 0): "a100-pcie",
    (8, 6): "rtx3090",
    (8, 9): "rtx4090",
    (9, 0): "h100-pcie",
    (10, 0): "b200",
    (12, 0): "rtx4090",
}


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A GPU description made of measurements. Made by `warpstack.calibration.calibrate`.

    Attributes
    ----------
    gpu
        The description. `Gpu.sources` says how each value was measured, or that it was not and comes
        from the base.
    base
        The description from which it has the values that were not measured.
    measured
        The names of the measured fields.
    notes
        What was measured and no field has, as sentences.
    block_order
        The SM of each of the first thread blocks of a grid, by block: consecutive ones go to
        different GPCs as long as these have free SMs. Empty where it was not measured.
    """

    gpu: Gpu
    base: Gpu
    measured: tuple[str, ...]
    notes: tuple[str, ...]
    block_order: tuple[int, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the measured fields beside the base.

        Columns ``field``, ``unit``, ``measured``, ``base``, ``difference`` (relative, measured over
        base less 1; NaN for words and where the base has 0) and ``how``.
        """
        units = {field.name: field.unit for field in GPU_FIELDS}
        rows = []
        for field in self.measured:
            value, base = getattr(self.gpu, field), getattr(self.base, field)
            is_number = not isinstance(value, str) and base
            rows.append(
                {
                    "field": field,
                    "unit": units[field],
                    "measured": value,
                    "base": base,
                    "difference": value / base - 1 if is_number else float("nan"),
                    "how": self.gpu.sources[field],
                }
            )
        return pd.DataFrame(rows)

    @checked
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the description as a YAML file, which `warpstack.gpu` reads.

        Raises
        ------
        InputError
            If the name does not end in ``.yaml`` or ``.yml``, the file exists and `overwrite` is not
            given, or it cannot be written.
        """
        target = as_path("calibration", path)
        where = printable(target)
        if target.suffix not in (".yaml", ".yml"):
            raise InputError(f"{where}: the name of a GPU description ends in .yaml")
        if target.exists() and not overwrite:
            raise InputError(f"{where}: exists already; choose another name or overwrite it")
        try:
            write_file(target, description_text(self.gpu, self.gpu.values()).encode())
        except OSError as error:
            raise InputError(f"{where}: cannot be written: {error.strerror or error}") from None


@checked
def calibrate(
    path: str | os.PathLike[str], *, base: GpuLike | None = None, name: str | None = None
) -> Calibration:
    """Make a GPU description of the output of the calibration program.

    The program is the CUDA source that ``warpstack calibrate --source`` prints.

    Parameters
    ----------
    path
        The program's output.
    base
        A description, its name or path, for the values that the program cannot measure, such as the
        ways of caches: a GPU of the same generation. By default one with the compute capability.
    name
        The name of the description; by default that of the card.

    Returns
    -------
    Calibration
        The description, and a table of it beside the base.

    Raises
    ------
    InputError
        If the file is not a whole output of the program, its measurements make no sense, or they and
        the base do not make a description: the message names file, line, value and remedy.

    Examples
    --------
    >>> import warpstack as ws
    >>> found = ws.calibration.calibrate("run.txt", base="h100-pcie", name="my-h100")  # doctest: +SKIP
    >>> found.save("my-h100.yaml")  # doctest: +SKIP
    """
    run = read_measurements(path)
    based_on = as_gpu(base) if base is not None else _default_base(run)
    found = estimates(run, based_on)
    _fit_caches(found, based_on)
    card = run.texts["device.name"].replace("_", " ")
    called = name if name is not None else "-".join(card.lower().split())
    based_on.replace(name=called)  # whether it can be a name, before there is doubt about the base
    values: dict[str, Any] = {field: estimate.value for field, estimate in found.items()}
    try:
        gpu = based_on.replace(
            name=called, description=f"{card}, measured by warpstack calibrate", **values
        )
    except InputError as error:
        raise InputError(
            f"{run.where}: the measurements and the base {based_on.name} do not make a description: "
            f"{error}; choose a base of the card's generation"
        ) from None
    program = (
        f"warpstack calibrate on {card} (driver {run.texts['device.driver']}, CUDA "
        f"{run.texts['device.runtime']})"
    )
    gpu = dataclasses.replace(
        gpu,
        sources=_sources(gpu, based_on, found, program),
        confidences={**gpu.confidences, **{field: e.confidence for field, e in found.items()}},
        changes={},
    )
    blocks = sorted((s.parameters[0], int(s.value)) for s in run.samples.get("map.block", ()))
    measured = tuple(field for field in gpu.values() if field in found)
    notes = tuple(observations(run, based_on, found))
    return Calibration(gpu, based_on, measured, notes, tuple(sm for _, sm in blocks))


def _default_base(run: Measurements) -> Gpu:
    """Return the description of the card's compute capability."""
    text = run.texts["device.capability"]
    major, _, minor = text.partition(".")
    capability = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
    known = [one for one in _BASES if one <= capability]
    if not known:
        raise InputError(
            f"{run.where}: no description is known for compute capability {shown(text)}; give base= "
            "(--base) the description nearest to the card, `warpstack gpus` lists them"
        )
    return as_gpu(_BASES[max(known)])


def _sources(gpu: Gpu, base: Gpu, found: dict[str, Estimate], program: str) -> dict[str, str]:
    """Return where every value comes from."""
    sources = {}
    for field in gpu.values():
        if field in found:
            sources[field] = f"{program}: {found[field].how}"
        else:
            said = gpu.sources.get(field)
            sources[field] = f"not measured; {base.name}" + (f": {said}" if said else "")
    return sources


def _fit_caches(found: dict[str, Estimate], base: Gpu) -> None:
    """Let ways and sizes of caches fit each other, where the measured size does not fit the base's."""
    if "l1_size_kib" in found:
        size = found["l1_size_kib"].value
        assert isinstance(size, float)
        if base.unified_l1_kib and size != base.l1_size_kib:
            found["unified_l1_kib"] = Estimate(
                size + base.unified_l1_kib - base.l1_size_kib,
                f"l1_size_kib, and what {base.name} has beside it",
                "derived",
            )
        _fit_ways(found, base, "l1", base.l1_line_bytes, size)
    size = found["l2_size_kib"].value
    assert isinstance(size, float)
    unit = base.l2_line_bytes * base.l2_slices / 1024
    whole = max(round(size / unit), 1) * unit
    if whole != size:
        how = f"the driver says {size:g} KiB; the nearest size of {base.l2_slices} slices"
        found["l2_size_kib"] = Estimate(whole, how, "derived")
    _fit_ways(found, base, "l2", base.l2_line_bytes * base.l2_slices, whole)


def _fit_ways(
    found: dict[str, Estimate], base: Gpu, level: str, bytes_per_way: int, size_kib: float
) -> None:
    """Choose the ways nearest to the base's that divide a cache into sets."""
    ways = getattr(base, f"{level}_ways")
    lines = round(size_kib * 1024 / bytes_per_way)
    if lines % ways == 0:
        return
    is_tree = getattr(base, f"{level}_replacement") == "plru"
    fitting = [n for n in range(1, lines + 1) if lines % n == 0 and not (is_tree and n & (n - 1))]
    near = min(fitting, key=lambda n: abs(n - ways))
    how = f"the number nearest to {base.name}'s {ways} that divides the measured size"
    found[f"{level}_ways"] = Estimate(near, how, "derived")
