"""A query bound to tables: names checked, views put in, mentions replaced, and what each mention needs.

    SELECT o.id FROM shop.orders o WHERE o.total > 5
    ─► SELECT o.id FROM cyn_0 AS o WHERE o.total > 5      needs of cyn_0: id, total; total > 5

Nothing else of the tree changes: no rule of an optimiser runs on it.

A maintainer must not break: after binding no name of a table is left but `cyn_<number>` and the query's own
names. The tree is checked again at the end (`allow.check_query`), views included.
"""

from sqlglot import exp

from cynosure.iceberg.expressions.nodes import TRUE, And, Expression
from cynosure.query.engine import SessionValues
from cynosure.query.errors import SqlError
from cynosure.query.sql.allow import check_query
from cynosure.query.sql.bind_names import QUERY, Names
from cynosure.query.sql.bind_relations import RelationBinder
from cynosure.query.sql.bound import BoundQuery, MentionNeed, Tables
from cynosure.query.sql.distinct import check_distinct
from cynosure.query.sql.mentions import tables_of
from cynosure.query.sql.outputs import (
    Outputs,
    ask_all,
    columns_of_values,
    has_positions,
    is_cut,
    is_field,
    is_generator,
    is_plain,
    name_of_cast,
    names_of_item,
    path_of,
    rename,
)
from cynosure.query.sql.parse import check_written
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.scope import Out, Scope, Source
from cynosure.query.sql.session import put_session


def bind_query(tree: exp.Expression, tables: Tables, session: SessionValues | None = None) -> BoundQuery:
    """The bound query. `tree` is left as it is; `mentions_of` has numbered its mentions."""
    copy = tree.copy()
    binder = _Binder(tables)
    try:
        outs = binder.bind_query(copy, None, {})
        for out in outs.columns:
            if out.is_supported:
                out.ask()
        binder.settle_stars()
        if session is not None:
            put_session(copy, session)
        check_query(copy)
        binder.check_tables(copy)
        check_written(copy)
    except RecursionError as error:
        raise SqlError("The statement is nested too deeply", fix="Nest less, or use fewer views.") from error
    names = tuple(out.name for out in outs.columns if out.is_supported)
    return BoundQuery(copy, binder.needs(), names)


