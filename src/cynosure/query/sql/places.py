"""Where in the text of a statement a node is."""

from sqlglot import exp


def place_of_node(node: exp.Expr) -> dict[str, int]:
    """Line and column of its first word, as errors carry them; empty when the parser did not say.

    Some nodes have no words of their own that the parser remembers: then where the one around them begins.
    """
    around: exp.Expr | None = node
    while around is not None:
        found = _find_first(around)
        if found is not None:
            return {"line": found[0], "column": found[1]}
        around = around.parent
    return {}


def _find_first(node: exp.Expr) -> tuple[int, int] | None:
    found: tuple[int, int] | None = None
    for each in node.walk():
        meta = each.meta if each._meta else {}
        if "line" in meta and "start" in meta:
            place = (meta["line"], max(meta["col"] - (meta["end"] - meta["start"]), 1))
            found = place if found is None else min(found, place)
    return found
