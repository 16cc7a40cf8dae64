"""The interface of a paper's figure: how to compute, draw and check it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from warpstack.figures.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, its number and ours.

    Attributes
    ----------
    text
        The statement, in a sentence.
    paper, ours
        The numbers that it rests on, with their units.
    holds
        Whether ours support it.
    """

    text: str
    paper: str
    ours: str
    holds: bool


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """A figure or table of a paper, computed again.

    Attributes
    ----------
    name
        Name on the command line, such as ``mdm-fig5``.
    title
        What it shows.
    paper
        Where it is from.
    reference
        What ours is measured against, and on which configuration.
    compute
        Function that returns the data of a `Study` as a tidy table.
    draw
        Function that draws the data.
    check
        Function that compares the paper's claims with the data.
    needs_all
        Whether the claims speak of both classes of applications, so that a study of one alone is
        refused.
    """

    name: str
    title: str
    paper: str
    reference: str
    compute: Callable[[Study], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    check: Callable[[pd.DataFrame], list[Claim]]
    needs_all: bool = True
