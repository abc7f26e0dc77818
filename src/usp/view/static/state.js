/** The state of the page is its URL, such as `#/pages?q=blog&row=17`: every state is a deep link. */

import { address } from "./api.js";
import { status } from "./live.js";

/** The parameters that /api/overview, /api/pages and /api/export share. */
export const FILTERS = ["q", "regex", "section", "direct", "from", "to", "undated", "sitemap", "language", "problem", "has"];

/** @param {string} hash @returns {Route} */
export function parse(hash) {
	const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
	return { view: path || "overview", params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Return the link to a state. Empty parameters are left out. @param {string} view @param {Query} [params] */
export function link(view, params = {}) {
	return address(`#/${view}`, params).replace(/%2F/g, "/").replace(/%3A/g, ":").replace(/%2C/g, ",");
}

/** @returns {Route} */
export function current() {
	return parse(location.hash);
}

/** Go to a state. With `replace`, the history has no step for it. @param {string} view @param {Query} params @param {boolean} [replace] */
export function go(view, params, replace = false) {
	const target = link(view, params);
	if (target === location.hash) return;
	if (!replace) {
		location.hash = target;
		return;
	}
	history.replaceState(null, "", target);
	dispatchEvent(new Event("hashchange"));
}

/** @param {Params} params @returns {Params} */
export function filtersOf(params) {
	return Object.fromEntries(Object.entries(params).filter(([name]) => FILTERS.includes(name)));
}

/** Return the link to Pages with the current filters and some more. @param {Params} params @param {Query} [more] */
export function pagesLink(params, more = {}) {
	return link("pages", { ...filtersOf(params), ...more });
}

/** Return a text that is equal for equal parameters, apart from those in `except`. @param {Params} params @param {string[]} [except] */
export function keyOf(params, except = []) {
	return JSON.stringify(Object.entries(params).filter(([name]) => !except.includes(name)).sort());
}

/** Return what `sitemap=` says for a sitemap: its URL, unless several targets may have that. @param {{id: number, url: string}} sitemap */
export function sitemapOf({ id, url }) {
	return status().targets.length > 1 ? id : url;
}
