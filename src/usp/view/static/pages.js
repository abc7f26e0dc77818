/** Pages: a table of all that match, and their export. */

import { get } from "./api.js";
import { external, fill, h, to } from "./dom.js";
import { FilterBar } from "./filters.js";
import { count, number } from "./format.js";
import { Listing } from "./listing.js";
import { status } from "./live.js";
import { exportMenu, fields } from "./parts.js";
import { filtersOf, link, sitemapOf } from "./state.js";

export class PagesView {
	constructor() {
		this.filters = new FilterBar("pages");
		this.summary = h("p.summary", { role: "status" });
		/** @type {Listing<Page>} */
		this.list = new Listing("pages", {
			label: "Pages",
			panel: "Page details",
			empty: "There is no page, or none that matches the filters.",
			isSortable: true,
			columns: [
				{ name: "url", title: "URL", width: 320, grow: true, cell: (row) => this.#url(row) },
				{ name: "last_modified", title: "Last modified", width: 140, cell: (row) => row.last_modified?.slice(0, 10) },
				{ name: "change_frequency", title: "Frequency", width: 115, cell: (row) => row.change_frequency ?? "" },
				{ name: "priority", title: "Priority", width: 95, isNumber: true, cell: (row) => (row.priority === null ? "" : String(row.priority)) },
				{ name: "", title: "Has", width: 175, cell: extras },
				{ name: "", title: "Problems", width: 110, cell: (row) => row.problems.join(" ") },
			],
			key: (row) => row.row,
			load: (offset, limit, signal) => get("/api/pages", { ...filtersOf(this.list.params), sort: this.list.params.sort, offset, limit }, signal),
			onTotal: (total) => {
				const all = status().pages;
				fill(this.summary, total === all ? count(total, "page") : `${number(total)} of ${count(all, "page")}`);
			},
			detail,
		});
		this.overview = h("a", "Overview of these pages");
		const rows = exportMenu("/api/export", () => ({ ...filtersOf(this.list.params), sort: this.list.params.sort }));
		const toolbar = h("div.toolbar", this.summary, this.overview, rows);
		this.element = h("div.view.fill", this.filters.element, toolbar, this.list.element);
	}

	destroy() {
		this.list.destroy();
	}

	/** @param {Params} params */
	update(params) {
		this.filters.update(params);
		this.overview.href = link("overview", filtersOf(params));
		this.list.update(params);
	}

	async refresh() {
		await this.list.refresh();
	}

	/** @param {Page} row */
	#url({ url }) {
		const { q = "", regex } = this.list.params;
		const at = q && !regex ? url.toLowerCase().indexOf(q.toLowerCase()) : -1;
		if (at < 0) return url;
		return h("span", { title: url }, url.slice(0, at), h("mark", url.slice(at, at + q.length)), url.slice(at + q.length));
	}
}

/** @param {string} row @param {AbortSignal} signal */
async function detail(row, signal) {
	const { url, sitemap, row: _, problems = [], ...rest } = await get("/api/page", { row }, signal);
	const { sitemap_url: __, source_name: ___, ...shown } = rest;
	const from = h("span", external(sitemap.url), h("br"), to(link("pages", { sitemap: sitemapOf(sitemap) }), "all pages of this sitemap"));
	const codes = problems.map((/** @type {string} */ code) => h("span", to(link("problems", { code }), code), ` ${status().codes[code]?.title ?? ""}`));
	return [h("p.url", external(url)), fields({ ...shown, ...(codes.length > 0 && { problems: codes }), sitemap: from })];
}

/** @param {Page} row */
function extras({ news, images, videos, alternates }) {
	const counts = Object.entries({ image: images, video: videos, alternate: alternates }).filter(([, value]) => value > 0);
	return [...(news ? ["news"] : []), ...counts.map(([name, value]) => count(value, name))].join(", ");
}
