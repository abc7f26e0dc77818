"""Reads Excel workbooks with the standard library, as far as the tests of usp need it."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from datetime import datetime, timedelta
from typing import Any

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_OFFICE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class Workbook:
    """The sheets of a workbook: rows of values by the name of the sheet. Dates are datetimes, empty cells are None."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as files:
            assert files.testzip() is None
            self.files = {name: files.read(name) for name in files.namelist()}
        targets = {one.get("Id"): one.get("Target") for one in self._root("xl/_rels/workbook.xml.rels")}
        styles = self._root("xl/styles.xml")
        cell_styles = styles.find(f"{_MAIN}cellXfs")
        assert cell_styles is not None
        formats = {one.get("numFmtId"): one.get("formatCode") for one in styles.iter(f"{_MAIN}numFmt")}
        self._is_date = ["yy" in (formats.get(one.get("numFmtId")) or "") for one in cell_styles]
        self._is_quoted = [one.get("quotePrefix") == "1" for one in cell_styles]
        self.quoted: list[Any] = []
        self.sheets: dict[str, list[list[Any]]] = {}
        for sheet in self._root("xl/workbook.xml").iter(f"{_MAIN}sheet"):
            self.sheets[sheet.attrib["name"]] = self._rows(f"xl/{targets[sheet.get(f'{_OFFICE}id')]}")

    def _root(self, name: str) -> ElementTree.Element:
        return ElementTree.fromstring(self.files[name])  # noqa: S314 -- ours

    def _rows(self, name: str) -> list[list[Any]]:
        rows: list[list[Any]] = []
        for row in self._root(name).iter(f"{_MAIN}row"):
            rows += [[] for _ in range(int(row.attrib["r"]) - 1 - len(rows))]  # rows without cells are not there
            cells = {self._column(cell.attrib["r"]): self._value(cell) for cell in row}
            rows.append([cells.get(at) for at in range(max(cells, default=-1) + 1)])
        width = max(map(len, rows), default=0)
        return [row + [None] * (width - len(row)) for row in rows]

    @staticmethod
    def _column(reference: str) -> int:
        number = 0
        for letter in reference.rstrip("0123456789"):
            number = number * 26 + ord(letter) - 64
        return number - 1

    def _value(self, cell: ElementTree.Element) -> Any:
        assert cell.find(f"{_MAIN}f") is None, "a formula"
        style = int(cell.get("s", "0"))
        if cell.get("t") == "inlineStr":
            text = "".join(part.text or "" for part in cell.iter(f"{_MAIN}t"))
            text = re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)
            if self._is_quoted[style]:
                self.quoted.append(text)
            return text
        value = cell.findtext(f"{_MAIN}v") or ""
        if cell.get("t") == "b":
            return value == "1"
        assert cell.get("t", "n") == "n", cell.get("t")
        if self._is_date[style]:
            return datetime(1899, 12, 30) + timedelta(milliseconds=round(float(value) * 86_400_000))
        return float(value)
