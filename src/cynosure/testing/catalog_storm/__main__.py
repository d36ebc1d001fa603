"""`python -m cynosure.testing.catalog_storm serve`; see the room's docstring."""

import argparse
import sys

from cynosure.server.settings import SettingsSource
from cynosure.testing.catalog_storm.phoenix import rise_again


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m cynosure.testing.catalog_storm")
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("--data", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--store", default=None)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    overrides = dict(each.split("=", 1) for each in options.set)
    overrides |= {"server.data_dir": options.data, "server.port": options.port}
    if options.store is not None:
        overrides["persistence.url"] = options.store
    sys.exit(rise_again(SettingsSource(None, overrides)))


if __name__ == "__main__":
    main()
