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
from warpstack.calibration.bases import default_base
from warpstack.calibration.caches import notes_on_caches
from warpstack.calibration.estimates import Estimate, estimates, observations
from warpstack.calibration.limits import doubts, refuse_impossible
from warpstack.calibration.measurements import read_measurements
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.hardware.yaml_description import description_text

__all__ = ["Calibration", "calibrate"]


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
        As sentences: what was measured and no field has, what of the base was changed to fit, and
        what is hardly possible.
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
        lines of caches: a GPU of the same generation. By default the described GPU with the card's
        compute capability (else with the nearest lower one, which a note says) whose name is in
        the card's, else the one with the nearest number of SMs and size of L2.
    name
        The name of the description; by default that of the card.

    Returns
    -------
    Calibration
        The description, and a table of it beside the base.

    Raises
    ------
    InputError
        If the file is not a whole output of the program, its measurements make no sense or are
        impossible, or they and the base do not make a description: the message names file, line,
        value and remedy.

    Examples
    --------
    >>> import warpstack as ws
    >>> found = ws.calibration.calibrate("run.txt", base="h100-pcie", name="my-h100")  # doctest: +SKIP
    >>> found.save("my-h100.yaml")  # doctest: +SKIP
    """
    run = read_measurements(path)
    based_on, chosen = (as_gpu(base), ()) if base is not None else default_base(run)
    found = estimates(run, based_on)
    refuse_impossible(run, based_on, found)
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
    notes = (
        *chosen,
        *notes_on_caches(based_on, found),
        *doubts(run, found),
        *observations(run, based_on, found),
    )
    return Calibration(gpu, based_on, measured, notes, tuple(sm for _, sm in blocks))


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
