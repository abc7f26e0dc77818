/** Numbers, sizes, dates and durations as text. */

const NUMBER = new Intl.NumberFormat("en-US");
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact" });
const NONE = "–";

/** @param {number | null | undefined} value */
export function number(value) {
	return value === null || value === undefined ? NONE : NUMBER.format(value);
}

/** Return a number for an axis: "300K". @param {number} value */
export function compact(value) {
	return COMPACT.format(value);
}

/** Return "1 page" or "1,200 pages". @param {number} value @param {string} one @param {string} [many] */
export function count(value, one, many = one + "s") {
	return `${number(value)} ${value === 1 ? one : many}`;
}

/** @param {number | null | undefined} value */
export function bytes(value) {
	if (value === null || value === undefined) return NONE;
	if (value < 1000) return `${value} B`;
	let unit = -1;
	let rest = value;
	do {
		rest /= 1000;
		unit += 1;
	} while (rest >= 999.5 && unit < 3);
	return `${rest < 10 ? rest.toFixed(1) : NUMBER.format(Math.round(rest))} ${["kB", "MB", "GB", "TB"][unit]}`;
}

/** @param {number | null | undefined} value */
export function seconds(value) {
	if (value === null || value === undefined) return NONE;
	if (value < 10) return `${value.toFixed(2)} s`;
	if (value < 120) return `${value.toFixed(0)} s`;
	return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** @param {string | null | undefined} value */
export function day(value) {
	return value ? value.slice(0, 10) : NONE;
}

/** @param {string | null | undefined} value */
export function minute(value) {
	return value ? value.slice(0, 16).replace("T", " ") : NONE;
}

/** Shorten in the middle: both ends of a URL matter. @param {string} text @param {number} length */
export function shorten(text, length) {
	if (text.length <= length) return text;
	const head = Math.ceil((length - 1) / 2);
	return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}

/** @param {string} text */
export function capital(text) {
	return text.slice(0, 1).toUpperCase() + text.slice(1);
}
