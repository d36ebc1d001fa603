"""Compare two stored results, or all suites stored for two commits.

    .venv/bin/python -m benchmarks.compare A B        A and B: result files, or commits with stored results

The ratio is B / A of each median: below 1, B needs less (for operations/s: does less).

A maintainer must not break: results of different options or machines are compared only with a warning.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results_file import Result, find, load, summarize
from benchmarks.tables import readable, show


def compare(before: Result, after: Result) -> dict[str, dict[str, str]]:
    """Rows of a ratio table: every candidate and column that both results have."""
    rows: dict[str, dict[str, str]] = {}
    for candidate in before.candidates:
        if candidate not in after.candidates:
            continue
        old, new = summarize(before.candidates[candidate]), summarize(after.candidates[candidate])
        rows[candidate] = {
            column: f"{readable(old[column])} → {readable(new[column])} ({new[column] / old[column]:.2f})"
            for column in old
            if column in new and old[column]
        }
    return rows


def _open(name: str) -> dict[str, Result]:
    path = Path(name)
    if path.is_file():
        result = load(path)
        return {result.suite: result}
    found = find(name)
    if not found:
        sys.exit(f"compare: {name} is neither a result file nor a commit with results in benchmarks/results")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="compare", description="Ratio tables of two results or commits.")
    parser.add_argument("before")
    parser.add_argument("after")
    asked = parser.parse_args(arguments)
    before, after = _open(asked.before), _open(asked.after)
    both = [suite for suite in before if suite in after]
    if not both:
        sys.exit("compare: the two have no suite in common")
    for suite in both:
        old, new = before[suite], after[suite]
        if old.machine != new.machine:
            print(
                f"warning: {suite} ran on different machines: {old.machine} and {new.machine}",
                file=sys.stderr,
            )
        if old.options != new.options:
            print(
                f"warning: {suite} ran with different options: {old.options} and {new.options}",
                file=sys.stderr,
            )
        title = f"{suite}: {old.commit[:10]} ({old.date[:10]}) → {new.commit[:10]} ({new.date[:10]})"
        show(title, "candidate", compare(old, new))


if __name__ == "__main__":
    main()
