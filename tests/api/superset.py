"""Whether one OpenAPI document serves all that another one promises.

Schemas are compared as far as the two documents use them: types, properties, alternatives, enumerations.
`null` is left out of the comparison: ours takes it for everything that is optional.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


class Comparison:
    """Collects what `ours` lacks of `theirs`."""

    def __init__(self, ours: Document, theirs: Document) -> None:
        self._ours = ours
        self._theirs = theirs
        self.lacks: list[str] = []
        self.compared = 0
        """Properties that were looked at, so that a test can tell a comparison from a walk past nothing."""
        self._seen: set[tuple[str, str, bool]] = set()

    def compare_paths(self, base: str) -> None:
        for path, item in self._theirs["paths"].items():
            shared = item.get("parameters", [])
            for method, operation in item.items():
                if method == "parameters":
                    continue
                place = f"{method.upper()} {path}"
                found = self._ours["paths"].get(base + path, {}).get(method)
                if found is None:
                    self.lacks.append(f"{place}: not served")
                    continue
                self._compare_operation(place, found, operation, [*shared, *operation.get("parameters", [])])

    def _compare_operation(
        self, place: str, found: Document, wanted: Document, parameters: list[Document]
    ) -> None:
        if found["operationId"] != wanted["operationId"]:
            self.lacks.append(f"{place}: called {found['operationId']}, not {wanted['operationId']}")
        known = {(each["name"], each["in"]): each for each in found.get("parameters", [])}
        for each in parameters:
            parameter = known.get((each["name"], each["in"]))
            where = f"{place} parameter {each['name']}"
            if parameter is None:
                self.lacks.append(f"{where}: missing")
                continue
            if parameter["required"] and not each.get("required", False):
                self.lacks.append(f"{where}: required")
            self._compare(where, parameter["schema"], each["schema"], is_request=True)
        if body := wanted.get("requestBody"):
            offered = found.get("requestBody")
            if offered is None:
                self.lacks.append(f"{place}: reads no body")
            else:
                # Every body of theirs has content in use, also where they forgot to say that it is required.
                self._compare(f"{place} body", _schema(offered), _schema(body), is_request=True)
        elif found.get("requestBody", {}).get("required"):
            self.lacks.append(f"{place}: wants a body")
        for status, response in wanted["responses"].items():
            answer = self._resolve(self._ours, found["responses"].get(str(status)))
            if answer is None:
                self.lacks.append(f"{place}: answer {status} is not described")
            elif "content" in response:
                self._compare(f"{place} {status}", _schema(answer), _schema(response), is_request=False)

    def _compare(self, place: str, ours: Any, theirs: Any, *, is_request: bool) -> None:
        key = (str(ours), str(theirs), is_request)
        if key in self._seen:
            return
        self._seen.add(key)
        found = list(self._alternatives(self._ours, ours))
        for wanted in self._alternatives(self._theirs, theirs):
            partner = _partner(found, wanted)
            if partner is None:
                self.lacks.append(f"{place}: no {_kind(wanted) or wanted.get('type')}")
            else:
                self._compare_one(f"{place}{_kind(wanted)}", partner, wanted, is_request=is_request)

    def _compare_one(self, place: str, ours: Document, theirs: Document, *, is_request: bool) -> None:
        if theirs.get("type") != ours.get("type") and ours.get("type") is not None:
            self.lacks.append(f"{place}: {ours.get('type')} instead of {theirs.get('type')}")
            return
        if _is_open(ours):
            self.compared += len(theirs.get("properties", {}))
            return
        if "enum" in theirs and "enum" in ours:
            missing = set(theirs["enum"]) - set(ours["enum"])
            if missing:
                self.lacks.append(f"{place}: values {sorted(missing)} missing")
        if "items" in theirs:
            self._compare(f"{place}[]", ours.get("items", {}), theirs["items"], is_request=is_request)
        more_required = set(ours.get("required", ())) - set(theirs.get("required", ()))
        less_required = set(theirs.get("required", ())) - set(ours.get("required", ()))
        if is_request and more_required:
            self.lacks.append(f"{place}: requires {sorted(more_required)}")
        if not is_request and less_required:
            self.lacks.append(f"{place}: may leave out {sorted(less_required)}")
        tag = theirs.get("tag", ("", ""))[0]
        for name, schema in theirs.get("properties", {}).items():
            self.compared += 1
            if name == tag:
                continue  # It is what the partner was chosen by.
            offered = ours.get("properties", {}).get(name)
            if offered is None:
                self.lacks.append(f"{place}.{name}: missing")
                continue
            self._compare(f"{place}.{name}", offered, schema, is_request=is_request)

    def _alternatives(self, document: Document, schema: Any) -> Iterator[Document]:
        """The plain schemas that a value may have, each with all that it inherits."""
        schema = self._resolve(document, schema)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                for each in schema[word]:
                    yield from self._alternatives(document, each)
                return
        mapping = schema.get("discriminator", {}).get("mapping", {})
        if mapping and "allOf" not in schema:
            for tag, reference in mapping.items():
                merged = self._merge(document, {"$ref": reference})
                yield {**merged, "tag": (schema["discriminator"]["propertyName"], tag)}
            return
        merged = self._merge(document, schema)
        if merged.get("type") != "null":
            yield merged

    def _merge(self, document: Document, schema: Any) -> dict[str, Any]:
        schema = self._resolve(document, schema)
        merged: dict[str, Any] = {
            "type": schema.get("type"),
            "properties": {},
            "required": [],
            **{word: schema[word] for word in ("enum", "items") if word in schema},
        }
        for each in (*schema.get("allOf", ()), {k: v for k, v in schema.items() if k != "allOf"}):
            part = self._merge(document, each) if "$ref" in each or "allOf" in each else each
            merged["type"] = merged["type"] or part.get("type")
            merged["properties"].update(part.get("properties", {}))
            merged["required"] = [*merged["required"], *part.get("required", ())]
        for name, value in merged["properties"].items():
            if len(enum := value.get("enum", ())) == 1 and name in ("type", "storageType"):
                merged["tag"] = (name, enum[0])
        return merged

    def _resolve(self, document: Document, schema: Any) -> Any:
        while schema is not None and "$ref" in schema:
            node: Any = document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                node = node[part]
            schema = node
        return schema


def _schema(described: Document) -> Any:
    return described["content"]["application/json"]["schema"]


def _partner(found: list[Document], wanted: Document) -> Document | None:
    if (tag := wanted.get("tag")) is not None:
        return next((each for each in found if _fits(each, tag)), None)
    same = [each for each in found if each.get("type") in (wanted.get("type"), None)]
    return same[0] if same else None


def _fits(candidate: Document, tag: tuple[str, str]) -> bool:
    name, value = tag
    if _is_open(candidate):
        return True
    described = candidate["properties"].get(name, {})
    return value in (described.get("const"), *described.get("enum", ()))


def _is_open(schema: Document) -> bool:
    """An object that says nothing about its properties takes them all."""
    return schema["type"] == "object" and not schema["properties"]


def _kind(schema: Document) -> str:
    return f"<{schema['tag'][1]}>" if "tag" in schema else ""
