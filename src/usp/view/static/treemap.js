/**
 * A treemap of sections: the area is the number of pages, the colour the age. Each cell is a link; the arrow keys move
 * between cells.
 */

import { svg } from "./dom.js";
import { count, day } from "./format.js";

/** The classes of age in days, and what the legend says. The style sheet has a colour for each. */
const AGES = /** @type {[number, string][]} */ ([
	[30, "last 30 days"],
	[182, "last 6 months"],
	[365, "last year"],
	[1095, "last 3 years"],
	[Infinity, "older"],
]);
const UNDATED = AGES.length;

/** @param {string | null} date */
function ageClass(date) {
	if (!date) return UNDATED;
	const days = (Date.now() - Date.parse(date)) / 86_400_000;
	return AGES.findIndex(([most]) => days <= most);
}

/** The names of the classes of age. */
export const LEGEND = [...AGES.map(([, name]) => name), "no date"];

/**
 * Lay out values (largest first) in a box, in rows of cells that are nearly square.
 * Bruls, Huizing, van Wijk: Squarified treemaps, 2000.
 * @param {number[]} values
 * @param {Box} box
 * @returns {Box[]}
 */
function squarify(values, box) {
	const sum = values.reduce((total, value) => total + value, 0);
	const scale = sum > 0 ? (box.width * box.height) / sum : 0;
	/** @type {Box[]} */
	const boxes = [];
	let { x, y, width, height } = box;
	let at = 0;
	while (at < values.length) {
		const side = Math.max(1e-6, Math.min(width, height));
		let end = at;
		let area = 0;
		let worst = Infinity;
		while (end < values.length) {
			const next = area + values[end] * scale;
			const thickness = next / side;
			const ratio = Math.max(...[values[at], values[end]].map((value) => {
				const length = Math.max(1e-9, value * scale) / thickness;
				return Math.max(length / thickness, thickness / length);
			}));
			if (ratio > worst) break;
			worst = ratio;
			area = next;
			end += 1;
		}
		const thickness = area / side;
		let offset = 0;
		for (; at < end; at += 1) {
			const length = thickness > 0 ? (values[at] * scale) / thickness : 0;
			if (width >= height) boxes.push({ x, y: y + offset, width: thickness, height: length });
			else boxes.push({ x: x + offset, y, width: length, height: thickness });
			offset += length;
		}
		if (width >= height) [x, width] = [x + thickness, width - thickness];
		else [y, height] = [y + thickness, height - thickness];
	}
	return boxes;
}

export class Treemap {
	/** @type {Section[]} */
	#sections = [];
	/** @type {{sections: number, pages: number} | null} */
	#other = null;
	#current = 0;

	/** @param {(section: Section) => string} linkTo */
	constructor(linkTo) {
		this.linkTo = linkTo;
		this.element = svg("svg", { class: "treemap", role: "group", "aria-label": "Sections by number of pages; the arrow keys move" });
		this.element.addEventListener("keydown", (event) => this.#key(event));
		new ResizeObserver(() => this.#draw()).observe(this.element);
	}

	/** @param {Section[]} sections largest first @param {{sections: number, pages: number} | null} other */
	show(sections, other) {
		const focused = this.#sections[this.#current]?.section;
		this.#sections = sections.filter((section) => section.pages > 0);
		this.#other = other;
		this.#current = Math.max(0, this.#sections.findIndex(({ section }) => section === focused));
		this.#draw();
	}

	#draw() {
		const { clientWidth: width, clientHeight: height } = this.element;
		if (width === 0) return;
		const hasFocus = this.element.contains(document.activeElement);
		const values = this.#sections.map((section) => section.pages);
		if (this.#other) values.push(this.#other.pages);
		const boxes = squarify(values, { x: 0, y: 0, width, height });
		const cells = boxes.map((box, index) => (index < this.#sections.length ? this.#cell(this.#sections[index], index, box) : this.#rest(box)));
		this.element.replaceChildren(...cells);
		if (hasFocus) this.#focus(this.#current);
	}

	/** Return a rectangle with the lines that have room. A nested svg cuts a long name; the title says all of it. @param {Box} box @param {string[]} lines */
	#box({ x, y, width, height }, lines) {
		const size = { width: Math.max(0, width - 1), height: Math.max(0, height - 1) };
		const shown = width > 30 ? lines.filter(({ length }, index) => height > 20 + index * 15 && (index === 0 || width > 8 + length * 7)) : [];
		const texts = shown.map((line, index) => svg("text", { x: 6, y: 16 + index * 15, class: index === 0 && "name" }, line));
		return svg("svg", { x, y, ...size, "aria-hidden": "true" }, svg("rect", { width: "100%", height: "100%" }), texts);
	}

	/** @param {Section} section @param {number} index @param {Box} box */
	#cell(section, index, box) {
		const lines = [section.name || "(directly here)", count(section.pages, "page"), section.median ? day(section.median) : "no dates"];
		const label = `${lines.join(" ")}; ${section.has_more ? "zoom in" : "show its pages"}`;
		const tabindex = index === this.#current ? "0" : "-1";
		const props = { href: this.linkTo(section), class: `age-${ageClass(section.median)}`, tabindex, onfocus: () => this.#enter(index) };
		return svg("a", props, svg("title", label), this.#box(box, lines));
	}

	/** @param {Box} box */
	#rest(box) {
		const lines = [count(this.#other?.sections ?? 0, "smaller section"), count(this.#other?.pages ?? 0, "page")];
		return svg("g", { class: "age-5", role: "img" }, svg("title", lines.join(" ")), this.#box(box, lines));
	}

	/** @param {number} index */
	#enter(index) {
		this.element.children[this.#current]?.setAttribute("tabindex", "-1");
		this.element.children[index]?.setAttribute("tabindex", "0");
		this.#current = index;
	}

	/** @param {number} index */
	#focus(index) {
		const cell = this.element.children[index];
		if (cell instanceof SVGElement) cell.focus({ preventScroll: true });
	}

	/** @param {KeyboardEvent} event */
	#key(event) {
		const last = this.#sections.length - 1;
		/** @type {Record<string, number>} */
		const targets = { ArrowRight: this.#current + 1, ArrowDown: this.#current + 1, ArrowLeft: this.#current - 1, ArrowUp: this.#current - 1, Home: 0, End: last };
		if (!(event.key in targets)) return;
		event.preventDefault();
		this.#focus(Math.min(Math.max(0, targets[event.key]), last));
	}
}
