"""Hold a REST catalog to Iceberg's compatibility kit.

    python -m tests.engines.rck.run [URI [NAME=VALUE …]] [--strict] [--only REGEX] [--trace] [--federated]

Without an address, a server of ours is started on an empty directory and stopped afterwards; with
`--federated` its catalog is federated, and its remote is Iceberg's own REST server. NAME=VALUE are
properties of Iceberg's REST client (warehouse, credential, token, scope, header.X-…, s3.endpoint, …) or
switches of the kit:

    rck.requires-namespace-create=true     the server does not make the namespace of a new table by itself
    rck.overrides-requested-location=true  the server decides where tables live
    rck.supports-serverside-retry=false    the server does not retry commits

`--strict` adds what the kit leaves off: nested namespaces, names with dots, names with slashes.
The kit drops its own namespaces (ns, newdb, ns1, …) in the catalog it is pointed at: use an empty one.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cynosure.testing.catalog_server import RestCatalog
from tests.engines.java import ToolFailed
from tests.engines.rck.federated import FAILS_FEDERATED, serve_federated
from tests.engines.rck.kit import KitResult, run_kit
from tests.engines.rck.target import FAILS_BY_DESIGN, serve_for_kit


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="rck", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--uri", help="another way to give the address")
    parser.add_argument("target", nargs="*", metavar="URI or NAME=VALUE")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX", help="only tests whose name contains this")
    parser.add_argument("--trace", action="store_true", help="show the stack trace of each failure")
    parser.add_argument("--federated", action="store_true", help="ours, before Iceberg's own server")
    options = parser.parse_args(arguments)

    uris = [word for word in options.target if "=" not in word]
    if options.uri:
        uris.insert(0, options.uri)
    if len(uris) > 1:
        parser.error(f"several addresses: {' '.join(uris)}")
    properties = dict(word.split("=", 1) for word in options.target if "=" in word)

    started_s = time.monotonic()
    results = []
    with _target(uris, properties, is_federated=options.federated) as catalog:
        for result in run_kit(catalog.uri, catalog.properties, is_strict=options.strict, only=options.only):
            results.append(result)
            if result.outcome != "passed":
                _print_result(result, with_trace=options.trace)
    counts = Counter((mode, result.outcome) for result in results for mode in result.modes)
    for mode in ("stock", "strict") if options.strict else ("stock",):
        print(
            f"{mode}: {counts[mode, 'passed']} passed, {counts[mode, 'failed']} failed, "
            f"{counts[mode, 'skipped']} skipped"
        )
    print(f"{time.monotonic() - started_s:.0f} s")
    # On a foreign server nothing fails by our design.
    reasons = {} if uris else FAILS_FEDERATED if options.federated else FAILS_BY_DESIGN
    excused = {result.name for result in results if result.outcome == "failed"} & set(reasons)
    for name in sorted(excused):
        print(f"{name} fails by design: {reasons[name]}")
    return (
        0
        if results and all(result.outcome != "failed" or result.name in excused for result in results)
        else 1
    )


@contextmanager
def _target(uris: Sequence[str], properties: dict[str, str], *, is_federated: bool) -> Iterator[RestCatalog]:
    if uris:
        yield RestCatalog(uris[0], properties)
        return
    serve = serve_federated if is_federated else serve_for_kit
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as target:
        catalog = target.to_rest()
        yield RestCatalog(catalog.uri, {**catalog.properties, **properties})


def _print_result(result: KitResult, *, with_trace: bool) -> None:
    reason = " ".join(result.reason.split())
    print(f"{result.outcome:<8} {'+'.join(result.modes)} {result.name}: {reason[:300]}", flush=True)
    if with_trace and result.trace:
        print(result.trace)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ToolFailed as failed:
        sys.exit(f"rck: {failed}")
