"""Names in expressions: what they stand for, and what is asked of tables by them.

A maintainer must not break: every name of an expression is resolved, those in subqueries by their own scope.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from cynosure.iceberg.types import StructType
from cynosure.query.errors import SqlError
from cynosure.query.sql.outputs import Outputs, ask_all, is_window, path_of, requalify
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.scope import Found, Out, Scope
from cynosure.query.sql.session import is_session_name, put_name

QUERY: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)

Names = dict[str, Outputs]
"""Columns of common table expressions, by their names in lower case."""


class NameBinder(ABC):
    """Binds expressions."""

    _left_out = 0
    """How often a `*` was without columns because their types are not supported."""

    @abstractmethod
    def bind_query(self, node: exp.Expr, outer: Scope | None, names: Names) -> Outputs:
        """Bind a query, in place; `outer` is what a correlated one may name."""

    def _bind_expressions(
        self,
        roots: Sequence[exp.Expr],
        scope: Scope,
        names: Names,
        *,
        prefer_given: bool = False,
        is_select: bool = True,
    ) -> None:
        pending: list[exp.Expr] = list(roots)
        while pending:
            node = pending.pop()
            if isinstance(node, QUERY):
                outs = self.bind_query(node, scope, names)
                if not isinstance(node.parent, exp.Exists):
                    ask_all(outs)
                continue
            if isinstance(node, exp.Dot | exp.Column):
                path = path_of(node)
                if path is not None:
                    self._bind_name(node, path, scope, prefer_given=prefer_given, is_select=is_select)
                    continue
            if isinstance(node, exp.Star):
                if not isinstance(node.parent, exp.Count):
                    self._ask_star(scope)
                continue
            pending.extend(node.iter_expressions())

    def _bind_name(
        self,
        node: exp.Expr,
        path: list[exp.Identifier],
        scope: Scope,
        *,
        prefer_given: bool,
        is_select: bool,
    ) -> None:
        parts = [each.name for each in path]
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            self._bind_star(node, scope, is_item=False)
            return
        try:
            found = scope.resolve(parts, prefer_given=prefer_given, is_select=is_select)
        except SqlError as error:
            if len(parts) == 1 and is_session_name(parts[0]):
                put_name(node, parts[0])
                return
            if len(parts) <= 2 and is_window(parts, node):
                return
            _put_at(error, node)
            raise
        if found.is_guess and len(parts) == 1 and is_session_name(parts[0]):
            raise SqlError(
                "This may be a column or a function",
                fix=f"Write {parts[0]}(), or the table before it.",
                name=parts[0],
                **place_of_node(node),
            )
        source = found.source
        if source is not None and source.alias and found.qualifier_length:
            written = parts[found.qualifier_length - 1].lower()
            if found.qualifier_length > 1 or written != source.alias.lower():
                requalify(node, path, found.qualifier_length, source.alias)

    def _bind_star(self, node: exp.Expr, scope: Scope, *, is_item: bool = True) -> tuple[list[Out], bool]:
        """Columns of `*` or `t.*`, and whether there are more that are not known."""
        star = node.this if isinstance(node, exp.Column) else node
        if isinstance(node, exp.Column):
            qualifier = [part.name for part in node.parts[:-1]]
            sources = scope.find_sources(qualifier)
            if not sources:
                try:
                    found = scope.resolve(qualifier)
                except SqlError as error:
                    _put_at(error, node)
                    raise
                return _fields_of_struct(found, qualifier, star)
            if len(sources) == 1 and sources[0].alias and len(qualifier) > 1:
                node.replace(
                    exp.Column(this=star.copy(), table=exp.Identifier(this=sources[0].alias, quoted=True))
                )
            outs = [each.out for each in (*scope.covered, *scope.shown) if each.source in sources]
        else:
            sources = scope.visible()
            if not sources:
                raise SqlError(
                    "There is nothing that * could stand for", fix="Write FROM.", **place_of_node(node)
                )
            outs = [each.out for each in scope.shown]
        left = _leave_out(star, outs, is_open=any(each.is_open for each in sources))
        outs = [out for out in left if out.is_supported]
        self._left_out += len(outs) < len(left)
        if not is_item:
            for out in outs:
                out.ask()
        return outs, any(each.is_open for each in sources)

    def _ask_star(self, scope: Scope) -> None:
        for source in scope.visible():
            source.ask_all()


def _put_at(error: SqlError, node: exp.Expr) -> None:
    if place := place_of_node(node):
        error.put_at(**place)


def _fields_of_struct(found: Found, qualifier: Sequence[str], star: exp.Expr) -> tuple[list[Out], bool]:
    """Columns of `s.*`, and whether it is not known here what they are."""
    type_ = found.out.field.type if found.out is not None and found.out.field is not None else None
    for name in qualifier[found.qualifier_length + 1 :]:
        fields = type_.fields if isinstance(type_, StructType) else ()
        type_ = next((each.type for each in fields if each.name.lower() == name.lower()), None)
    if not isinstance(type_, StructType):
        return [], True
    return _leave_out(star, [Out(each.name) for each in type_.fields], is_open=False), False


def _leave_out(star: exp.Expr, outs: list[Out], *, is_open: bool) -> list[Out]:
    """Columns of a star without those that EXCEPT names. A field of a column leaves that column there."""
    dropped: set[str] = set()
    for each in star.args.get("except_") or ():
        path = path_of(each) or [each]
        names = [part.name.lower() for part in path]
        # `EXCEPT (t.id)` and `EXCEPT (s.field)` look alike; the engine decides where it could be both.
        wanted = (
            names[0] if len(names) == 1 or any(out.name.lower() == names[0] for out in outs) else names[1]
        )
        found = [out for out in outs if out.name.lower() == wanted]
        if not found and not is_open:
            raise SqlError(
                "There is no such column to leave out",
                fix="Correct EXCEPT.",
                name=".".join(part.name for part in path),
                **place_of_node(each),
            )
        for out in found:
            out.ask()
        if wanted == names[-1]:
            dropped.add(wanted)
    return [out for out in outs if out.name.lower() not in dropped]
