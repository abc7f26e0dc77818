// The index of rules: a filter above its table. Without JavaScript, the whole table is there.
function addFilter(table) {
  const rows = [...table.tBodies[0].rows];
  const column = (number) => [...new Set(rows.map((row) => row.cells[number].textContent))];

  const form = document.createElement("form");
  form.className = "rules-filter";
  form.addEventListener("submit", (event) => event.preventDefault());

  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "Filter: X102, lastmod, gzip …";
  words.setAttribute("aria-label", "Words that a rule must have");

  const select = (number, all) => {
    const menu = document.createElement("select");
    menu.setAttribute("aria-label", all);
    menu.append(new Option(all, ""), ...column(number).map((text) => new Option(text, text)));
    return menu;
  };
  const severity = select(1, "all severities");
  const group = select(2, "all subjects");
  const count = document.createElement("output");

  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden =
        !wanted.every((word) => text.includes(word)) ||
        (severity.value && row.cells[1].textContent !== severity.value) ||
        (group.value && row.cells[2].textContent !== group.value);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} rules`;
  };
  words.value = decodeURIComponent(location.hash.slice(1));
  form.append(words, severity, group, count);
  form.addEventListener("input", show);
  table.closest(".rules").prepend(form);
  show();
}

document.querySelectorAll(".rules table").forEach(addFilter);
