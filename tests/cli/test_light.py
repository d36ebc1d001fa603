"""Requests of httpx do not look through the path for a module that is not there."""

import subprocess
import sys

COUNTING = """
import sys
from cynosure.cli import light
from httpcore._synchronization import current_async_library

class Counting:
    asked = []
    def find_spec(self, name, path=None, target=None):
        self.asked.append(name)

async def main():
    sys.meta_path.insert(0, Counting())
    assert [current_async_library() for _ in range(3)] == ["asyncio"] * 3

import asyncio
asyncio.run(main())
print(Counting.asked.count("sniffio"))
"""


def test_a_missing_module_is_not_looked_for_with_every_request() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True)

    # Once where it is installed, when it is imported.
    assert int(done.stdout) <= 1
