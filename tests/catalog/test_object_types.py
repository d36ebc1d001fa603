import importlib
import pkgutil

import cynosure.catalog
from cynosure.catalog.object_types import OBJECT_TYPES
from cynosure.persistence.core_types import load_types
from cynosure.persistence.objects import ObjectType


def test_every_type_of_the_room_is_in_its_list_and_found_by_entry_point() -> None:
    found: dict[str, ObjectType[object]] = {}
    for module in pkgutil.walk_packages(cynosure.catalog.__path__, "cynosure.catalog."):
        members = vars(importlib.import_module(module.name)).values()
        found |= {each.name: each for each in members if isinstance(each, ObjectType)}

    installed = {each.name: each for each in load_types()}
    assert {each.name for each in OBJECT_TYPES} >= {"catalog", "namespace", "table", "view", "dropped"}
    listed = {each.name: each for each in OBJECT_TYPES}
    assert {name: each for name, each in found.items() if name not in installed} == {}
    assert all(installed[name] is each for name, each in listed.items())
