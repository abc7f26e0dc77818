/**
 * A table of rows, and the details of one of them beside it. The parameter `row` of the state names the open row, and a
 * change of any other loads other rows.
 */

import { Latest } from "./api.js";
import { fill, h } from "./dom.js";
import { showError } from "./parts.js";
import { go, keyOf } from "./state.js";
import { Table } from "./table.js";

/** @template T */
export class Listing {
	/** @type {Params} */
	params = {};
	/** @type {string | null} */
	#key = null;
	/** @type {string | null} */
	#open = "";
	#latest = new Latest();

	/** @param {string} view @param {ListingOptions<T>} options */
	constructor(view, options) {
		const { key = (_, index) => index } = options;
		const onSort = (/** @type {string} */ sort) => this.set({ sort, row: "" });
		this.view = view;
		this.options = options;
		this.table = new Table({ ...options, key, onOpen: (row, index) => this.set({ row: key(row, index) }), onSort: options.isSortable ? onSort : undefined });
		this.content = h("div");
		this.heading = h("h2", { tabindex: "-1" }, options.panel);
		const close = () => this.set({ row: "" });
		const onkeydown = (/** @type {KeyboardEvent} */ { key }) => key === "Escape" && close();
		const scroll = h("div.panel-scroll", h("div.panel-head", this.heading, h("button", { onclick: close }, "Close")), this.content);
		this.panel = h("aside.panel", { "aria-label": options.panel, hidden: true, onkeydown }, scroll);
		this.element = h("div.split", this.table.element, this.panel);
	}

	destroy() {
		this.#latest.stop();
		this.table.destroy();
	}

	/** @param {Query} changes @param {boolean} [replace] */
	set(changes, replace) {
		go(this.view, { ...this.params, ...changes }, replace);
	}

	/** Show a state. @param {Params} params @returns {boolean} whether other rows are loaded */
	update(params) {
		const key = keyOf(params, ["row"]);
		const isOther = key !== this.#key;
		this.params = params;
		this.table.setSort(params.sort ?? "");
		if (isOther) {
			this.#key = key;
			this.#open = null;
			this.table.reset();
		}
		this.#detail();
		return isOther;
	}

	/** Load the rows again. */
	refresh() {
		return this.table.refresh();
	}

	async #detail() {
		const { row = "" } = this.params;
		this.table.select(row);
		if (row === this.#open) return;
		this.#open = row;
		if (row === "") {
			this.#latest.stop();
			const hadFocus = this.panel.contains(document.activeElement);
			this.panel.hidden = true;
			fill(this.content);
			if (hadFocus) this.table.focus();
			return;
		}
		const signal = this.#latest.start();
		if (this.panel.hidden) fill(this.content, h("p.hint", "Loading…"));
		this.panel.hidden = false;
		if (this.table.element.contains(document.activeElement)) this.heading.focus({ preventScroll: true });
		try {
			const content = await this.options.detail(row, signal);
			if (!signal.aborted) fill(this.content, content);
		} catch (error) {
			if (!signal.aborted) showError(this.content, error);
		}
	}

	/** @param {string} index @returns {Promise<T>} */
	async row(index) {
		const row = /^\d+$/.test(index) ? await this.table.find(Number(index)) : undefined;
		if (row === undefined) throw new Error(`This list has no row ${index}. Close this panel, and choose a row.`);
		return row;
	}
}
