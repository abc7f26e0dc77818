/** What charts share: an SVG that is drawn again when its size changes, an axis of numbers, labels that fit. */

import { svg } from "./dom.js";
import { compact } from "./format.js";

export const LEFT = 46;
export const TOP = 12;
const BOTTOM = 24;

/** Return round numbers from 0 up to `most`, about four of them. @param {number} most */
export function ticks(most) {
	const least = Math.max(1, most / 4);
	const power = 10 ** Math.floor(Math.log10(least));
	const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) ?? least;
	return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

export class Plot {
	/** @param {number} height @param {Props} props @param {() => void} draw */
	constructor(height, props, draw) {
		this.height = height;
		this.element = svg("svg", { class: "plot", height, ...props });
		new ResizeObserver(draw).observe(this.element);
	}

	/** The width and the height for bars, without the axes. */
	get width() {
		return Math.max(40, this.element.clientWidth - LEFT - 4);
	}

	get inner() {
		return this.height - TOP - BOTTOM;
	}

	/** Return lines with their numbers. @param {number[]} values @param {(value: number) => number} y */
	axis(values, y) {
		const lines = values.map((value) => [
			svg("line", { class: value === 0 ? "base" : null, x1: LEFT, x2: LEFT + this.width, y1: y(value), y2: y(value) }),
			svg("text", { class: "end", x: LEFT - 6, y: y(value) + 4 }, compact(Math.abs(value))),
		]);
		return svg("g", { class: "axis" }, lines);
	}

	/** Return names below the bars, as many as have room. @param {number} bars @param {number} room how wide a name is @param {(index: number) => string} name */
	names(bars, room, name) {
		const step = Math.max(1, Math.ceil((room * bars) / this.width));
		const labels = [];
		for (let index = 0; index < bars; index += step) {
			const x = LEFT + ((index + 0.5) / bars) * this.width;
			if (x > LEFT + this.width - room / 2 + 8) break;
			labels.push(svg("text", { class: "middle", x, y: this.height - 7 }, name(index)));
		}
		return svg("g", { class: "axis" }, labels);
	}
}
