"""Rules of this repository that no linter knows: `./dev check lock rules`.

- lock:   requirements/dev.txt pins exactly what pyproject.toml asks for
- words:  nothing in the repository names a place that exists on one machine only, or a package registry
- sizes:  a file of the package that no longer fits in one head is split

A maintainer must not break: every finding names the file, the line and what to do.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = "requirements/dev.txt"

FORBIDDEN_WORDS = {
    re.compile(
        r"(?<![\w.])/(?:home|Users|root|work)/\w"
    ): "a path of one machine; make it relative or an argument",
    re.compile(
        r"pypi\.org|pythonhosted\.org|registry\.npmjs|repo1?\.maven|proxy\.golang\.org"
    ): "a registry's address; tools know where packages come from",
    re.compile(r"--(?:extra-)?index-url"): "a registry's address; tools know where packages come from",
    re.compile(r"\.\./shared\b"): "a folder beside the repository; only .ci/run may look for it",
}
MAY_LOOK_BESIDE = {".ci/run"}

WARN_LINES, FAIL_LINES = 500, 800


def check_lock() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *(one for extra in project["project"]["optional-dependencies"].values() for one in extra),
        *(one for group in project["dependency-groups"].values() for one in group),
    ]
    pinned: dict[str, str] = {}
    direct: set[str] = set()
    name = ""
    for line in (ROOT / LOCK).read_text().splitlines():
        if pin := re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", line):
            name = canonicalize_name(pin[1])
            pinned[name] = pin[2]
        elif "cynosure (pyproject.toml" in line:
            direct.add(name)

    asked = {canonicalize_name(requirement.name): requirement for requirement in map(Requirement, wanted)}
    for name, requirement in asked.items():
        if name not in pinned:
            yield f"{LOCK}: {name} is not pinned. Run: ./dev lock"
        elif not requirement.specifier.contains(pinned[name], prereleases=True):
            yield f"{LOCK}: {name}=={pinned[name]} does not satisfy {requirement}. Run: ./dev lock"
    for name in sorted(direct - set(asked)):
        yield f"{LOCK}: {name} is pinned for pyproject.toml, which no longer asks for it. Run: ./dev lock"


def check_words() -> Iterator[str]:
    for path in list_files():
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # binary, or deleted and not yet committed
        for number, line in enumerate(text.splitlines(), start=1):
            for pattern, reason in FORBIDDEN_WORDS.items():
                if (found := pattern.search(line)) and not (
                    path in MAY_LOOK_BESIDE and found[0].startswith("..")
                ):
                    yield f"{path}:{number}: {found[0]!r} is {reason}"


def check_sizes() -> Iterator[str]:
    for path in list_files():
        if not (path.startswith("src/") and path.endswith(".py") and (ROOT / path).exists()):
            continue
        lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
        if lines > FAIL_LINES:
            yield f"{path}: {lines} lines. Split it; {FAIL_LINES} is the limit"
        elif lines > WARN_LINES:
            print(f"{path}: {lines} lines; a file above {WARN_LINES} should have a reason", file=sys.stderr)


def list_files() -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(filter(None, listed.split("\0")))


CHECKS = {"lock": check_lock, "words": check_words, "sizes": check_sizes}


if __name__ == "__main__":
    findings = [finding for name in sys.argv[1:] or CHECKS for finding in CHECKS[name]()]
    print("\n".join(findings), end="\n" if findings else "")
    sys.exit(1 if findings else 0)
