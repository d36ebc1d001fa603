"""What stands in FROM: tables, views, subqueries, joins, generators, pivots.

A maintainer must not break: a mention becomes `cyn_<number>` and nothing else; the query of a view is put in
whole, sees no name of the query around it, and gives its columns by the view's names.
"""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from cynosure.iceberg.expressions.nodes import Expression
from cynosure.query.errors import SqlError
from cynosure.query.sql.bind_names import NameBinder, Names
from cynosure.query.sql.bound import BoundTable, BoundView, TableMention, Tables
from cynosure.query.sql.mentions import MENTION
from cynosure.query.sql.outputs import Outputs, as_source, ask_all, renamed_to
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.predicates import predicates_of
from cynosure.query.sql.scope import Out, Scope, Source
from cynosure.query.sql.show_joined import show_joined

MAX_VIEW_DEPTH: Final = 20
MAX_VIEWS: Final = 200


def _is_nested(node: exp.Subquery) -> bool:
    """Whether there are relations in the parentheses, and no query."""
    inner = node.this
    if not isinstance(inner, exp.Subquery):
        return isinstance(inner, exp.Table)
    return any(inner.args.get(part) for part in ("alias", "joins", "laterals")) or _is_nested(inner)


class BoundMention:
    """A mention, and what is asked of it so far."""

    def __init__(self, mention: TableMention, table: BoundTable, outs: list[Out]) -> None:
        self.mention = mention
        self.table = table
        self.outs = outs
        self.predicates: list[Expression] = []
        self.times = 1


