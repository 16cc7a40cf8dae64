"""The look of the report: light and dark, on paper, on a telephone."""

from __future__ import annotations

__all__ = ["STYLE"]

#: Colours of the components of a CPI stack, which are told apart with any colour vision.
_PARTS = {
    "base": "#4d4d4d",
    "dep": "#b3b3b3",
    "l1": "#009e73",
    "l2": "#56b4e9",
    "dram": "#0072b2",
    "mshr": "#e69f00",
    "noc": "#d55e00",
    "queue": "#cc79a7",
}

STYLE = """
:root{color-scheme:light dark;
  --ink:#1b1b1b;
  --paper:#fff;
  --faint:#5c5c5c;
  --rule:#d5d5d5;
  --band:#f5f5f5;
  --link:#0058a3}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;
  --paper:#161616;
  --faint:#a8a8a8;
  --rule:#3c3c3c;
  --band:#222;
  --link:#7cb8ff}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;
  color:var(--ink);
  background:var(--paper);
  margin:0 auto;
  padding:1rem;
  max-width:80rem}
h1{font-size:1.5rem;margin:.5rem 0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--rule)}
nav ul,.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:.5rem 0}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;width:100%}
th,td{text-align:left;
  padding:.2rem .6rem;
  border-bottom:1px solid var(--rule);
  white-space:pre;
  vertical-align:top}
th{color:var(--faint);font-weight:600}
.num{text-align:right;font-variant-numeric:tabular-nums}
tbody tr:nth-child(even){background:var(--band)}
code{font:.85em ui-monospace,monospace}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:0}
dt{color:var(--faint)}
dd{margin:0;overflow-wrap:anywhere}
svg{display:block;width:100%;min-width:26rem;height:auto;font:12px system-ui,sans-serif}
svg text{fill:var(--ink)}
.end{text-anchor:end}
.legend{font-size:.875rem}
.key{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border:1px solid var(--rule)}
li{margin:.3rem 0}
@media (max-width:30rem){dl{grid-template-columns:1fr}
dd{margin-bottom:.4rem}}
@media print{nav{display:none}
body{max-width:none;padding:0}
.scroll{overflow:visible}
h2{break-after:avoid}
th,td{white-space:pre-wrap}
svg{min-width:0}}
""" + "".join(f".c-{part}{{fill:{colour};background:{colour}}}" for part, colour in _PARTS.items())
