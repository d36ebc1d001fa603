"""Properties of federated catalogs."""

from datetime import timedelta

import pytest

from cynosure.catalog.federated_properties import (
    NAMES,
    PREFIX,
    FederatedProperties,
    check_federated_properties,
    read_federated_properties,
)
from cynosure.common.errors import BadInput

ALL = {
    "cynosure.federation.max-staleness": "30s",
    "cynosure.federation.stale-if-down": "PT1H",
    "cynosure.federation.read-only": "true",
    "cynosure.federation.credentials": "none",
    "cynosure.federation.grants": "by-name",
}


def test_every_one_of_them_is_read() -> None:
    check_federated_properties({**ALL, "owner": "x"}, is_federated=True)

    assert set(ALL) == set(NAMES)
    assert read_federated_properties(ALL) == FederatedProperties(
        max_staleness=timedelta(seconds=30),
        stale_if_down=timedelta(hours=1),
        read_only=True,
        credentials="none",
        grants="by-name",
    )


def test_what_is_left_out_is_not_decided() -> None:
    assert read_federated_properties({"owner": "x"}) == FederatedProperties()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max-staleness", "soon"),
        ("max-staleness", "-1s"),
        ("stale-if-down", "30"),
        ("read-only", "perhaps"),
        ("credentials", "mine"),
        ("grants", ""),
        ("other", "1"),
        ("Read-Only", "true"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_federated_properties({PREFIX + name: value}, is_federated=True)

    assert caught.value.details["field"] == f"properties.cynosure.federation.{name}"
    assert caught.value.fix


@pytest.mark.parametrize("name", [*ALL, "cynosure.federation.other", " Cynosure.Federation.grants"])
def test_other_catalogs_have_none_of_them(name: str) -> None:
    with pytest.raises(BadInput, match="federated catalogs only"):
        check_federated_properties({name: "1"}, is_federated=False)