class RelationBinder(NameBinder):
    """Binds what is in FROM."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._mentions: dict[int, BoundMention] = {}
        self._stars: list[list[Out]] = []
        self._views = 0
        self._depth = 0

    def _bind_joins(self, node: exp.Expr, scope: Scope, names: Names) -> None:
        for join in node.args.get("joins") or ():
            before, width = list(scope.sources), len(scope.shown)
            self._bind_relation(join.this, scope, names)
            added = [each for each in scope.sources if each not in before]
            sides = (scope.shown[:width], scope.shown[width:])
            keys = self._bind_join(join, scope, before, added, names)
            show_joined(join, scope, sides, keys)

    def _bind_join(
        self, join: exp.Expr, scope: Scope, before: list[Source], added: list[Source], names: Names
    ) -> list[str]:
        """Names of the columns that are one on both sides, in lower case."""
        keys: list[str] = []
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        seen = [each for each in before if not each.is_hidden]
        if (join.args.get("method") or "").upper() == "NATURAL":
            right = {o.name.lower() for s in added for o in s.columns}
            names_before = [each.out.name.lower() for each in scope.shown if each.source not in added]
            for source in (*seen, *added):
                source.ask_all()
            keys = [name for name in dict.fromkeys(names_before) if name in right]
            for name in keys:
                self._merge(scope, name, seen, added)
        for column in join.args.get("using") or ():
            for group in (seen, added):
                if not any(each.find(column.name) or each.is_open for each in group):
                    raise SqlError(
                        "There is no such column on both sides of USING",
                        fix="Use ON.",
                        name=column.name,
                        **place_of_node(column),
                    )
            keys.append(column.name.lower())
            self._merge(scope, column.name.lower(), seen, added)
        on = join.args.get("on")
        if on is not None:
            self._bind_expressions([on], scope, names, is_select=False)
            sides = added if side not in ("RIGHT", "FULL") else []
            if not side and kind not in ("SEMI", "ANTI"):
                sides = [*sides, *seen]
            # Of both sides: a join in parentheses has null sides of its own.
            pushed = [each for each in sides if not each.is_null_side]
            self._push(join.args["on"], scope, lambda source: source in pushed)
        if kind in ("SEMI", "ANTI"):
            for source in added:
                source.is_hidden = True
        if side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI"):
            for source in added:
                source.is_null_side = True
        if side in ("RIGHT", "FULL"):
            for source in before:
                source.is_null_side = True
        return keys

    def _merge(self, scope: Scope, name: str, seen: list[Source], added: list[Source]) -> None:
        outs = [out for source in (*seen, *added) for out in source.find(name)]
        for out in outs:
            out.ask()
        scope.merged[name] = outs

    def _bind_relation(self, node: exp.Expr, scope: Scope, names: Names) -> None:
        match node:
            case exp.Table():
                source = self._bind_table(node, scope, names)
            case exp.Subquery() if _is_nested(node):
                self._bind_nested(node, scope, names)
                self._bind_behind(node, scope, names)
                return
            case exp.Lateral():
                self._bind_lateral(node, scope, names)
                return
            case exp.Subquery() | exp.Values():
                outs = self.bind_query(node, scope.outer, names)
                source = as_source(outs, node.args.get("alias"))
            case _:
                raise SqlError("A table is missing", fix="Name one.", **place_of_node(node))
        source = self._bind_pivots(node, source, scope, names)
        scope.add(source)
        self._bind_behind(node, scope, names)

    def _bind_behind(self, node: exp.Expr, scope: Scope, names: Names) -> None:
        """Joins in parentheses stand behind the first of what is joined."""
        self._bind_joins(node, scope, names)
        for lateral in node.args.get("laterals") or ():
            self._bind_lateral(lateral, scope, names)

    def _bind_nested(self, node: exp.Subquery, scope: Scope, names: Names) -> None:
        """`(a JOIN b)`: its sources are seen as they are, unless it has a name."""
        inner = Scope(scope.outer)
        self._bind_relation(node.this, inner, names)
        alias = node.args.get("alias")
        if alias is None and not node.args.get("pivots"):
            scope.take_over(inner)
            return
        outs = Outputs([each.out for each in inner.shown], is_open=inner.is_open)
        scope.add(self._bind_pivots(node, as_source(outs, alias), scope, names))

    def _bind_table(self, node: exp.Table, scope: Scope, names: Names) -> Source:
        if not isinstance(node.this, exp.Identifier | exp.Dot):
            self._bind_expressions([node.this], Scope(scope.outer), names)
            return as_source(Outputs([], is_open=True), node.args.get("alias"))
        mention: TableMention | None = node.meta.get(MENTION)
        if mention is None:
            own = names.get(node.name.lower())
            if own is None or node.args.get("db") is not None:
                raise SqlError("A table was not numbered", fix="Send the statement again.")
            source = as_source(own, node.args.get("alias"), name=node.name)
            # It may be read in several places, each with another condition.
            source.pushed = frozenset()
            return source
        bound = self._tables.get(mention.number)
        if bound is None:
            raise SqlError("A table was not resolved", fix="Send the statement again.", **place_of_node(node))
        if isinstance(bound, BoundView):
            return self._bind_view(node, mention, bound, scope)
        return self._bind_mention(node, mention, bound, scope)

    def _bind_mention(
        self, node: exp.Table, mention: TableMention, table: BoundTable, scope: Scope
    ) -> Source:
        number = mention.number
        known = self._mentions.get(number)
        if known is None:
            outs = [Out(each.name, mention=number, field=each) for each in table.schema.fields]
            self._mentions[number] = BoundMention(mention, table, outs)
        else:
            known.times += 1
            outs = known.outs
        alias = node.args.get("alias")
        view = f"cyn_{number}"
        node.set("this", exp.Identifier(this=view, quoted=False))
        for part in ("db", "catalog", "version"):
            node.set(part, None)
        given = Outputs(outs)
        given.pushed = frozenset({number})
        if alias is not None:
            return as_source(given, alias)
        parts = mention.parts
        source = Source([parts[at:] for at in range(len(parts))], outs)
        source.pushed = given.pushed
        source.alias = parts[-1]
        if any((parts[-1].lower(),) in each.qualifiers for each in scope.sources):
            source.alias = view
        else:
            node.set("alias", exp.TableAlias(this=exp.Identifier(this=parts[-1], quoted=True)))
        return source

    def _bind_view(self, node: exp.Table, mention: TableMention, view: BoundView, scope: Scope) -> Source:
        self._views += 1
        self._depth += 1
        if self._depth > MAX_VIEW_DEPTH or self._views > MAX_VIEWS:
            raise SqlError(
                "Views are nested too deeply, or name themselves",
                fix="Use fewer views.",
                name=view.shown,
                **place_of_node(node),
            )
        body = view.tree.copy()
        for each in body.walk():
            each._meta = {MENTION: each.meta[MENTION]} if each._meta and MENTION in each.meta else None
        left_out = self._left_out
        outs = self.bind_query(body, None, {})
        has_all = self._left_out == left_out
        self._depth -= 1
        alias = node.args.get("alias")
        parts = mention.parts
        name = alias.name if alias is not None else parts[-1]
        if alias is None and any((name.lower(),) in each.qualifiers for each in scope.sources):
            name = f"cyn_view_{mention.number}"
        query: exp.Expr = body
        columns = [each.lower() for each in view.columns]
        given = [out.name.lower() for out in outs.columns]
        table_alias = exp.TableAlias(this=exp.Identifier(this=name, quoted=True))
        is_open = outs.is_open
        if is_open or given != columns:
            ask_all(outs)
            if is_open or (len(given) == len(columns) and has_all):
                # By position, as Iceberg has it: the names are the view's own.
                outs = (
                    Outputs([Out(each) for each in view.columns])
                    if is_open
                    else renamed_to(view.columns, outs)
                )
                table_alias.set("columns", [exp.Identifier(this=each, quoted=True) for each in view.columns])
            elif len(set(given)) == len(given) and set(columns) <= set(given):
                # A `*` over a table that has got columns since, or has some that nobody can ask for.
                by_name = dict(zip(given, outs.columns, strict=True))
                picked = Outputs([by_name[each] for each in columns])
                picked.pushed = outs.pushed
                outs = renamed_to(view.columns, picked)
                inner = exp.Subquery(
                    this=body, alias=exp.TableAlias(this=exp.Identifier(this="v", quoted=True))
                )
                items = [exp.Column(this=exp.Identifier(this=each, quoted=True)) for each in view.columns]
                query = exp.Select(expressions=items, from_=exp.From(this=inner))
            else:
                raise SqlError(
                    "The columns of a view are not those that its query gives",
                    fix="Have the view made anew.",
                    name=view.shown,
                    **place_of_node(node),
                )
        subquery = exp.Subquery(this=query, alias=table_alias)
        for part in ("joins", "laterals", "pivots"):
            if node.args.get(part):
                subquery.set(part, node.args[part])
        node.replace(subquery)
        if alias is not None and alias.args.get("columns"):
            raise SqlError(
                "Columns of a view cannot be renamed behind its name",
                fix="Use a subquery.",
                **place_of_node(alias),
            )
        source = as_source(outs, None, name=name)
        if alias is None:
            source = Source([parts[at:] for at in range(len(parts))], outs.columns, is_open=outs.is_open)
            source.alias = name
            source.pushed = outs.pushed
        return source

    def _bind_lateral(self, node: exp.Expr, scope: Scope, names: Names) -> None:
        this = node.this
        alias = node.args.get("alias")
        if isinstance(this, exp.Subquery):
            outs = self.bind_query(this, scope, names)
            scope.add(as_source(outs, alias))
            return
        self._bind_expressions([this], scope, names, is_select=False)
        columns = [Out(each.name) for each in (alias.args.get("columns") or ())] if alias is not None else []
        qualifiers = [(alias.name,)] if alias is not None and alias.name else []
        scope.add(Source(qualifiers, columns, is_open=not columns))

    def _bind_pivots(self, node: exp.Expr, source: Source, scope: Scope, names: Names) -> Source:
        pivots = node.args.get("pivots") or ()
        for pivot in pivots:
            # Columns that are not named are grouped by: all of them count.
            source.ask_all()
            inner = Scope(scope.outer)
            inner.add(source)
            self._bind_expressions([*pivot.expressions, *pivot.args.get("fields", ())], inner, names)
            alias = pivot.args.get("alias")
            qualifiers = [(alias.name,)] if alias is not None else source.qualifiers
            source = Source(qualifiers, [], is_open=True)
        return source

    def _push(self, condition: exp.Expr, scope: Scope, accepts: Callable[[Source], bool]) -> None:
        """Remember which parts of a condition may be applied in scans."""
        for number, predicate in predicates_of(condition, scope, self._masked, accepts).items():
            self._mentions[number].predicates.append(predicate)

    def _masked(self, number: int) -> frozenset[int]:
        return self._mentions[number].table.masked
