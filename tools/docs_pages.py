"""Pages of the documentation site that are no Markdown files of the repository: rules and notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from usp.check.rules.page import Example, code_fences, rule_page
from usp.objects.codes import CODES, GROUPS

__all__ = ["notebook_page", "rule_page_of_site", "rules_index"]

_LABEL = re.compile(r"^(What|Why|Severity): ", re.MULTILINE)
_URL = re.compile(r"https://[^\s,]+")
_SPECIFICATION = re.compile(r"^Specification: .+$", re.MULTILINE)
_DEMO_LINK = re.compile(r"<a\b[^>]*>")  # to the example website, which is gone when somebody reads the page
_INDEX = """\
# Rules

`usp check` finds these problems. `usp check --explain X102` prints the page of a code on a terminal. `--select X,E`
shows only some codes, `--ignore P420` hides some: see [Checking](check.md). Codes are stable.

- **error**: readers reject, skip or misread it.
- **warning**: some readers skip it, or read only a part.
- **info**: worth knowing; nothing is lost.

usp finds many of them while it reads: `sitemap.problems` has those of one sitemap, `tree.all_problems()` those of all.
usp keeps the first twenty of each code in each sitemap; `sitemap.problem_counts` counts all.
"""


def rules_index() -> str:
    """Return a page with a table of all rules. A script adds a filter."""
    rows = [
        " | ".join((f"| [{code}](rules/{code}.md)", severity, _escaped(GROUPS[code[0]]), _titled(code, title), ""))
        for code, severity, title in ((code, str(CODES[code].severity), rule_page(code).title) for code in CODES)
    ]
    table = "\n".join(["| code | severity | subject | what |", "|---|---|---|---|", *rows])
    return f'{_INDEX}\n<div class="rules" markdown>\n\n{table}\n\n</div>\n'


def _titled(code: str, title: str) -> str:
    """Return the title of a rule. What it means is hidden behind it, for the filter of the index."""
    what = next(line for line in rule_page(code).markdown.split("\n\n") if line.startswith("What: "))
    return f"{_escaped(title)} <span hidden>{_escaped(' '.join(what.split()[1:])).replace('`', '')}</span>"


def rule_page_of_site(code: str) -> str:
    """Return the page of a rule: the problem is highlighted in the bad example, and specifications are links."""
    text = "".join(part if isinstance(part, str) else _fenced(part) for part in code_fences(rule_page(code).markdown))
    text = _LABEL.sub(r"**\1:** ", text)
    text = _SPECIFICATION.sub(lambda line: _URL.sub(r"<\g<0>>", line[0]), text)
    return f"{text.rstrip()}\n\n[All rules](../rules.md)\n"


def _fenced(example: Example) -> str:
    """Return an example as a fenced block of the site."""
    options = f' title="{example.file}"' if example.file else ""
    if example.line is not None:
        options += f' linenums="1" hl_lines="{example.line}"'
    return f"```{example.language}{options}\n{example.text}\n```"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")


def notebook_page(path: Path) -> str:
    """Return an executed notebook as a page: text, code, and its output as text, HTML or SVG."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *filter(None, map(_output, cell["outputs"]))]


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output.get("data", {})
    if html := "".join(data.get("text/html", "")):
        html = _DEMO_LINK.sub("", re.sub(chr(10) + "+", chr(10), html)).replace("</a>", "")
        return f'<div class="notebook-output">\n{html.strip()}\n</div>'
    return f"```text\n{''.join(data.get('text/plain', '')).rstrip()}\n```" if data else ""
