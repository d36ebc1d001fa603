import pytest

from cynosure.api.realm import realm_of
from cynosure.auth.errors import NoSuchRealm
from cynosure.common.errors import BadInput


def scope(*values: bytes, name: bytes = b"polaris-realm"):
    return {"headers": [(b"host", b"x"), *((name, value) for value in values)]}


def test_without_the_header_it_is_the_default_realm():
    assert realm_of(scope()) == "default"


def test_the_header_names_the_realm_as_it_is_written():
    assert realm_of(scope(b"Acme-1.x_y")) == "Acme-1.x_y"


def test_a_header_that_only_looks_like_it_does_not_count():
    assert realm_of(scope(b"acme", name=b"polaris_realm")) == "default"


@pytest.mark.parametrize(
    "values",
    [
        (b"default", b"acme"),
        (b"acme", b"acme"),
        (b"",),
        (b"", b"acme"),
        (b"acme,default",),
        (b"acme, default",),
        (b"acme default",),
        (b" acme",),
        (b"acme\x00",),
        (b"acme\r\nx: y",),
        (b"acme\t",),
        ("é".encode(),),
        (b"\xff",),
    ],
)
def test_a_request_for_no_realm_or_for_several_is_refused(values):
    with pytest.raises(BadInput):
        realm_of(scope(*values))


@pytest.mark.parametrize("value", [b"_system", b"../x", b"a/b", b"$", b"x" * 129])
def test_what_cannot_be_a_realm_does_not_exist(value):
    with pytest.raises(NoSuchRealm):
        realm_of(scope(value))
