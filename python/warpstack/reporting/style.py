"""The look of the report: light and dark, on paper, on a telephone."""

from __future__ import annotations

from warpstack.plot.components import COLOURS

__all__ = ["STYLE"]

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
  --link:#7cb8ff}
svg .r-dram{stroke:var(--ink)}}
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
.middle{text-anchor:middle}
svg [class^=c-]{stroke:var(--faint);stroke-width:.4}
.axis,.grid,.roof{fill:none;stroke:var(--faint)}
.grid{stroke:var(--rule);stroke-width:.6}
.roof{stroke-width:2.5}
.point{fill:var(--rule);stroke:var(--ink)}
svg.mark{display:inline-block;width:1em;min-width:1em;margin-right:.3em;vertical-align:-.15em}
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
""" + "".join(
    # Roofs are lines: the darkest colour would not be seen on the dark page.
    f".c-{part}{{fill:{colour};background:{colour}}}.r-{part}{{stroke:{colour}}}"
    for part, colour in COLOURS.items()
)
