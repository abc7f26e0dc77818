/** The filters of Overview and Pages: a search, more filters behind a button, and a chip for each active one. */

import { get } from "./api.js";
import { debounce, fill, h } from "./dom.js";
import { capital, shorten } from "./format.js";
import { status } from "./live.js";
import { Search } from "./parts.js";
import { FILTERS, filtersOf, go } from "./state.js";

const HAS = ["news", "images", "videos", "alternates"];
let bars = 0;

/** What a chip says about a filter. @type {Record<string, (value: string, params: Params) => string>} */
const CHIPS = {
	q: (value, { regex }) => (regex ? `URL matches ${value}` : `URL contains “${value}”`),
	section: (value) => `Section ${value}`,
	direct: () => "Not in deeper sections",
	from: (value) => `From ${value}`,
	to: (value) => `To ${value}`,
	undated: () => "Without a date",
	sitemap: (value) => `Sitemap ${shorten(value, 60)}`,
	language: (value) => `Language ${value}`,
	problem: (value) => [`Problem ${value}`, status().codes[value]?.title].filter(Boolean).join(": "),
	has: (value) => `Has ${value.replace(/,/g, ", ")}`,
};

export class FilterBar {
	/** @type {Params} */
	#params = {};

	/** @param {string} view the view to go to when a filter changes */
	constructor(view) {
		const id = `filters${++bars}`;
		this.view = view;
		this.search = new Search("Search URLs", (q, replace) => this.#set({ q, regex: this.regex.checked ? "1" : "" }, replace));
		this.regex = this.#checkbox({}, () => this.#set({ regex: this.regex.checked ? "1" : "" }));
		this.undated = this.#checkbox({}, () => this.#set({ undated: this.undated.checked ? "1" : "" }));
		this.has = HAS.map((name) => this.#checkbox({ name }, () => this.#set({ has: this.has.filter((box) => box.checked).map((box) => box.name).join(",") })));
		this.texts = {
			section: this.#text("section", { placeholder: "example.org/blog" }),
			sitemap: this.#text("sitemap", { placeholder: "Part of its URL", list: `${id}-sitemaps` }),
			language: this.#text("language", { placeholder: "de", list: `${id}-languages` }),
			from: this.#text("from", { type: "date" }),
			to: this.#text("to", { type: "date" }),
		};
		/** @type {HTMLSelectElement} */
		this.problem = h("select", { onchange: () => this.#set({ problem: this.problem.value }) });
		this.sitemaps = h("datalist", { id: `${id}-sitemaps` });
		this.languages = h("datalist", { id: `${id}-languages` });
		this.texts.sitemap.addEventListener("input", debounce(() => this.#suggest(), 250));
		this.chips = h("ul.chips", { "aria-label": "Active filters" });
		const { section, sitemap, language, from, to } = this.texts;
		const inputs = { Section: section, Sitemap: sitemap, "Changed from": from, "Changed to": to, Language: language, Problem: this.problem };
		const labels = Object.entries(inputs).map(([name, input]) => h("label", h("span", name), input));
		const boxes = HAS.map((name, index) => h("label.check", this.has[index], capital(name)));
		this.summary = h("summary", "More filters");
		this.element = h(
			"form.filters",
			{ role: "search", "aria-label": "Filter pages", onsubmit: (/** @type {Event} */ event) => this.#submit(event) },
			h("div.search-row", this.search.element, h("label.check", this.regex, "Regular expression")),
			h("details", this.summary, h("div.fields-grid", labels, h("fieldset", h("legend", "Only pages with"), boxes, h("label.check", this.undated, "No date")))),
			this.sitemaps,
			this.languages,
			this.chips,
		);
	}

	/** Show the filters of a state. A field that the reader is typing in is left alone. @param {Params} params */
	update(params) {
		this.#params = params;
		this.search.show(params.q ?? "");
		this.regex.checked = params.regex === "1";
		for (const [name, input] of Object.entries(this.texts)) if (input !== document.activeElement || !params[name]) input.value = params[name] ?? "";
		this.undated.checked = params.undated === "1";
		const has = (params.has ?? "").split(",");
		for (const box of this.has) box.checked = has.includes(box.name);
		this.#showCodes(params.problem ?? "");
		this.#showChips();
	}

	/** @param {string[]} names */
	suggestLanguages(names) {
		fill(this.languages, names.map((name) => h("option", { value: name })));
	}

	/** @param {Props} props @param {() => void} onchange @returns {HTMLInputElement} */
	#checkbox(props, onchange) {
		return h("input", { type: "checkbox", onchange, ...props });
	}

	/** @param {string} name @param {Props} props */
	#text(name, props) {
		/** @type {HTMLInputElement} */
		const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props, onchange: () => this.#set({ [name]: input.value.trim() }) });
		return input;
	}

	/** @param {Event} event */
	#submit(event) {
		event.preventDefault();
		this.search.typed();
	}

	/** @param {Params} changes @param {boolean} [replace] */
	#set(changes, replace) {
		/** @type {Params} */
		const next = { ...this.#params, ...changes, row: "" };
		go(this.view, next.q ? next : { ...next, regex: "" }, replace);
	}

	/** @param {string} selected */
	#showCodes(selected) {
		const codes = Object.entries(status().codes).sort();
		if (selected && !status().codes[selected]) codes.push([selected, { title: "", severity: "" }]);
		if (this.problem.options.length !== codes.length + 1)
			fill(this.problem, h("option", { value: "" }, "Any"), codes.map(([code, { title }]) => h("option", { value: code }, title ? `${code}: ${title}` : code)));
		this.problem.value = selected;
	}

	async #suggest() {
		try {
			const { rows } = await get("/api/sitemaps", { q: this.texts.sitemap.value, limit: 30 });
			fill(this.sitemaps, rows.map((/** @type {Sitemap} */ { url }) => h("option", { value: url })));
		} catch {
			// Suggestions are a help, not a need.
		}
	}

	#showChips() {
		const active = FILTERS.filter((name) => name in CHIPS && this.#params[name]);
		const chips = active.map((name) => {
			const text = CHIPS[name](this.#params[name], this.#params);
			const remove = { "data-key": `chip-${name}`, "aria-label": `Remove filter: ${text}`, onclick: () => this.#remove([name]) };
			return h("li.chip", h("span", { title: text }, text), h("button", remove, "×"));
		});
		if (active.length > 1) chips.push(h("li", h("button.plain", { "data-key": "chip-all", onclick: () => this.#remove(Object.keys(filtersOf(this.#params))) }, "Clear all")));
		fill(this.chips, chips);
		const hidden = active.filter((name) => name !== "q").length;
		fill(this.summary, hidden > 0 ? `More filters (${hidden} active)` : "More filters");
	}

	/** @param {string[]} names */
	#remove(names) {
		this.#set(Object.fromEntries(names.map((name) => [name, ""])));
		this.search.input.focus(); // The chip is gone, and the focus must be somewhere.
	}
}
