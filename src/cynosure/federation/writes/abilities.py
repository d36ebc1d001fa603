"""What a kind of remote cannot be asked for, refused before it is asked.

Must not break: what can be said without the remote is said without it.
"""

from cynosure.catalog.names import Identifier, Namespace
from cynosure.federation.errors import NotOffered
from cynosure.federation.stages.names import require_possible
from cynosure.federation.writes.write import Scene


def require_namespace_name(scene: Scene, namespace: Namespace) -> None:
    """Refuse the name of a new namespace that the remote cannot have."""
    require_possible(scene.remote.abilities, namespace, field="namespace", levels=len(namespace))


def require_name(scene: Scene, name: Identifier, *, field: str = "name") -> None:
    """Refuse the name of a new table or view that the remote cannot have."""
    path, levels = (*name.namespace, name.name), len(name.namespace)
    require_possible(scene.remote.abilities, path, field=field, levels=levels)


def require_views(scene: Scene, operation: str) -> None:
    """Refuse what is about views, of a remote that has none."""
    if not scene.remote.abilities.has_views:
        raise NotOffered(scene.catalog.entity.name, operation=operation, fix="Keep views in another catalog.")


def require_view_registration(scene: Scene, operation: str) -> None:
    """Refuse to make a view of a file, of a remote that cannot."""
    require_views(scene, operation)
    if not scene.remote.abilities.registers_views:
        raise NotOffered(scene.catalog.entity.name, operation=operation, fix="Create the view from its SQL.")


def require_transactions(scene: Scene, operation: str) -> None:
    """Refuse changes of several tables at once, of a remote that changes one at a time."""
    if not scene.remote.abilities.has_transactions:
        raise NotOffered(
            scene.catalog.entity.name, operation=operation, fix="Commit to each table by itself."
        )


def require_purge(scene: Scene, operation: str) -> None:
    """Refuse to drop the files too, of a remote that only keeps where they are."""
    connection = scene.catalog.entity.connection
    if connection is None or connection.type != "ICEBERG_REST":
        raise NotOffered(
            scene.catalog.entity.name, operation=operation, fix="Drop the table without purgeRequested."
        )
