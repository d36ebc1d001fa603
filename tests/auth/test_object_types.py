import importlib
import pkgutil

import cynosure.auth
from cynosure.auth.object_types import OBJECT_TYPES
from cynosure.persistence.core_types import load_types
from cynosure.persistence.objects import ObjectType


def test_every_type_of_the_room_is_in_its_list_and_found_by_entry_point() -> None:
    found: dict[str, ObjectType[object]] = {}
    for module in pkgutil.walk_packages(cynosure.auth.__path__, "cynosure.auth."):
        members = vars(importlib.import_module(module.name)).values()
        found |= {each.name: each for each in members if isinstance(each, ObjectType)}

    installed = {each.name: each for each in load_types()}
    listed = {each.name: each for each in OBJECT_TYPES}
    assert listed.keys() >= {"principal", "principal-role", "catalog-role"}
    assert [name for name in found if name not in installed] == []
    assert all(installed[name] is each for name, each in listed.items())
