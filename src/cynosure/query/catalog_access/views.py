"""An answer of loadView as the query that its invoker runs.

A maintainer must not break: only the representation for Spark is taken. Another dialect's text may parse here
and mean something else.
"""

from cynosure.query.catalog_access.port import OpenedView, TableName
from cynosure.query.catalog_access.wire import LoadedView
from cynosure.query.errors import NotAllowed, NotReadable


def open_view(name: TableName, loaded: LoadedView) -> OpenedView:
    """The current version of a view. `NotAllowed` when it has no query for Spark."""
    metadata = loaded.metadata
    versions = {each.version_id: each for each in metadata.versions}
    schemas = {each.schema_id: each for each in metadata.schemas}
    version = versions.get(metadata.current_version_id)
    schema = None if version is None else schemas.get(version.schema_id)
    if version is None or schema is None:
        raise NotReadable(
            "The metadata of the view is not whole", fix="Have its owner replace it.", view=str(name)
        )
    for one in version.representations:
        if one.type == "sql" and one.dialect.lower() == "spark":
            return OpenedView(
                name=name,
                sql=one.sql,
                dialect="spark",
                columns=tuple(each.name for each in schema.fields),
                default_catalog=version.default_catalog or name.catalog,
                default_namespace=tuple(version.default_namespace),
            )
    raise NotAllowed(
        "The view has no query in the dialect of Spark",
        fix="Have its owner add a representation with the dialect `spark`.",
        view=str(name),
    )
