/**
 * A virtual table: only the visible rows are in the document, and windows of rows are loaded on demand.
 *
 * Rows have a fixed height. Browsers limit the height of an element, so above MAX_HEIGHT the scroll bar is scaled:
 * dragging it jumps in proportion, while the wheel and the keyboard still move row by row. `#position` is the first
 * visible row, as a fraction; everything else follows from it.
 *
 * The grid itself has the focus and names the active row (aria-activedescendant), so no focus is lost when rows come
 * and go.
 */

import { messageOf } from "./api.js";
import { fill, h } from "./dom.js";
import { Windows } from "./windows.js";

const ROW = 30;
const OVERSCAN = 5;
const MAX_HEIGHT = 10_000_000;
let tables = 0;

/** @param {number} value @param {number} least @param {number} most */
function clamp(value, least, most) {
	return Math.max(least, Math.min(value, most));
}

/** @template T */
export class Table {
	#total = 0;
	#position = 0;
	#active = -1;
	#selected = "";
	#sort = "";
	#isReset = true;
	#lastTop = 0;
	#frame = 0;
	#settle = 0;
	#sync = 0;
	/** @type {Map<number, {node: HTMLElement, row: T | undefined}>} */
	#nodes = new Map();

	/** @param {TableOptions<T>} options */
	constructor(options) {
		this.options = options;
		this.id = `table${++tables}`;
		this.windows = new Windows(
			options.load,
			(result) => this.#take(result),
			(error) => this.#fail(error),
		);
		this.body = h("div.grid-body", { role: "rowgroup" });
		this.head = h("div.grid-head", { role: "rowgroup" });
		const props = { role: "grid", tabindex: "0", "aria-label": options.label, "aria-rowcount": "-1", "aria-colcount": options.columns.length };
		this.grid = h("div.grid", { ...props, onkeydown: (event) => this.#key(event), onscroll: () => this.#scrolled(), onfocus: () => this.#focused() }, this.head, this.body);
		this.grid.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
		this.message = h("p.grid-message", { role: "status" });
		this.element = h("div.table", this.message, this.grid);
		const tracks = options.columns.map(({ grow, width }) => (grow ? `minmax(${width}px, 1fr)` : `${width}px`));
		this.grid.style.setProperty("--columns", tracks.join(" "));
		this.grid.style.setProperty("--width", `${options.columns.reduce((sum, { width }) => sum + width, 0)}px`);
		this.grid.style.setProperty("--row", `${ROW}px`);
		this.#renderHead();
		new ResizeObserver(() => this.#later()).observe(this.grid);
	}

	destroy() {
		this.#isReset = true; // Nothing is drawn any more.
		this.windows.clear();
		cancelAnimationFrame(this.#frame);
		clearTimeout(this.#settle);
		clearTimeout(this.#sync);
	}

	/** Show other rows from the top: the filter or the order has changed. Old rows stay until the new ones arrive. */
	reset() {
		this.windows.clear();
		this.#isReset = true;
		this.#active = -1;
		this.grid.classList.add("stale");
		this.windows.need(0, 1);
	}

	/** Load the visible rows again, and keep scroll position, focus and selection. */
	refresh() {
		this.windows.renew();
		this.windows.need(...this.#range());
		return this.windows.idle();
	}

	/** @param {string} sort a column, with "-" for descending */
	setSort(sort) {
		if (sort === this.#sort) return;
		this.#sort = sort;
		this.#renderHead();
	}

	/** @param {string} key of a row; "" for none */
	select(key) {
		this.#selected = key;
		for (const [index, { node, row }] of this.#nodes) this.#mark(node, row, index);
	}

	focus() {
		this.grid.focus({ preventScroll: true });
	}

	/** Return a row, and load it if need be. @param {number} index @returns {Promise<T | undefined>} */
	async find(index) {
		const row = this.#isReset ? undefined : this.windows.at(index);
		return row ?? (await this.options.load(index, 1)).rows[0];
	}

	/** @param {Rows<T>} result */
	#take({ total }) {
		this.#start();
		this.#resize(total);
		this.message.classList.remove("error");
		fill(this.message, total === 0 && this.options.empty);
		this.options.onTotal?.(total);
		this.#move(this.#position);
	}

	/** @param {unknown} error */
	#fail(error) {
		if (this.#isReset) this.#resize(0);
		this.#start();
		this.message.classList.add("error");
		fill(this.message, messageOf(error));
	}

	#start() {
		if (!this.#isReset) return;
		this.#isReset = false;
		this.#position = 0;
		for (const { node } of this.#nodes.values()) node.remove();
		this.#nodes.clear();
		this.grid.classList.remove("stale");
	}

	/** @param {number} total */
	#resize(total) {
		this.#total = total;
		this.grid.setAttribute("aria-rowcount", String(total + 1));
		this.body.style.height = `${Math.min(total * ROW, MAX_HEIGHT)}px`;
	}

	// Geometry

	get #view() {
		return Math.max(ROW, this.grid.clientHeight - this.head.offsetHeight);
	}

	get #maxPosition() {
		return Math.max(0, this.#total - this.#view / ROW);
	}

	get #maxTop() {
		return Math.max(1, Math.min(this.#total * ROW, MAX_HEIGHT) - this.#view);
	}

	get #isScaled() {
		return this.#total * ROW > MAX_HEIGHT;
	}

	/** @returns {[number, number]} */
	#range() {
		const first = Math.max(0, Math.floor(this.#position) - OVERSCAN);
		const last = Math.ceil(this.#position + this.#view / ROW) + OVERSCAN;
		return [first, Math.min(this.#total, last)];
	}

	/** @param {number} position */
	#move(position) {
		this.#position = clamp(position, 0, this.#maxPosition);
		const top = this.#isScaled ? (this.#position / this.#maxPosition) * this.#maxTop : this.#position * ROW;
		if (Math.abs(top - this.grid.scrollTop) >= 1) this.grid.scrollTop = top;
		this.#lastTop = this.grid.scrollTop;
		this.#render();
	}

	#scrolled() {
		const top = this.grid.scrollTop;
		const delta = top - this.#lastTop;
		this.#lastTop = top;
		this.#later();
		if (Math.abs(delta) < 0.5) return; // Our own move, or a horizontal one.
		if (!this.#isScaled) this.#position = top / ROW;
		else {
			const isNear = Math.abs(delta) < 2 * this.#view && top > 0 && top < this.#maxTop - 1;
			const position = isNear ? this.#position + delta / ROW : (top / this.#maxTop) * this.#maxPosition;
			this.#position = clamp(position, 0, this.#maxPosition);
			clearTimeout(this.#sync);
			this.#sync = setTimeout(() => this.#move(this.#position), 200); // Put the scroll bar where it belongs.
		}
	}

	/** @param {WheelEvent} event */
	#wheel(event) {
		if (!this.#isScaled || event.ctrlKey || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
		const pixels = [1, ROW, this.#view][event.deltaMode] ?? 1;
		event.preventDefault();
		this.#move(this.#position + (event.deltaY * pixels) / ROW);
	}

	// Rows

	#later() {
		cancelAnimationFrame(this.#frame);
		this.#frame = requestAnimationFrame(() => this.#render());
	}

	#render() {
		if (this.#isReset) return;
		const [first, last] = this.#range();
		const top = this.#isScaled ? this.grid.scrollTop : this.#position * ROW;
		let hasGaps = false;
		for (const [index, { node }] of this.#nodes) {
			if (index >= first && index < last) continue;
			node.remove();
			this.#nodes.delete(index);
		}
		for (let index = first; index < last; index += 1) {
			const row = this.windows.at(index);
			let item = this.#nodes.get(index);
			if (!item || (row !== undefined && item.row !== row)) {
				const node = this.#row(index, row);
				if (item) item.node.replaceWith(node);
				else this.body.append(node);
				item = { node, row };
				this.#nodes.set(index, item);
			}
			item.node.style.transform = `translateY(${top + (index - this.#position) * ROW}px)`;
			hasGaps ||= row === undefined;
		}
		const active = this.#nodes.get(this.#active)?.node;
		if (active) this.grid.setAttribute("aria-activedescendant", active.id);
		else this.grid.removeAttribute("aria-activedescendant");
		clearTimeout(this.#settle);
		// While the scroll bar is dragged, passing rows are not loaded.
		this.#settle = setTimeout(() => this.windows.need(...this.#range()), hasGaps ? 70 : 0);
	}

	/** @param {number} index @param {T | undefined} row */
	#row(index, row) {
		const cells = this.options.columns.map((column) => {
			const content = row === undefined ? "…" : column.cell(row, index);
			const title = typeof content === "string" && content.length > 12 ? content : null;
			return h(column.isNumber ? "div.cell.number" : "div.cell", { role: "gridcell", title }, content);
		});
		const node = h("div.grid-row", { role: "row", id: `${this.id}-${index}`, "aria-rowindex": index + 2, onclick: (event) => this.#click(event, index) }, cells);
		node.classList.toggle("loading", row === undefined);
		node.classList.toggle("active", index === this.#active);
		this.#mark(node, row, index);
		return node;
	}

	/** @param {HTMLElement} node @param {T | undefined} row @param {number} index */
	#mark(node, row, index) {
		const isSelected = row !== undefined && String(this.options.key(row, index)) === this.#selected;
		if (this.options.onOpen) node.setAttribute("aria-selected", String(isSelected));
	}

	#renderHead() {
		const { columns, onSort } = this.options;
		const cells = columns.map((column) => {
			const { name, title } = column;
			const isSortable = onSort !== undefined && name !== "";
			const order = this.#sort === `-${name}` ? "descending" : this.#sort === name ? "ascending" : "none";
			const mark = order !== "none" && h("span", { "aria-hidden": "true" }, order === "ascending" ? " ▲" : " ▼");
			const content = isSortable ? h("button", { "data-key": name, onclick: () => this.#sortBy(column) }, title, mark) : title;
			return h(column.isNumber ? "div.cell.number" : "div.cell", { role: "columnheader", "aria-sort": isSortable && order }, content);
		});
		fill(this.head, h("div.grid-row", { role: "row", "aria-rowindex": "1" }, cells));
	}

	/** @param {Column<T>} column */
	#sortBy({ name, isNumber }) {
		const orders = isNumber ? [`-${name}`, name, ""] : [name, `-${name}`, ""];
		this.options.onSort?.(orders[(orders.indexOf(this.#sort) + 1) % 3]);
	}

	// Keyboard and mouse

	#focused() {
		if (this.#active < 0) this.#activate(Math.ceil(this.#position), false);
	}

	/** @param {number} index @param {boolean} [isScroll] */
	#activate(index, isScroll = true) {
		if (this.#total === 0) return;
		this.#nodes.get(this.#active)?.node.classList.remove("active");
		this.#active = clamp(index, 0, this.#total - 1);
		this.#nodes.get(this.#active)?.node.classList.add("active");
		const fits = this.#view / ROW;
		if (isScroll) this.#move(clamp(this.#position, this.#active + 1 - fits, this.#active));
		else this.#render();
	}

	/** @param {KeyboardEvent} event */
	#key(event) {
		if (event.target !== this.grid || event.altKey || event.metaKey) return;
		const step = Math.max(1, Math.floor(this.#view / ROW) - 1);
		/** @type {Record<string, number>} */
		const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: step, PageUp: -step, Home: -Infinity, End: Infinity };
		if (event.key in steps) this.#activate(this.#active + steps[event.key]);
		else if (event.key === "ArrowRight") this.grid.scrollLeft += 60;
		else if (event.key === "ArrowLeft") this.grid.scrollLeft -= 60;
		else if (event.key === "Enter") this.#open(this.#active);
		else return;
		event.preventDefault();
	}

	/** @param {MouseEvent} event @param {number} index */
	#click(event, index) {
		if (event.target instanceof Element && event.target.closest("a, button")) return;
		if (String(getSelection()) !== "") return; // The reader is selecting text to copy.
		this.#activate(index, false);
		this.focus();
		this.#open(index);
	}

	/** @param {number} index */
	#open(index) {
		const row = this.windows.at(index);
		if (row !== undefined) this.options.onOpen?.(row, index);
	}
}
