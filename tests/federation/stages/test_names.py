import pytest

from cynosure.catalog.errors import InvalidName
from cynosure.catalog.names import Identifier
from cynosure.federation.remote import Abilities
from cynosure.federation.stages.names import (
    can_have_namespace,
    can_have_table,
    can_have_view,
    require_possible,
)

ANY = Abilities(has_views=True, has_nested_namespaces=True, has_transactions=True)
POOR = Abilities(has_views=False, has_nested_namespaces=False, has_transactions=False, names="lower")


@pytest.mark.parametrize("path", [("A",), ("a", "b"), ("ünï", "Ö")])
def test_a_remote_that_takes_any_name_may_have_it(path: tuple[str, ...]) -> None:
    assert can_have_namespace(ANY, path)
    assert can_have_table(ANY, Identifier(path, "T"))
    assert can_have_view(ANY, Identifier(path, "V"))
    require_possible(ANY, path, field="namespace", levels=len(path))


def test_a_poor_remote_has_lower_case_in_one_level_and_no_views() -> None:
    assert can_have_namespace(POOR, ("a",))
    assert can_have_table(POOR, Identifier(("a",), "t_1"))
    assert not can_have_namespace(POOR, ("A",))
    assert not can_have_namespace(POOR, ("a", "b"))
    assert not can_have_table(POOR, Identifier(("a",), "T"))
    assert not can_have_namespace(POOR, ("a ",))
    assert not can_have_table(POOR, Identifier(("a",), " t"))
    assert not can_have_view(POOR, Identifier(("a",), "v"))


@pytest.mark.parametrize(
    ("path", "levels"), [(("a", "b"), 2), (("A",), 1), (("a", "T"), 1), (("a", "t "), 1)]
)
def test_what_a_poor_remote_cannot_have_is_not_made(path: tuple[str, ...], levels: int) -> None:
    with pytest.raises(InvalidName):
        require_possible(POOR, path, field="name", levels=levels)
