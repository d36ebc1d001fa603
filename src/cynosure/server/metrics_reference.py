"""Generates docs/reference/metrics.md: `python -m cynosure.server.metrics_reference [--check]`.

Finds metrics by importing every module of the package whose source declares one, so a metric cannot be
forgotten on the page.
"""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import cynosure
from cynosure.common.telemetry.metrics import Gauge, Metric
from cynosure.server.reference_page import cell, publish

PAGE = Path("docs/reference/metrics.md")

_HEAD = """\
# Metrics

Generated from the declarations; edit those, then run `python -m cynosure.server.metrics_reference`.

Counters and histograms are sums over all workers of a run, also of those that have ended; gauges are
combined over the live workers as stated. How to scrape: [telemetry](../operations/telemetry.md).

| Metric | Kind | Labels | Meaning |
| --- | --- | --- | --- |
"""
_DECLARES = re.compile(r"telemetry\.metrics import|telemetry import .*metrics")


def render_page() -> str:
    """The whole page."""
    for module in _declaring_modules():
        importlib.import_module(module)
    rows = []
    for name, metric in sorted(Metric.declared.items()):
        kind = f"gauge, {metric.combine}" if isinstance(metric, Gauge) else metric.kind
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{name}` | {kind} | {labels} | {cell(metric.text)} |\n")
    return _HEAD + "".join(rows)


def _declaring_modules() -> Iterator[str]:
    """Modules that import the metrics module. Others stay unimported: a driver may not be installed."""
    root = Path(cynosure.__path__[0])
    for path in sorted(root.rglob("*.py")):
        name = ".".join(("cynosure", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        if not name.startswith("cynosure.testing") and _DECLARES.search(path.read_text(encoding="utf-8")):
            yield name


if __name__ == "__main__":
    sys.exit(publish(PAGE, render_page(), sys.argv[1:]))
