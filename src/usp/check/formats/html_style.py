"""The style of the page that `html` makes: light and dark, narrow and wide, on paper.

Text has a contrast of 4.5 or more on what is behind it, in both schemes; the three colours of severity are told apart
with any kind of colour vision, and never stand alone.
"""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """\
:root {
  color-scheme: light dark;
  --back: #ffffff; --front: #1b1f24; --quiet: #57606a; --line: #d0d7de; --raised: #f6f8fa; --link: #0550ae;
  --error: #b42318; --warning: #8a5a00; --info: #0550ae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #101418; --front: #e6edf3; --quiet: #9da7b1; --line: #353c44; --raised: #1a2027; --link: #79b8ff;
    --error: #ff8f85; --warning: #e3b341; --info: #79b8ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem; background: var(--back); color: var(--front);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
a { color: var(--link); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; }
h4 { font-size: 1rem; margin: 1rem 0 0; }
p { margin: .25rem 0 .75rem; }
code { font: .9em ui-monospace, monospace; background: var(--raised); padding: .1em .3em; border-radius: .2rem; }
.tool { color: var(--quiet); margin: 0; }
.notice { border-left: .3rem solid var(--error); padding-left: .75rem; }
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .75rem; list-style: none;
  margin: 1.25rem 0; padding: 0;
}
.tiles li { border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; background: var(--raised); }
.tiles b { display: block; font-size: 1.6rem; line-height: 1.2; white-space: nowrap; }
.error { --tone: var(--error); }
.warning { --tone: var(--warning); }
.info { --tone: var(--info); }
.sign, .tiles b { color: var(--tone, inherit); }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .6rem .9rem; }
details > :last-child { margin-bottom: 0; }
summary { cursor: pointer; display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem 1rem; }
summary::-webkit-details-marker { display: none; }
summary h3::before { content: "+"; display: inline-block; width: 1.1em; color: var(--quiet); }
details[open] > summary { margin-bottom: .75rem; }
details[open] > summary h3::before { content: "\\2212"; }
summary:focus-visible, a:focus-visible { outline: .15rem solid var(--link); outline-offset: .15rem; }
.count { white-space: nowrap; font-variant-numeric: tabular-nums; }
.track { flex: 0 0 100%; }
.bar { display: block; height: .5rem; border-radius: .25rem; background: var(--tone); }
.page { border-top: 1px solid var(--line); margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--quiet); }
th, td { padding: .35rem .75rem .35rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
td { font-variant-numeric: tabular-nums; }
th, td:nth-child(2) { white-space: nowrap; }
td.sitemap { width: 32%; }
footer { color: var(--quiet); margin-top: 2rem; }
@media (max-width: 40rem) {
  .tiles { grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .5rem; }
  .tiles li { padding: .5rem .75rem; }
  .tiles b { font-size: 1.2rem; }
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td, td.sitemap { display: block; width: auto; padding: 0; border: 0; }
  td.sitemap, td.sitemap + td { color: var(--quiet); font-size: .9rem; }
}
@media print {
  :root {
    color-scheme: light; --back: #fff; --front: #000; --quiet: #444; --line: #999; --raised: #fff; --link: #000;
    --error: #b42318; --warning: #8a5a00; --info: #0550ae;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; block-size: auto; opacity: 1; }
  .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, .tiles li, summary { break-inside: avoid; }
}
"""
