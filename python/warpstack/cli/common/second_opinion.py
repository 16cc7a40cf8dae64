"""By how much the times of other models differ from the first one's, and in which part of the CPI stack."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from warpstack import _core
from warpstack.cli.common.answer import HEADS, LEFT, Sums
from warpstack.cli.common.layout import Look, paragraph, text_table
from warpstack.tables import STACK_COMPONENTS

__all__ = ["difference", "print_opinions", "why"]

#: Times that differ by less than this part are the same.
_SAME = 0.02
#: Parts of stacks that differ by less than this part of the time are the same.
_SAME_PART = 0.05
#: A part that takes less than this part of the time is as good as none.
_NONE = 0.001
#: A part has to make up this much of a difference to be its cause; one that offsets this much is named, too.
_MOST, _OFFSET = 0.5, 0.25
#: A part that grows by more than this share of itself was small: its percents would mislead.
_MANY_TIMES = 4.0

#: The field of the GPU that a model with a mechanism reads, and what the mechanism is; all models know
#: the other parts.
_MECHANISMS = {
    "mshr": ("l1_mshrs", "MSHRs"),
    "noc": ("noc_bandwidth_gbs", "the bandwidth of the NoC"),
    "queue": ("dram_bandwidth_gbs", "the bandwidth of DRAM"),
}


def print_opinions(
    own: str,
    by: Sequence[str],
    sums: Sequence[Sums],
    others: Mapping[str, Sequence[Mapping[str, Any]]],
    width: int | None,
    blind: Collection[str] = (),
) -> None:
    """Print the times of other models: a line for each, or a table where there are several kernels.

    Parameters
    ----------
    own
        The model of `sums`.
    by
        Properties, besides the kernel, that differ between `sums`.
    sums
        What the answer says.
    others
        The same of each other model, in the same order.
    width
        Characters of a line; None: as many as it takes.
    blind
        Those that do not see that L2 held written lines before the first launch.
    """
    print(paragraph(f"Second opinion: how far others are from {own}, and why", width))
    print()
    unseen = {n: "it does not see L2's written lines; " if n in blind else "" for n in others}
    found = [
        (one, name, values[place], unseen[name] + why(own, one.values, name, values[place]))
        for place, one in enumerate(sums)
        for name, values in others.items()
    ]
    if len(sums) == 1:
        for one, name, values, reason in found:
            change = f"{_percent(one.values, values):+,.0f} %"
            line = f"{name}: {values['time_us']:,.2f} us ({change}): {reason}"
            print(paragraph(line, width, indent="  "))
        return
    columns = ["kernel", *(HEADS[key] for key in by), "by", "time (us)", "difference (%)", "why"]
    rows = [
        [one.title, *one.key, name, values["time_us"], _percent(one.values, values), reason]
        for one, name, values, reason in found
    ]
    formats = {"time (us)": "{:,.2f}", "difference (%)": "{:+,.0f}"}
    print(text_table(columns, rows, Look({}, formats, (*LEFT, "by", "why")), width=width))


def difference(own: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the other time over the own one, less 1."""
    return float(other["time_us"] / own["time_us"] - 1)


def _percent(own: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the difference in whole percents; adding 0 leaves no minus before a zero."""
    return round(100 * difference(own, other)) + 0.0


def why(own_name: str, own: Mapping[str, Any], other_name: str, other: Mapping[str, Any]) -> str:
    """Return in which part of their stacks two predictions of the same launches differ most.

    Parameters
    ----------
    own_name, own
        A model, and its time (``time_us``, of which ``launch_us`` is the launch) with its stack (``cpi`` and
        its parts).
    other_name, other
        The model that it is compared with, or the simulator.
    """
    ours, theirs = _times(own), _times(other)
    changes = {part: theirs[part] - ours[part] for part in STACK_COMPONENTS}
    time = own["time_us"]
    total = sum(changes.values())
    if abs(total) < _SAME * time:
        return _of_the_same(changes, time)
    sign = 1 if total > 0 else -1
    part = max(changes, key=lambda name: sign * changes[name])
    text = _of_part(part, ours[part], theirs[part], own_name, other_name, time)
    share = changes[part] / total
    if share < _MOST:
        text += f"; that is {100 * share:.0f} % of the difference, the largest share"
    against = min(changes, key=lambda name: sign * changes[name])
    if -changes[against] / total > _OFFSET:
        text += f"; {_amount(changes[against])} of {against} offsets a part of it"
    return text


def _times(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the time of each part of the stack in us; their sum is the time without the launch."""
    per_cpi = (values["time_us"] - values["launch_us"]) / values["cpi"] if values["cpi"] else 0.0
    return {part: per_cpi * values[f"cpi_{part}"] for part in STACK_COMPONENTS}


def _of_the_same(changes: Mapping[str, float], time: float) -> str:
    most, least = max(changes, key=changes.__getitem__), min(changes, key=changes.__getitem__)
    largest = max(changes[most], -changes[least])
    if largest < _SAME_PART * time:
        return (
            f"no part of it differs by more than {max(100 * largest / time, 1):.0f} % of the time"
        )
    return (
        f"the sums agree, the parts do not: {_amount(changes[most])} of {most}, "
        f"{_amount(changes[least])} of {least}"
    )


def _of_part(
    part: str, ours: float, theirs: float, own_name: str, other_name: str, time: float
) -> str:
    if ours < _NONE * time:
        reason = _unknown(own_name, part)
        return f"it has {theirs:,.2f} us of {part}; {own_name} {reason or 'has none'}"
    if theirs < _NONE * time:
        reason = _unknown(other_name, part)
        text = f"it {reason}" if reason else f"it has no {part}"
        return f"{text} ({part}: {ours:,.2f} us in {own_name})"
    change = theirs / ours - 1
    if change > _MANY_TIMES:
        return f"it has {_amount(theirs - ours)} of {part}"
    return f"it has {100 * abs(change):,.0f} % {'more' if change > 0 else 'less'} of {part}"


def _unknown(model: str, part: str) -> str:
    """Return that a model does not know the mechanism of a part; empty where it does."""
    if part not in _MECHANISMS or model not in _core.model_names():
        return ""
    field, mechanism = _MECHANISMS[part]
    return "" if field in _core.model_fields(model) else f"does not model {mechanism}"


def _amount(change: float) -> str:
    return f"{abs(change):,.2f} us {'more' if change > 0 else 'less'}"
