/** Parts that several views share: searches, tables, exports, lists with bars, values of any shape, failures. */

import { address, isAbort, messageOf } from "./api.js";
import { debounce, external, fill, h, isWeb, text } from "./dom.js";
import { number } from "./format.js";
import { status } from "./live.js";

/** A field to search in URLs. What the reader types is one step of the back button, not one for each letter. */
export class Search {
	#isTyping = false;
	#value = "";

	/** @param {string} label @param {(text: string, replace: boolean) => void} onSearch */
	constructor(label, onSearch) {
		this.input = h("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "Part of a URL" });
		this.element = h("label.search", h("span", label), this.input);
		this.onSearch = onSearch;
		this.input.addEventListener("input", debounce(() => this.typed(), 300));
		this.input.addEventListener("blur", () => (this.#isTyping = false));
	}

	/** Search now for what is in the field. */
	typed() {
		const replace = this.#isTyping;
		if (this.input.value === this.#value) return;
		this.#isTyping = true;
		this.#value = this.input.value;
		this.onSearch(this.#value, replace);
	}

	/** @param {string} text */
	show(text) {
		this.#value = text;
		if (!this.#isTyping || document.activeElement !== this.input) this.input.value = text;
	}
}

/**
 * Return a plain table that scrolls. Columns whose title starts with "#" are numbers.
 * @param {string} label
 * @param {string[]} heads
 * @param {HTMLTableRowElement[]} rows
 */
export function plainTable(label, heads, rows) {
	const cells = heads.map((head) => h(head.startsWith("#") ? "th.number" : "th", { scope: "col" }, head.replace(/^#/, "")));
	const table = h("table", h("thead", h("tr", cells)), h("tbody", rows));
	return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, table);
}

/** Return a menu that exports rows. Its links are made when it opens, for the query of that moment. @param {string} path @param {() => Query} query */
export function exportMenu(path, query) {
	const list = h("ul.menu", { id: "formats", popover: "auto" });
	const button = h("button", { popovertarget: "formats" }, "Export these rows ▾");
	list.addEventListener("beforetoggle", () => {
		const { right, bottom } = button.getBoundingClientRect();
		const room = document.body.clientWidth;
		list.style.top = `${bottom + 4}px`;
		list.style.right = `${Math.min(room - right, room - 264)}px`;
		fill(list, status().formats.map(({ name, what }) => h("li", h("a", { href: address(path, { ...query(), format: name }), download: true, onclick: () => list.hidePopover() }, h("strong", name), h("small", what)))));
	});
	return h("div", button, list);
}

/** @param {Bar[]} bars */
export function barList(bars) {
	const most = Math.max(1, ...bars.map(({ value }) => value));
	const items = bars.map(({ label, value, text: shown, after }) => {
		const bar = h("span.bar");
		bar.style.width = `${Math.max(0, (value / most) * 100)}%`;
		const track = h("span.bar-track", { "aria-hidden": "true" }, bar);
		return h("li", h("span.bar-label", { title: typeof label === "string" && label }, label), h("span.bar-value", shown ?? number(value)), track, after && h("span.bar-after", after));
	});
	return h("ul.bar-list", items);
}

/** Return a value of any shape as a node: objects become lists of names, URLs become links. @param {unknown} value @returns {Node} */
function valueNode(value) {
	if (value instanceof Node) return value;
	if (Array.isArray(value) && value.length > 0) return h("ol.values", value.map((item) => h("li", valueNode(item))));
	if (value !== null && typeof value === "object" && !Array.isArray(value)) return fields(value);
	if (isWeb(value)) return external(value);
	if (typeof value === "boolean") return text(value ? "yes" : "no");
	return text(Number.isInteger(value) ? number(Number(value)) : String(value ?? "") || "–");
}

/** @param {object} values */
export function fields(values) {
	const pairs = Object.entries(values).map(([name, value]) => [h("dt", name.replace(/_/g, " ")), h("dd", valueNode(value))]);
	return h("dl.fields", pairs.flat());
}

/** @param {string} severity */
export function severityBadge(severity) {
	return h("span", { class: `badge ${severity}` }, severity);
}

/** Show a failed request in `node`; say nothing about one that was cancelled. @param {Element} node @param {unknown} error */
export function showError(node, error) {
	if (!isAbort(error)) fill(node, h("p.error", { role: "alert" }, messageOf(error)));
}
