"""Language codes: which are valid, and the messages for others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usp.check.rules.languages import language_problem, news_language_problem

RIGHT = (
    *("en", "de", "EN", "se", "be", "kr-NG", "zh", "iw"),
    *("en-GB", "en-gb", "pt-BR", "es-419", "zh-Hant", "zh-Hant-TW", "sr-Latn-RS", "sr-latn"),
    *("ast", "fil", "fil-PH", "gsw-CH", "x-default", "X-Default"),
    *("sq-XK", "ca-valencia", "ca-ES-valencia", "de-1901", "de-CH-1996", "sl-rozaj-biske", "zh-Hant-TW-pinyin"),
    *("zh-yue", "zh-cmn-Hans", "zh-yue-HK", "zh-cmn-Hans-CN", "ar-arz-EG", "ZH-Yue"),
)
WRONG = {
    "en-UK": "write GB",
    "en_US": 'write "en-US"',
    "x_default": 'write "x-default"',
    "jp": "write ja",
    "jp-JP": "write ja",
    "cz": "write cs",
    "dk": "write da",
    "gr": "write el",
    "cn": "write zh",
    "kr": "ko",
    "kr-KR": "ko",
    "be-EN": "write GB",
    "xx": "no language of ISO 639",
    "eu-EU": '"EU", which does not exist',
    "en-GBR": '"GBR", which does not exist',
    "zh-CHN": '"CHN", which does not exist',
    "en-yue": '"yue", which does not exist',
    "br-XX": '"XX", which does not exist',
    "lu-LU-x": '"x" at its end',
    "ca-valencia-ES": '"ES" at its end',
    "eng": "a code of two letters; write en",
    "ENG-GB": '"ENG", a language that has a code of two letters; write en',
    "ger": "write de",
    "deu-AT": "write de",
    "zho-Hans": "write zh",
    "fas": "write fa",
    "cym": "write cy",
    "english": "no language of ISO 639",
    "en-": "not a language code",
    "-": "not a language code",
    "en GB": "not a language code",
    "en\u2013GB": "not a language code",
    "\u0440\u0443": "not a language code",
    "ph": "a region",
    "e": "no language",
}


@pytest.mark.parametrize("tag", RIGHT)
def test_right(tag: str) -> None:
    """A language with or without a script and a region is valid, in upper and lower case."""
    assert language_problem(tag) == ""


@pytest.mark.parametrize(("tag", "words"), WRONG.items())
def test_wrong(tag: str, words: str) -> None:
    """The message says what is wrong with a code, and suggests the right one if that is clear."""
    assert words in language_problem(tag)


@pytest.mark.parametrize("text", ["en", "zh-cn", "zh-TW", "ast", "DE", "iw"])
def test_right_for_news(text: str) -> None:
    """The language of a publication has no region, except for Chinese."""
    assert news_language_problem(text) == ""


@pytest.mark.parametrize("text", ["en-US", "english", "xx", "zh-hk", "e", "en_us", "日本語", "\ufb01\ufb01\ufb01"])
def test_wrong_for_news(text: str) -> None:
    """A language with a region, or in words, is not valid for a publication."""
    assert news_language_problem(text)


@given(st.text(max_size=20))
def test_any_text(text: str) -> None:
    """Any text gets an answer that fits into a message."""
    assert language_problem(text).isprintable()
    assert news_language_problem(text).isprintable()
