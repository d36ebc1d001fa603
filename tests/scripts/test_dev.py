"""`./dev`, the house rules behind `./dev check`, and the demo."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def test_help_names_every_command_that_dev_knows():
    script = (ROOT / "dev").read_text()
    known = set(
        re.findall(r"^  (\w+)(?: \| [^)]*)?\)", script.rpartition("case $command in")[2], re.MULTILINE)
    )
    listed = set(re.findall(r"^  \./dev (\w+)", run("./dev", "help").stdout, re.MULTILINE))
    assert listed == known - {"_check"}


def test_an_unknown_command_fails_and_shows_the_list():
    done = run("./dev", "frobnicate")
    assert done.returncode == 1
    assert "no such command: frobnicate" in done.stderr
    assert "./dev test" in done.stderr


@pytest.mark.parametrize("script", ["dev", ".ci/run"])
def test_scripts_are_executable_and_parse(script: str):
    assert (ROOT / script).stat().st_mode & 0o111
    assert run("bash", "-n", script).returncode == 0


# --- house rules, on a small repository ----------------------------------------------------------------

PROJECT = """
[project]
dependencies = ["alpha>=2"]
[project.optional-dependencies]
more = ["beta"]
[dependency-groups]
dev = ["gamma<3"]
"""
LOCK = """
alpha==2.1 \\
    --hash=sha256:00
    # via cynosure (pyproject.toml)
beta==1.0 ; python_version < "4" \\
    --hash=sha256:00
    # via
    #   cynosure (pyproject.toml)
    #   alpha
gamma==2.9 \\
    --hash=sha256:00
    # via cynosure (pyproject.toml:dev)
delta==1 \\
    --hash=sha256:00
    # via alpha
"""


class House:
    def __init__(self, root: Path) -> None:
        self.root = root
        run("git", "init", "-q", cwd=root)
        self.write("scripts/house_rules.py", (ROOT / "scripts/house_rules.py").read_text())
        self.write("pyproject.toml", PROJECT)
        self.write("requirements/dev.txt", LOCK)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def check(self, *rules: str) -> tuple[int, str]:
        done = run(sys.executable, "scripts/house_rules.py", *rules, cwd=self.root)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_clean_house_passes_every_rule(house: House):
    assert house.check() == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ('"beta"', '"beta", "epsilon"', "epsilon is not pinned"),
        ("alpha>=2", "alpha>=3", "alpha==2.1 does not satisfy alpha>=3"),
        ('"gamma<3"', "", "gamma is pinned for pyproject.toml, which no longer asks for it"),
    ],
)
def test_a_stale_lock_is_found(house: House, old: str, new: str, finding: str):
    house.write("pyproject.toml", PROJECT.replace(old, new))
    code, output = house.check("lock")
    assert code == 1
    assert finding in output


# In pieces, or this file itself would break the rule.
BINDING_WORDS = ["/ho" + "me/ann/x", "https://py" + "pi.org/simple", "--index" + "-url x", "../sha" + "red/x"]


@pytest.mark.parametrize("words", BINDING_WORDS)
def test_words_that_bind_to_one_machine_are_found_with_their_line(house: House, words: str):
    house.write("docs/guide.md", f"first\nsee {words}\n")
    code, output = house.check("words")
    assert code == 1
    assert output.startswith("docs/guide.md:2: ")


def test_ignored_files_are_not_judged(house: House):
    house.write(".gitignore", "notes\n")
    house.write("notes", "/ho" + "me/ann/x")
    assert house.check("words") == (0, "")


def test_only_ci_may_look_beside_the_repository(house: House):
    house.write(".ci/run", "test -d ../sha" + "red/specs")
    assert house.check("words") == (0, "")


def test_large_files_warn_and_huge_files_fail(house: House):
    house.write("src/a.py", "x\n" * 501)
    code, output = house.check("sizes")
    assert (code, "501 lines" in output) == (0, True)
    house.write("src/a.py", "x\n" * 801)
    assert house.check("sizes") == (1, "src/a.py: 801 lines. Split it; 800 is the limit\n")
