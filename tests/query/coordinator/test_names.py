"""What a name can mean."""

import pytest

from cynosure.query.coordinator.names import candidates, namespace_candidates
from cynosure.query.errors import SqlError


def found(*parts: str, catalog: str = "lake", namespace: tuple[str, ...] = ("shop",)) -> list[str]:
    return [str(each) for each in candidates(parts, catalog, namespace)]


def test_a_name_is_of_the_session_unless_it_says_more():
    assert found("t") == ["lake.shop.t"]
    assert found("other", "t") == ["lake.other.t"]
    assert found("c", "n", "t") == ["c.n.t", "lake.c.n.t"]
    assert found("lake", "n", "t") == ["lake.n.t"]
    assert found("c", "a", "b", "t", catalog="") == ["c.a.b.t"]
    for parts, session in ((("t",), ("", ())), (("t",), ("lake", ())), (("n", "t"), ("", ()))):
        with pytest.raises(SqlError) as raised:
            candidates(parts, *session)
        assert raised.value.fix


def test_a_namespace_is_of_the_session_or_of_a_catalog():
    assert namespace_candidates((), "lake", ("shop",)) == (("lake", ("shop",)),)
    assert namespace_candidates(("a",), "lake", ()) == (("lake", ("a",)), ("a", ()))
    assert namespace_candidates(("c", "a"), "lake", ()) == (("c", ("a",)), ("lake", ("c", "a")))
    assert namespace_candidates(("c", "a"), "", ()) == (("c", ("a",)),)