class _Binder(RelationBinder):
    def bind_query(self, node: exp.Expr, outer: Scope | None, names: Names) -> Outputs:
        names = self._bind_with(node, outer, names)
        match node:
            case exp.Select():
                return self._bind_select(node, outer, names)
            case exp.SetOperation():
                return self._bind_set(node, outer, names)
            case exp.Values():
                self._bind_expressions(node.expressions, Scope(outer), names)
                outs = Outputs(columns_of_values(node))
                self._bind_modifiers(node, outs, outer, names)
                return outs
            case exp.Subquery():
                if not isinstance(node.this, QUERY):
                    raise SqlError("A query is missing", fix="Write SELECT.", **place_of_node(node))
                outs = self.bind_query(node.this, outer, names)
                self._bind_modifiers(node, outs, outer, names)
                if is_cut(node):
                    # `(SELECT …) LIMIT 1`: which rows are left is decided before any condition above it.
                    outs.pushed = frozenset()
                return outs
        raise SqlError("A query is missing", fix="Write SELECT.", **place_of_node(node))

    def _bind_with(self, node: exp.Expr, outer: Scope | None, names: Names) -> Names:
        with_ = node.args.get("with_")
        if with_ is None:
            return names
        names = dict(names)
        own: set[str] = set()
        for each in with_.expressions:
            name = each.alias.lower()
            if name in own:
                raise SqlError(
                    "Two common table expressions have one name",
                    fix="Rename one.",
                    name=each.alias,
                    **place_of_node(each.args["alias"]),
                )
            own.add(name)
            outs = self.bind_query(each.this, outer, names)
            names[name] = rename(outs, each.args.get("alias"))
        return names

    def _bind_set(self, node: exp.SetOperation, outer: Scope | None, names: Names) -> Outputs:
        # Chains of them are long and lean to the left: without recursion.
        sides: list[exp.Expr] = []
        left: exp.Expr = node
        while isinstance(left, exp.SetOperation) and (left is node or left.args.get("with_") is None):
            sides.append(left.expression)
            if left is not node:
                self._bind_modifiers(left, None, outer, names)
            left = left.this
        first = self.bind_query(left, outer, names)
        bound = [first, *(self.bind_query(each, outer, names) for each in reversed(sides))]
        for outs in bound:
            ask_all(outs)
        is_open = any(each.is_open for each in bound)
        outs = Outputs([Out(each.name) for each in first.columns if each.is_supported], is_open=is_open)
        outs.qualifiers = first.qualifiers
        self._bind_modifiers(node, outs, outer, names)
        return outs

    def _bind_modifiers(
        self, node: exp.Expr, outs: Outputs | None, outer: Scope | None, names: Names
    ) -> None:
        """ORDER BY and its like above a whole query: they see its columns only."""
        scope = Scope(outer)
        columns, is_open = (outs.columns, outs.is_open) if outs is not None else ([], True)
        scope.add(Source(outs.qualifiers if outs is not None else [], columns, is_open=is_open))
        for part in ("order", "sort", "cluster", "distribute", "limit", "offset"):
            if (each := node.args.get(part)) is not None:
                self._bind_expressions([each], scope, names)

    def _bind_select(self, node: exp.Select, outer: Scope | None, names: Names) -> Outputs:
        scope = Scope(outer)
        from_ = node.args.get("from_")
        if from_ is not None:
            self._bind_relation(from_.this, scope, names)
        self._bind_joins(node, scope, names)
        for lateral in node.args.get("laterals") or ():
            self._bind_lateral(lateral, scope, names)
        where = node.args.get("where")
        if where is not None:
            self._bind_expressions([where], scope, names, is_select=False)
            self._push(where.this, scope, lambda source: not source.is_null_side)
        outs = self._bind_items(node, scope, names)
        group = node.args.get("group")
        if group is not None:
            self._bind_expressions([group], scope, names)
        for part in ("having", "order", "sort", "cluster", "distribute"):
            if (each := node.args.get(part)) is not None:
                self._bind_expressions([each], scope, names, prefer_given=True)
        if node.args.get("distinct") is not None:
            check_distinct(node, scope)
        for part in ("limit", "offset"):
            if (each := node.args.get(part)) is not None:
                self._bind_expressions([each], scope, names)
        self._bind_expressions(node.args.get("windows") or [], scope, names)
        if node.args.get("distinct") is not None or group is not None or has_positions(node):
            ask_all(outs)
        outs.qualifiers = frozenset(
            each for source in scope.visible() for each in source.qualifiers if len(each) == 1
        )
        if is_plain(node):
            seen = [each for each in scope.visible() if not each.is_null_side]
            outs.pushed = frozenset().union(*(each.pushed for each in seen))
        return outs

    def _bind_items(self, node: exp.Select, scope: Scope, names: Names) -> Outputs:
        outs: list[Out] = []
        is_open = False
        for item in node.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                found, more = self._bind_star(item, scope)
                outs += found
                self._stars.append(found)
                is_open = is_open or more
                for out in found:
                    scope.given.add(out.name, out, is_new=False)
                if more:
                    scope.given.add_unknown()
                continue
            self._bind_expressions([item], scope, names)
            named = names_of_item(item)
            is_open = is_open or named is None
            origin = self._origin_of(item, scope) if named is not None and len(named) == 1 else None
            for name in named or ():
                outs.append(
                    Out(name, mention=origin.mention, field=origin.field) if origin is not None else Out(name)
                )
                is_new = isinstance(item, exp.Alias | exp.Aliases) or is_field(item, origin, scope)
                scope.given.add(name, origin, is_new=is_new)
                if is_new:
                    scope.aliases.add(name.lower())
            if named is None:
                outs.append(Out(""))
                if is_generator(item):
                    scope.given.add_unknown()
                elif name := name_of_cast(item, scope):
                    scope.given.add(name, None, is_new=True)
                else:
                    scope.given.add_unnamed()
        return Outputs(outs, is_open=is_open)

    def _origin_of(self, item: exp.Expr, scope: Scope) -> Out | None:
        """The column of a table that an item is, if it is nothing but that."""
        node = item.this if isinstance(item, exp.Alias) else item
        path = path_of(node) if isinstance(node, exp.Column) else None
        return scope.find_column([each.name for each in path]) if path else None

    # Results.

    def check_tables(self, tree: exp.Expr) -> None:
        """No table is left but those of mentions."""
        known = {f"cyn_{number}" for number in self._mentions}
        for each in tables_of(tree):
            if (
                each.name not in known
                or each.args.get("db") is not None
                or each.args.get("version") is not None
            ):
                raise SqlError("A table was not resolved", fix="Send the statement again.")

    def settle_stars(self) -> None:
        """A `*` that nobody asks anything of still has a column: engines know no table without one."""
        for outs in self._stars:
            if outs and not any(out.is_asked for out in outs):
                outs[0].ask()

    def needs(self) -> tuple[MentionNeed, ...]:
        """Of all mentions, by number."""
        needs = []
        for number, each in sorted(self._mentions.items()):
            predicate: Expression = TRUE
            # A view that is there twice as one relation: what one place filters, the other may need.
            for one in each.predicates if each.times == 1 else ():
                predicate = one if predicate is TRUE else And(predicate, one)
            columns = tuple(out.field.id for out in each.outs if out.is_asked and out.field is not None)
            needs.append(MentionNeed(each.mention, f"cyn_{number}", columns, predicate))
        return tuple(needs)
