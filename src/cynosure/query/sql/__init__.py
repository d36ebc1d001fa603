"""SQL as text, and what it is: parsed, allowed, bound to tables. No I/O, no engine, no rows.

    parse_statement(text, parameters) ─► Statement                              parse.py
    mentions_of(tree) ─► TableMention …                                          mentions.py
    bind_query(tree, tables, session) ─► BoundQuery: tree over views, needs      binding.py
    redact(tree) ─► text without constants, for the audit                        redact.py

- `statements.py`    what a statement can be; `commands.py` SHOW and DESCRIBE
- `bound.py`         what is known about tables, and what a bound query needs of each
- `tokens.py`        size, characters and nesting, before anything is parsed; `parameters.py` values of `?`
- `dialect.py`       Spark's SQL with functions left as they were written; and how it is written to engines;
                     `grammar.py` joins and precedence as Spark has them
- `allow.py`         the check by node, part, function and type; `nodes.py`, `functions.py` its lists;
                     `refused_functions.py` what to write instead
- `names.py`         what a name with few parts is relative to
- `bind_names.py`, `bind_relations.py`, `scope.py`, `outputs.py`   what names mean, as Spark has it;
                     `show_joined.py` columns of joins, `distinct.py` what DISTINCT is sorted by
- `predicates.py`    what scans may apply; `literals.py` constants of a column's exact type
- `session.py`       literals in place of current_user() and its like
- `places.py`, `edits.py`   where nodes are in the text; many of them replaced at once

A maintainer must not break: allowing is a list of what is known, node by node and function by function;
whatever is not on it is refused. What engines get is written anew from the checked tree, never the user's
text, and is read and checked once more (`parse.check_written`).
"""
