#!/usr/bin/env python3
"""The closed network model beside the simulator where two kernels run at the same time.

    python studies/concurrent_pairs.py [--write] [--pairs N] [--seed N]

Pairs of random kernels (`tests/python/random_cases.py`) on random GPUs, each kernel in a stream of its own.
Beside the model stand two that know less: one kernel after the other, and the longer one alone.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pages
import pandas as pd

import warpstack as ws

sys.path.append(str(pages.DOCS.parent / "tests" / "python"))
import kernel_recipes as kr
import random_cases as rc

PAIRS, SEED = 200, 9417
PAGE = pages.DOCS / "quality" / "concurrent-kernels.md"


def pair(seed: int, number: int) -> tuple[ws.App, ws.Gpu]:
    """Return the kernels and the GPU of a pair."""
    one, other = rc.random_case(seed, 2 * number), rc.random_case(seed, 2 * number + 1)
    gpu = one.on()
    kernels = [kr.trace(one.launches[0]), kr.trace(rc._fitting(other.launches[0], gpu))]
    return ws.App(kernels, "pair"), gpu


def measured(seed: int, number: int) -> dict[str, Any]:
    """Return the row of a pair."""
    app, gpu = pair(seed, number)
    alone = [result.cycles for result in ws.simulate(app, gpu)]
    both = ws.simulate(app, gpu, concurrent=True)
    predicted = ws.predict(app, gpu)["cycles"].to_numpy()
    table = ws.predict(app, gpu, concurrent=True)
    ends, simulated = table["end"].to_numpy(), both.to_frame()
    return {
        "pair": number,
        "gpu": gpu.title,
        "cycles_first": alone[0],
        "cycles_second": alone[1],
        "cycles_together": both.cycles,
        "predicted_first": predicted[0],
        "predicted_second": predicted[1],
        "predicted_together": float(ends.max()),
        "end_first": int(simulated["end"][0]),
        "end_second": int(simulated["end"][1]),
        "predicted_end_first": ends[0],
        "predicted_end_second": ends[1],
    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return errors: of the pairs, of the kernels alone, and of what knows less."""
    alone = np.stack([rows["cycles_first"], rows["cycles_second"]], 1)
    of_model = np.stack([rows["predicted_first"], rows["predicted_second"]], 1)
    together = rows["cycles_together"]
    # What is left of the error if the kernels alone were right.
    speed_up = alone.sum(1) / together
    named = {
        "each kernel alone": (of_model / alone - 1).ravel(),
        "both: the model": rows["predicted_together"] / together - 1,
        "both: one after the other": of_model.sum(1) / together - 1,
        "both: the longer one alone": of_model.max(1) / together - 1,
        "gain over one after the other": of_model.sum(1) / rows["predicted_together"] / speed_up
        - 1,
    }
    return pd.DataFrame(
        [
            {
                "error of": name,
                "mean": f"{np.abs(errors).mean():.1%}",
                "median": f"{np.median(np.abs(errors)):.1%}",
                "within 8 %": f"{(np.abs(errors) <= 0.08).mean():.0%}",
                "largest": f"{np.asarray(errors)[np.abs(np.asarray(errors)).argmax()]:+.0%}",
            }
            for name, errors in named.items()
        ]
    )


def main() -> None:
    """Measure, print, and write the tables of the page."""
    parser = pages.parser(__doc__, PAGE)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="number of pairs")
    parser.add_argument("--seed", type=int, default=SEED, help="of the pairs")
    arguments = parser.parse_args()
    rows = pd.DataFrame([measured(arguments.seed, n) for n in range(arguments.pairs)])
    pages.publish(PAGE, {"pairs": rows.round(0), "errors": summary(rows)}, arguments.write)


if __name__ == "__main__":
    main()
