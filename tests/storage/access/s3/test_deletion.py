from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.storage.access.s3.deletion import MOST_KEYS, read_deletion

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


def test_the_body_of_the_java_client_is_read() -> None:
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="{NAMESPACE}"><Object>'
        "<Key>t/x&amp;1.parquet</Key>"
        "</Object><Object><Key>t/ü.parquet</Key></Object></Delete>"
    )

    assert read_deletion(body) == ["t/x&1.parquet", "t/ü.parquet"]


def test_the_body_of_the_python_client_is_read() -> None:
    body = (
        f'<Delete xmlns="{NAMESPACE}">\n <Object>\n  <Key>t/a&#x2f;b</Key>\n </Object>\n'
        " <Quiet>true</Quiet>\n</Delete>"
    )

    assert read_deletion(body) == ["t/a/b"]


def key(text: str) -> str:
    return f"<Object><Key>{text}</Key></Object>"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "t/a",
        "<Delete/>",
        "<Delete></Delete><Delete></Delete>",
        f"<Delete>{key('t/a')}",
        f"<Remove>{key('t/a')}</Remove>",
        f"<Delete><Delete>{key('t/a')}</Delete></Delete>",
        f"<!DOCTYPE Delete>{key('t/a')}",
        f'<!DOCTYPE Delete [<!ENTITY k "o/b">]><Delete>{key("&k;")}</Delete>',
        f'<!DOCTYPE Delete SYSTEM "http://evil.example/d"><Delete>{key("t/a")}</Delete>',
        f'<?xml version="1.0" encoding="UTF-16"?><Delete>{key("t/a")}</Delete>',
        f'<?xml version="1.0" encoding="ISO-8859-1"?><Delete>{key("t/a")}</Delete>',
        f"<Delete><!-- {key('o/b')} -->{key('t/a')}</Delete>",
        f"<Delete>{key('t/a<!-- -->b')}</Delete>",
        f"<Delete>{key('<![CDATA[t/a]]>')}</Delete>",
        f"<Delete><?php ?>{key('t/a')}</Delete>",
        f"<Delete>{key('t/a')}o/b</Delete>",
        "<Delete><Key>t/a</Key></Delete>",
        "<Delete><Object><Key>t/a</Key><Key>o/b</Key></Object></Delete>",
        "<Delete><Object></Object></Delete>",
        "<Delete><Object><Key>t/a<Key>o/b</Key></Key></Object></Delete>",
        "<Delete><Object><Key>t/a</Key><VersionId>1</VersionId></Object></Delete>",
        "<Delete><Object><key>t/a</key></Object></Delete>",
        '<Delete><Object><Key x="o/b">t/a</Key></Object></Delete>',
        f'<Delete xmlns="http://elsewhere.example/">{key("t/a")}</Delete>',
        f'<x:Delete xmlns:x="{NAMESPACE}">{key("t/a")}</x:Delete>',
        f"<Delete>{key('t/a')}<Quiet>{key('o/b')}</Quiet></Delete>",
        f"<Delete>{key('t/a')}<Quiet>maybe</Quiet></Delete>",
        f"<Delete>{key('t/a' * 1_000_000)}</Delete>",
        "<Delete>\udc80</Delete>",
    ],
)
def test_a_body_that_parsers_could_read_differently_is_refused(body: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_deletion(body)

    assert refused.value.field == "body"


def test_as_many_keys_as_the_protocol_allows_are_read() -> None:
    most = [f"t/{number}" for number in range(MOST_KEYS)]
    body = f"<Delete>{''.join(map(key, most))}</Delete>"

    assert read_deletion(body) == most
    with pytest.raises(BadInput, match="too many keys"):
        read_deletion(body.replace("</Delete>", key("t/more") + "</Delete>"))


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1), min_size=1)
)
def test_the_keys_are_those_of_another_parser(keys: list[str]) -> None:
    body = f"<Delete>{''.join(key(escape(each)) for each in keys)}</Delete>"
    try:
        expected = [found.text for found in ElementTree.fromstring(body).iter("Key")]
    except ElementTree.ParseError:
        with pytest.raises(BadInput):
            read_deletion(body)
    else:
        assert read_deletion(body) == expected == keys
