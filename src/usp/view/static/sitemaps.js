/** Sitemaps: the tree as a table. */

import { get } from "./api.js";
import { external, fill, h, to } from "./dom.js";
import { bytes, count, day, minute, number, seconds } from "./format.js";
import { Listing } from "./listing.js";
import { status } from "./live.js";
import { fields, Search } from "./parts.js";
import { link, sitemapOf } from "./state.js";

export class SitemapsView {
	constructor() {
		this.search = new Search("Search sitemaps", (q, replace) => this.list.set({ q, row: "" }, replace));
		this.summary = h("p.summary", { role: "status" });
		/** @type {Listing<Sitemap>} */
		this.list = new Listing("sitemaps", {
			label: "Sitemaps",
			panel: "Sitemap details",
			empty: "No sitemaps here.",
			isSortable: true,
			columns: [
				...(status().targets.length > 1 ? [{ name: "source", title: "Target", width: 140, cell: (/** @type {Sitemap} */ row) => row.source ?? "" }] : []),
				{ name: "url", title: "Sitemap", width: 400, grow: true, cell: (row) => this.#name(row) },
				{ name: "type", title: "Type", width: 80, cell: (row) => row.type },
				{ name: "status", title: "Status", width: 190, cell: statusText },
				{ name: "all_pages", title: "Pages", width: 90, isNumber: true, cell: allPages },
				{ name: "problems", title: "Problems", width: 110, isNumber: true, cell: problems },
				{ name: "bytes", title: "Size", width: 85, isNumber: true, cell: (row) => bytes(row.bytes) },
				{ name: "bytes_inflated", title: "Inflated", width: 100, isNumber: true, cell: (row) => bytes(row.bytes_inflated) },
				{ name: "newest", title: "Newest page", width: 135, cell: (row) => day(row.newest) },
				{ name: "last_modified", title: "Last modified", width: 140, cell: (row) => day(row.last_modified) },
				{ name: "seconds", title: "Seconds", width: 100, isNumber: true, cell: (row) => row.seconds?.toFixed(2) ?? "–" },
				{ name: "fetched_at", title: "Fetched (UTC)", width: 150, cell: (row) => minute(row.fetched_at) },
			],
			load: (offset, limit, signal) => {
				const { q, sort } = this.list.params;
				return get("/api/sitemaps", { q, sort, offset, limit }, signal);
			},
			onTotal: (total) => {
				const failed = status().failed;
				fill(this.summary, count(total, "sitemap"), total > 0 && (this.list.params.sort ? ", sorted" : ", in the order of the tree"), failed > 0 && h("span.failed", `; ${number(failed)} failed`));
			},
			detail: async (row) => about(await this.list.row(row)),
		});
		this.element = h("div.view.fill", this.search.element, this.summary, this.list.element);
	}

	destroy() {
		this.list.destroy();
	}

	/** @param {Params} params */
	update(params) {
		this.search.show(params.q ?? "");
		this.list.update(params);
	}

	async refresh() {
		await this.list.refresh();
	}

	/** @param {Sitemap} row */
	#name(row) {
		const { url, pages, depth } = row;
		const title = pages ? `${url}: show ${count(pages, "page")}` : url;
		const name = pages ? h("a", { href: link("pages", { sitemap: sitemapOf(row) }), tabindex: "-1", title }, url) : h("span", { title }, url);
		const { sort, q } = this.list.params;
		return h("span.tree", sort || q ? [] : Array.from({ length: Math.min(depth, 12) }, () => h("i")), name);
	}
}

/** @param {Sitemap} row */
function about(row) {
	const { id: ___, parent: _, depth: __, url, reason, pages, all_pages: all, problems: found, ...rest } = row;
	const known = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
	for (const name of ["bytes", "bytes_inflated"]) if (name in known) known[name] = bytes(Number(known[name]));
	if (row.seconds !== null) known.seconds = seconds(row.seconds);
	const pagesLink = pages ? to(link("pages", { sitemap: sitemapOf(row) }), `show ${count(pages, "page")}`) : ["index", "robots"].includes(row.type) ? `It lists sitemaps, with ${count(all ?? 0, "page")} in all.` : "It has no pages.";
	const problemsLink = found ? to(link("problems", { sitemap: sitemapOf(row) }), `show ${count(found, "problem")}`) : null;
	return [h("p.url", external(url)), reason && h("p.error", `Failed: ${reason}`), h("p.actions", pagesLink, problemsLink), fields(known)];
}

/** Return the pages of a sitemap, or of all sitemaps below an index. @param {Sitemap} row */
function allPages({ pages, all_pages: all }) {
	return pages === all ? number(pages) : h("em", { title: "In all sitemaps below" }, number(all));
}

/** @param {Sitemap} row */
function problems(row) {
	const found = row.problems;
	return found ? h("a", { href: link("problems", { sitemap: sitemapOf(row) }), tabindex: "-1" }, number(found)) : number(found);
}

/** @param {Sitemap} row */
function statusText({ url, reason, status: code }) {
	if (!reason) return code === null ? "read" : String(code);
	return h("span.failed", { title: `Failed: ${reason}` }, `Failed: ${reason.split(`${url}: `).at(-1)}`);
}
