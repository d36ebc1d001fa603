"""Documents of the extensions of Apache Polaris, ready to be compared with ours.

Each refers to the Iceberg document beside it, and to parameters and responses by name.
"""

from pathlib import Path
from typing import Any

import yaml

_ICEBERG = "../iceberg-rest-catalog-open-api.yaml"
_SAID_BY_DEFAULT = frozenset({"419", "503", "5XX"})
"""Errors that every operation has; ours says so with `default`."""


def load_document(specs: Path, name: str) -> dict[str, Any]:
    """A document whose references all lead into itself; parameters and responses are in place.

    Of errors only the statuses are kept: all of them have the one envelope.
    """
    document: dict[str, Any] = yaml.safe_load((specs / name).read_text().replace(_ICEBERG, ""))
    iceberg: dict[str, Any] = yaml.safe_load((specs / "iceberg-rest-catalog.yaml").read_text())
    components: dict[str, Any] = document.setdefault("components", {})
    for kind, described in iceberg["components"].items():
        components[kind] = {**described, **components.get(kind, {})}
    for schema in components["schemas"].values():
        if "properties" in schema:
            schema.setdefault("type", "object")
    for item in document["paths"].values():
        item["parameters"] = [_resolve(document, each) for each in item.get("parameters", [])]
        for method, operation in item.items():
            if method == "parameters":
                continue
            operation["parameters"] = [_resolve(document, each) for each in operation.get("parameters", [])]
            operation["responses"] = {
                str(status): _resolve(document, answer) if int(status) < 400 else {}
                for status, answer in operation["responses"].items()
                if str(status) not in _SAID_BY_DEFAULT
            }
    return document


def _resolve(document: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    while (reference := described.get("$ref")) is not None:
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        described = found
    return described
