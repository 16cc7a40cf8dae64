"""What a command reports, and what runs for it: chosen launches, and those before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from warpstack._util.progress import progress_bar
from warpstack.cli.common.messages import say

if TYPE_CHECKING:
    import pandas as pd

    from warpstack.hardware.description import Gpu
    from warpstack.timing.simulation import SimulationResult
    from warpstack.traces.trace import App

__all__ = ["Subject", "named_apart", "simulated"]

#: More warp instructions than this before the chosen launches take the simulator many seconds.
_LONG_BEFORE = 2_000_000

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Subject:
    """What a command is about.

    Attributes
    ----------
    app
        The launches that are reported.
    ran
        These, and those before the last of them, for what they leave in L2; in order.
    """

    app: App
    ran: App

    @cached_property
    def places(self) -> list[int]:
        """The places in `ran` of the launches that are reported."""
        launches = {kernel.launch_id for kernel in self.app}
        return [place for place, kernel in enumerate(self.ran) if kernel.launch_id in launches]

    def of_reported(self, values: Sequence[_T]) -> list[_T]:
        """Return what is reported of values, as many for each launch of `ran` as for any other."""
        each = len(values) // max(len(self.ran), 1)
        return [
            value for place in self.places for value in values[place * each : (place + 1) * each]
        ]

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table with a column ``kernel`` that are reported."""
        launches = [kernel.launch_id for kernel in self.app]
        return table[table["kernel"].isin(launches)].reset_index(drop=True)

    def say_what_is_simulated(self) -> None:
        """Say that launches before the chosen ones are simulated, where that takes long."""
        before = [k for place, k in enumerate(self.ran) if place not in set(self.places)]
        if sum(kernel.num_instructions for kernel in before) > _LONG_BEFORE:
            say(
                "note",
                f"{len(before):,} launches before the chosen ones are simulated, too, for what they leave "
                "in L2; --flush-l2 leaves them out",
            )


def named_apart(subjects: Sequence[Subject], paths: Sequence[str]) -> list[Subject]:
    """Return subjects whose applications have different names: ends of their paths, or numbers."""
    names = [subject.app.name for subject in subjects]
    places = [_place(path) for path in paths]
    for depth in range(1, max(map(len, places), default=0) + 1):
        names = [
            "/".join(place[-depth:]) if names.count(name) > 1 else name
            for name, place in zip(names, places, strict=True)
        ]
    found = []
    for number, (subject, name) in enumerate(zip(subjects, names, strict=True), 1):
        if names.count(name) > 1:  # it is given twice
            name = f"{subject.app.name} ({number})"
        if name != subject.app.name:
            app = subject.app._part(range(len(subject.app)), name)
            whole = subject.ran is subject.app
            subject = Subject(
                app, app if whole else subject.ran._part(range(len(subject.ran)), name)
            )
        found.append(subject)
    return found


def _place(path: str) -> tuple[str, ...]:
    """Return the folders of a path, and the name in the last one but for that of a list of kernels."""
    place = Path(path).absolute()
    if place.name == "kernelslist.g":
        place = place.parent
    return (*place.parts[:-1], place.name.removesuffix(".cu").removesuffix(".ptx"))


def simulated(
    subject: Subject, gpu: Gpu, settings: Mapping[str, Any], **how: Any
) -> list[SimulationResult]:
    """Simulate what is reported, after the launches before it, of which only L2 is kept.

    Parameters
    ----------
    subject, gpu
        What is simulated, and on which GPU.
    settings
        ``flush_l2``, ``initial_l2``, ``profiler`` and perhaps ``sample_blocks``, as for
        `warpstack.simulate`.
    how
        What `warpstack.timing.Simulator.run` is to record of the launches that are reported.
    """
    from warpstack.timing import simulation
    from warpstack.traces.awaited import warn_of_waits

    if len(subject.places) == len(subject.ran):
        results: list[SimulationResult] = simulation.simulate(
            subject.app, gpu, **settings, **how, progress=True
        )
        return results
    subject.say_what_is_simulated()
    if settings.get("sample_blocks", 1) != 1 or any(kernel.is_sampled for kernel in subject.ran):
        of_all = simulation.simulate(subject.ran, gpu, **settings, **how, progress=True)
        return [of_all[place] for place in subject.places]
    warn_of_waits(subject.app, gpu)
    simulator = simulation.Simulator(
        gpu, profiler=settings["profiler"], initial_l2=settings["initial_l2"]
    )
    wanted: set[int] = set(subject.places)
    results = []
    before = {"max_cycles": how.get("max_cycles")}
    total = sum(kernel.num_instructions for kernel in subject.ran)
    with progress_bar(True, total, "simulating", "instruction") as bar:
        for place, kernel in enumerate(subject.ran):
            result = simulator.run(kernel, progress=bar, **(how if place in wanted else before))
            if place in wanted:
                results.append(result)
    return results
