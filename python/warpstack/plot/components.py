"""The look of a CPI stack's components, and of the memory levels that some are named after, in all pictures.

The palette of models is another one (`warpstack.plot.style`).
"""

from __future__ import annotations

#: Colours that stay apart for colour-blind readers and in grey print (after Okabe and Ito).
COLOURS = {
    "base": "#999999",
    "dep": "#F0E442",
    "l1": "#56B4E9",
    "l2": "#0072B2",
    "dram": "#003a5c",
    "mshr": "#D55E00",
    "noc": "#E69F00",
    "queue": "#CC79A7",
}
#: Hatches for grey print, where neighbours in a stack must differ.
HATCHES = {
    "base": "",
    "dep": "..",
    "l1": "",
    "l2": "//",
    "dram": "",
    "mshr": "xx",
    "noc": "",
    "queue": "\\\\",
}
LABELS = {
    "base": "BASE: issue",
    "dep": "DEP: arithmetic",
    "l1": "L1 latency",
    "l2": "L2 latency",
    "dram": "DRAM latency",
    "mshr": "MSHR: waiting for MSHRs",
    "noc": "NOC: queueing",
    "queue": "QUEUE: DRAM queueing",
}
#: The levels of memory in rooflines and in the latency of misses: the same colours.
LEVELS = {"L1": COLOURS["l1"], "L2": COLOURS["l2"], "DRAM": COLOURS["dram"]}
