"""Every numbered promise has a test that names it, and tests name no promise that does not exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_invariant_is_cited_by_a_test() -> None:
    promised = set(re.findall(r"^- \*\*(I\d+)\*\*", (ROOT / "docs/invariants.md").read_text(), re.MULTILINE))
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/cynosure/testing").rglob("*.py")]
    cited = {
        number
        for path in sources
        if path != Path(__file__).resolve()
        for number in re.findall(r"\bI\d+\b", path.read_text())
    }

    assert promised - cited == set(), "promises without a test"
    assert cited - promised == set(), "tests that cite a promise which is not written down"
