"""MWP-CWP, the model that needs no trace (Hong and Kim, ISCA 2009).

``docs/explanation/mwp-cwp.md`` explains it.

Examples
--------
>>> from warpstack.models import mwp_cwp
>>> kernel = mwp_cwp.microbenchmark("Mb2", coalesced=True)
>>> round(mwp_cwp.predict(kernel, "quadro-fx5600").cpi, 1)
4.0
"""

from warpstack.models.mwp_cwp.coalescing import (
    Expression,
    Transactions,
    is_coalesced,
    symbols,
    transactions,
)
from warpstack.models.mwp_cwp.fitting import MICROBENCHMARKS, Fit, fit, microbenchmark
from warpstack.models.mwp_cwp.machine import Machine, machine, machines
from warpstack.models.mwp_cwp.measured import describe_trace
from warpstack.models.mwp_cwp.model import Estimate, KernelDescription, predict
from warpstack.models.mwp_cwp.static import M_FACTORS, describe_ptx, m_factor, static_instructions

__all__ = [
    "MICROBENCHMARKS",
    "M_FACTORS",
    "Estimate",
    "Expression",
    "Fit",
    "KernelDescription",
    "Machine",
    "Transactions",
    "describe_ptx",
    "describe_trace",
    "fit",
    "is_coalesced",
    "m_factor",
    "machine",
    "machines",
    "microbenchmark",
    "predict",
    "static_instructions",
    "symbols",
    "transactions",
]
