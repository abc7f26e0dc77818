"""What a text means as a URL: the function in use, which is compiled if it was built, gives what plain Python gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from usp.scan.urls import MAX_BASE, absolute_url, pure_absolute_url

pytestmark = pytest.mark.compare

#: Parts of URLs, good and bad, and what stands around them.
PARTS = (
    *(
        "http://",
        "https://",
        "HTTP://",
        "http\u017f://",
        "http:",
        "//",
        "/",
        "..",
        "../",
        ".",
        "./",
        "?",
        "#",
        ";",
        ":",
    ),
    *(
        "a",
        "b1",
        "\u00e9",
        "\u00b2",
        "\u0663",
        "\u200b",
        "\u2028",
        "\u00a0",
        "\u212a",
        "\u0130",
        "\u00ad",
        "\u201d",
        "\ud800",
    ),
    *("www.", "www.a.de", "h.example", "h.example:80", "null", "None", "(null)", "[object object]", "undefined", "nan"),
    *("[", "]", "]]", "![CDATA[", "'", "<", ">", '"', "`", " ", "\t", "\n", "\x01", "\x7f", "\\", "^", "{", "|", "}"),
    *(
        "%",
        "&",
        "&amp;",
        "&nosuch;",
        "=",
        "+",
        "-",
        "_",
        "@",
        "!",
        "~",
        "$",
        "*",
        ",",
        "x.html",
        "mailto:",
        "1:2",
        "://",
    ),
    *(":80", ":99999", ":6553", "a" * 20),
)
BASES = (
    *("http://h.example/s.xml", "http://h.example/a/b/c.xml?q#f", "http://h.example", "https://www.h.example:8080/a/"),
    *(
        "http://h/",
        "",
        "http://\u00fc.example/a/b",
        "http://h/a;p/b;q?x",
        "mailto:a",
        "http://[::1]/a/b",
        "http://h/a//b",
    ),
    *("file:///x", "http://usp-local-dummy.local/", "/relative", "http://", "http://h/" + "a/" * MAX_BASE),
)
texts = st.lists(st.sampled_from(PARTS), max_size=7).map("".join) | st.text(max_size=12)


@settings(max_examples=2_000)
@given(texts, st.sampled_from(BASES))
def test_texts_of_all_sorts(text: str, base: str) -> None:
    """Texts of any parts mean the same URL, stated in the same way."""
    assert absolute_url(text, base) == pure_absolute_url(text, base)


@pytest.mark.parametrize("base", BASES)
def test_single_parts(base: str) -> None:
    """Each part alone, and any two of them, mean the same."""
    pairs = [one + other for one in ("", *PARTS) for other in ("", *PARTS)]
    assert [absolute_url(text, base) for text in pairs] == [pure_absolute_url(text, base) for text in pairs]
