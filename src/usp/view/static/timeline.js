/** A chart of pages by date. Drag to select a range; by keyboard, the filters have fields for both dates. */

import { LEFT, Plot, ticks, TOP } from "./chart.js";
import { h, svg } from "./dom.js";
import { count } from "./format.js";

const DAY = 86_400_000;

/** Return how many bins lie between year 0 and a date such as "2024", "2024-05" or "2024-05-08". @param {string} name @param {Bin} bin */
function indexOf(name, bin) {
	const [year, month = 1] = name.split("-").map(Number);
	if (bin === "year") return year;
	return bin === "month" ? year * 12 + month - 1 : Date.parse(name) / DAY;
}

/** Return the first day of a bin, or one some days later. @param {number} index @param {Bin} bin @param {number} [more] */
function dayOf(index, bin, more = 0) {
	if (bin === "day") return iso(index * DAY + more * DAY);
	const date = new Date(0);
	date.setUTCFullYear(bin === "year" ? index : Math.floor(index / 12), bin === "year" ? 0 : index % 12, 1 + more);
	return iso(date.getTime());
}

/** @param {number} time */
function iso(time) {
	return new Date(time).toISOString().slice(0, 10);
}

export class Timeline {
	/** @type {[number, number][]} */
	#bins = [];
	/** @type {Bin} */
	#bin = "month";
	#first = 0;
	#last = 0;
	/** @type {[number, number] | null} the selected bins, both included */
	#range = null;
	#isDragging = false;
	#start = 0;

	/** @param {(from: string, to: string) => void} onBrush days, both included */
	constructor(onBrush) {
		this.onBrush = onBrush;
		this.chart = new Plot(170, { role: "img" }, () => this.#draw());
		this.plot = this.chart.element;
		this.brush = svg("rect", { class: "brush", y: TOP, height: this.chart.inner });
		this.note = h("p.hint", { role: "status" });
		this.element = h("div.timeline", this.plot, this.note);
		this.plot.addEventListener("pointerdown", (event) => this.#down(event));
		this.plot.addEventListener("pointermove", (event) => this.#moved(event));
		this.plot.addEventListener("pointerup", () => this.#up());
		this.plot.addEventListener("pointercancel", () => this.#select(null));
		this.plot.addEventListener("pointerleave", () => !this.#isDragging && this.#describe());
	}

	/** @param {Count[]} counts @param {Bin} bin */
	show(counts, bin) {
		const isSame = bin === this.#bin && this.#range !== null;
		this.#bins = counts.map(([name, pages]) => [indexOf(name, bin), pages]);
		this.#bin = bin;
		this.#first = this.#bins[0]?.[0] ?? 0;
		this.#last = this.#bins.at(-1)?.[0] ?? 0;
		if (!isSame) this.#range = null; // New data must not end a selection in the making.
		this.plot.classList.toggle("hidden", this.#bins.length === 0);
		this.#draw();
	}

	get #size() {
		return this.#last - this.#first + 1;
	}

	/** @param {number} index */
	#name(index) {
		return dayOf(index, this.#bin).slice(0, { day: 10, month: 7, year: 4 }[this.#bin]);
	}

	/** @param {number} index */
	#x(index) {
		return LEFT + ((index - this.#first) / this.#size) * this.chart.width;
	}

	#draw() {
		if (this.#bins.length === 0) return this.#mark();
		const { width, inner } = this.chart;
		const most = Math.max(1, ...this.#bins.map(([, pages]) => pages));
		const y = (/** @type {number} */ pages) => TOP + inner * (1 - pages / most);
		const step = width / this.#size;
		/** @type {Map<number, [number, number]>} the highest bar of each pixel */
		const pixels = new Map();
		for (const [index, pages] of this.#bins) {
			const pixel = Math.floor(this.#x(index));
			if ((pixels.get(pixel)?.[1] ?? 0) < pages) pixels.set(pixel, [index, pages]);
		}
		const gap = step > 4 ? Math.min(step * 0.2, 6) : 0;
		const size = Math.max(1, Math.min(step - gap, 80));
		const bars = [...pixels.values()].map(([index, pages]) => {
			const height = Math.max(1.5, TOP + inner - y(pages));
			return svg("rect", { x: (this.#x(index) + (step - size) / 2).toFixed(1), y: (TOP + inner - height).toFixed(1), width: size.toFixed(1), height: height.toFixed(1) });
		});
		const names = this.chart.names(this.#size, this.#bin === "day" ? 90 : 68, (index) => this.#name(this.#first + index));
		this.plot.replaceChildren(this.chart.axis(ticks(most), y), svg("g", { class: "bars" }, bars), names, this.brush);
		this.#mark();
	}

	/** Show the selection: the shaded area and the sentence. */
	#mark() {
		const [from, to] = this.#range ?? [this.#first, this.#last];
		this.brush.setAttribute("x", this.#x(from).toFixed(1));
		this.brush.setAttribute("width", this.#range ? (this.#x(to + 1) - this.#x(from)).toFixed(1) : "0");
		this.#describe();
	}

	/** @param {number} [hovered] */
	#describe(hovered) {
		const [from, to] = hovered === undefined ? (this.#range ?? [this.#first, this.#last]) : [hovered, hovered];
		let pages = 0;
		for (const [index, value] of this.#bins) if (index >= from && index <= to) pages += value;
		const dates = from === to ? this.#name(from) : `${this.#name(from)} to ${this.#name(to)}`;
		const hint = this.#range === null && hovered === undefined && this.#bins.length > 1 ? ". Drag over the bars to filter." : "";
		if (hovered === undefined) this.plot.setAttribute("aria-label", `Pages by ${this.#bin} of last change. ${dates}: ${count(pages, "page")}. The filters have fields for dates.`);
		this.note.textContent = this.#bins.length === 0 ? "No page has a date." : `${dates}: ${count(pages, "page")}${hint}`;
	}

	/** @param {[number, number] | null} range */
	#select(range) {
		this.#range = range;
		if (range === null) this.#isDragging = false;
		this.#mark();
	}

	#apply() {
		if (this.#range === null) return;
		const [from, to] = this.#range;
		this.#range = null;
		this.onBrush(dayOf(from, this.#bin), dayOf(to + 1, this.#bin, -1));
	}

	/** @param {PointerEvent} event */
	#binAt(event) {
		const x = event.clientX - this.plot.getBoundingClientRect().left - LEFT;
		const index = this.#first + Math.floor((x / this.chart.width) * this.#size);
		return Math.min(Math.max(this.#first, index), this.#last);
	}

	/** @param {PointerEvent} event */
	#down(event) {
		if (event.button !== 0 || this.#bins.length === 0) return;
		this.plot.setPointerCapture(event.pointerId);
		this.#isDragging = true;
		this.#start = this.#binAt(event);
		this.#moved(event);
	}

	/** @param {PointerEvent} event */
	#moved(event) {
		if (this.#bins.length === 0) return;
		const index = this.#binAt(event);
		if (!this.#isDragging) return this.#describe(index);
		this.#select([Math.min(index, this.#start), Math.max(index, this.#start)]);
	}

	#up() {
		if (!this.#isDragging) return;
		this.#isDragging = false;
		this.#apply();
	}
}
