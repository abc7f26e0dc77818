"""What is wrong with the root of a document, with its namespaces, and around it. All of it is read as it was meant."""

from __future__ import annotations

from collections.abc import Mapping

from usp.objects.problem import ProblemLog
from usp.scan.vocabulary import RIGHT_URIS, ROOTS, namespace_of_declaration

__all__ = ["UNPREFIXED", "note_outside", "note_root"]

#: Elements of extensions that some sites write without a prefix -> how they must be written.
UNPREFIXED = {"image": "image:image", "news": "news:news", "video": "video:video", "link": "xhtml:link"}
_ENTRIES = ("url", "sitemap")


def note_outside(at: int, is_before: bool, log: ProblemLog) -> None:
    """Note, once, that something stands before the root, or behind it."""
    code = "X101" if is_before else "X118"
    if not log.counts[code]:
        log.add(code, at)


def note_root(tag: str, name: bytes, attributes: Mapping[str, str], at: int, log: ProblemLog) -> None:
    """Note that the root is missing, or what is wrong with the namespaces that it declares."""
    if tag in _ENTRIES:
        if not log.counts["P424"]:
            log.add("P424", at, text=tag, where=ROOTS[tag])
        return
    if tag not in ("urlset", "sitemapindex"):
        return
    for attribute in attributes:
        used, colon, _ = attribute.partition(":")
        if colon and used not in ("xml", "xmlns") and f"xmlns:{used}" not in attributes:
            log.add("X117", at, text=used)
    prefix, colon, _ = name.decode("utf-8", "replace").lower().rpartition(":")
    home = attributes.get(f"xmlns:{prefix}" if colon else "xmlns", "")
    if home != RIGHT_URIS["sitemap"]:
        log.add("P422", at, text=home)
    for attribute, uri in attributes.items():
        if attribute.startswith("xmlns:") and attribute[6:] != prefix:
            right = RIGHT_URIS.get(namespace_of_declaration(attribute[6:], uri))
            if right is not None and uri != right:
                log.add("P425", at, text=uri, where=attribute, uri=right)
