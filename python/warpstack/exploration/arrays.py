"""A sweep as an array with labelled axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError
from warpstack.exploration.totals import axes_of, varies
from warpstack.hardware.description import Gpu
from warpstack.tables import checked_table, require

if TYPE_CHECKING:
    import xarray

__all__ = ["to_xarray"]

#: Columns whose values are labels, in the order of the dimensions after the axes.
_LABELS = ("app", "gpu", "kernel", "model")


@checked
def to_xarray(table: pd.DataFrame) -> xarray.Dataset:
    """Return a sweep as a data set of xarray, with a dimension for each axis.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep` or of `warpstack.exploration.point_totals`.

    Returns
    -------
    xarray.Dataset
        Variables: the numbers of the table (``cycles``, ``ipc``, ``cpi_mshr``, ...). Dimensions: the
        axes of the sweep in their order, then ``app`` and ``gpu`` where there are several,
        ``kernel`` where launches are not added up, and ``model``. Points that are no grid
        (`warpstack.exploration.samples`) have one dimension ``point`` in place of their axes, which are
        coordinates of it. What the sweep does not have, and points that failed, are NaN. Axes have their unit
        and meaning as attribute ``description``.

    Raises
    ------
    InputError
        If xarray is not installed (``pip install 'warpstack[xarray]'``), these are not rows of a sweep,
        or two rows have the same place.

    Examples
    --------
    >>> import warpstack as ws
    >>> table = ws.sweep(ws.patterns.stream(blocks=8), "pascal-mdm", {"num_sms": [2, 4], "l1_mshrs": [8, 16]})
    >>> data = ws.exploration.to_xarray(table)  # doctest: +SKIP
    >>> data.ipc.sel(model="mdm", kernel=1).plot()  # doctest: +SKIP
    """
    try:
        import xarray
    except ImportError:
        raise InputError(
            "to_xarray needs xarray; install it with: pip install 'warpstack[xarray]'"
        ) from None
    require(table, ["point", "model", "cycles"], "the DataFrame of warpstack.sweep")
    table = checked_table("table", table, texts=("error", "model", "app", "gpu", "name"))
    axes = axes_of(table)
    points = table[["point", *axes]].drop_duplicates("point")
    is_grid = bool(axes) and len(points) == np.prod([points[axis].nunique() for axis in axes])
    is_grid = is_grid and not points.duplicated(axes).any()
    labels = [name for name in _LABELS if name in table and _is_dimension(table, name)]
    dimensions = [*(axes if is_grid else ["point"]), *labels]
    # A point that failed as a whole has one row of no model.
    rows = table[table["model"].fillna("") != ""]
    if rows.empty:
        raise InputError("there are no points to make an array of: all of them failed")
    rows = rows.set_index(dimensions)
    again = rows.index.duplicated()
    if again.any():
        where = dict(zip(dimensions, rows.index[again][0], strict=True))
        raise InputError(
            f"two rows of the table have the place {where}; several applications need a column app"
        )
    # In the order of the table, which is that of the sweep's values.
    values = {name: table[name].drop_duplicates().tolist() for name in dimensions}
    values["model"] = [name for name in values["model"] if name]
    full = pd.MultiIndex.from_product(list(values.values()), names=dimensions)
    rows = rows.reindex(full)
    shape = [len(one) for one in values.values()]
    kept = [
        name
        for name in rows.columns
        if name not in (*axes, "point") and pd.api.types.is_numeric_dtype(rows[name])
    ]
    data: dict[str, Any] = {
        name: (dimensions, rows[name].to_numpy(dtype=float).reshape(shape)) for name in kept
    }
    coordinates: dict[str, Any] = {
        name: (name, _plain(value), _described(name)) for name, value in values.items()
    }
    if not is_grid:
        at = points.set_index("point").loc[values["point"]]
        for axis in axes:
            coordinates[axis] = ("point", _plain(at[axis].to_numpy()), _described(axis))
    if "kernel" in labels and "app" not in labels:
        names = table.drop_duplicates("kernel").set_index("kernel")["name"]
        coordinates["name"] = ("kernel", names.loc[values["kernel"]].to_numpy(dtype=str))
    return xarray.Dataset(data, coordinates)


def _is_dimension(table: pd.DataFrame, name: str) -> bool:
    return name in ("kernel", "model") or varies(table[name])


def _plain(values: Any) -> Any:
    """Return labels as an array of numbers or of text, which files of xarray's formats take."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object else array


def _described(name: str) -> dict[str, str]:
    fields = Gpu.fields()
    return {"description": fields[name]} if name in fields else {}
