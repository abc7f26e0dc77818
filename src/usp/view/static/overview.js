/** Overview: how the run ended, when pages changed, where they are, and in which languages. */

import { get, isAbort, Latest } from "./api.js";
import { fill, h, to } from "./dom.js";
import { FilterBar } from "./filters.js";
import { bytes, capital, count, day, number, seconds } from "./format.js";
import { status } from "./live.js";
import { barList, plainTable, showError } from "./parts.js";
import { filtersOf, go, keyOf, link, pagesLink } from "./state.js";
import { Timeline } from "./timeline.js";
import { LEGEND, Treemap } from "./treemap.js";

const TOP = 8;

export class OverviewView {
	/** @type {Params} */
	#params = {};
	#latest = new Latest();
	/** @type {string | null} */
	#key = null;

	constructor() {
		this.filters = new FilterBar("overview");
		this.timeline = new Timeline((from, to) => go("overview", { ...this.#params, from, to, undated: "" }));
		this.treemap = new Treemap((section) => this.#sectionLink(section));
		this.tiles = h("dl.tiles");
		this.notes = h("div");
		this.summary = h("p.summary", { role: "status" });
		this.error = h("div");
		this.dates = h("div");
		this.crumbs = h("nav.crumbs", { "aria-label": "Section" });
		this.lists = h("div.cards");
		const bins = ["auto", "day", "month", "year"].map((bin) => h("option", { value: bin }, bin === "auto" ? "automatic" : bin));
		/** @type {HTMLSelectElement} */
		this.bin = h("select", { onchange: () => go("overview", { ...this.#params, bin: this.bin.value === "auto" ? "" : this.bin.value }) }, bins);
		const ages = LEGEND.map((name, age) => h("li", h(`span.swatch.age-${age}`, { "aria-hidden": "true" }), name));
		this.charts = h(
			"div.charts",
			card("Last changes", h("label.inline", "by", this.bin), this.timeline.element, this.dates),
			card("Sections", this.crumbs, this.treemap.element, h("div.legend", h("span", "Colour: median date of last change"), h("ul", ages))),
			this.lists,
		);
		this.element = h("div.view", this.tiles, this.notes, this.filters.element, this.summary, this.error, this.charts);
	}

	destroy() {
		this.#latest.stop();
	}

	/** @param {Params} params */
	update(params) {
		this.#params = params;
		this.filters.update(params);
		this.bin.value = params.bin ?? "auto";
		const key = keyOf(params);
		if (key === this.#key) return;
		if (this.#key === null) {
			this.#showTiles(null);
			this.charts.hidden = true;
			fill(this.summary, "Counting…");
		}
		this.#key = key;
		this.refresh();
	}

	async refresh() {
		this.element.setAttribute("aria-busy", "true");
		try {
			this.#show(await get("/api/overview", { ...filtersOf(this.#params), bin: this.#params.bin, top: TOP }, this.#latest.start()));
			fill(this.error);
		} catch (error) {
			if (!isAbort(error)) fill(this.summary);
			showError(this.error, error);
		}
		this.element.setAttribute("aria-busy", "false");
	}

	/** @param {Section} section */
	#sectionLink({ section, has_more: hasMore }) {
		return hasMore ? link("overview", { ...this.#params, section }) : pagesLink(this.#params, { section, direct: 1 });
	}

	/** @param {Overview} data */
	#show(data) {
		const hasFilters = Object.keys(filtersOf(this.#params)).length > 0;
		const all = status().pages;
		this.#showTiles(data.severities);
		fill(this.summary, hasFilters && [`The filters match ${number(data.pages)} of ${count(all, "page")}. `, data.pages > 0 && this.#pages({}, data.pages)]);
		this.charts.hidden = data.pages === 0;
		if (data.pages === 0) {
			const isReading = status().state === "loading";
			fill(this.summary, hasFilters && all > 0 ? "No page matches. Remove a filter to see more." : isReading ? "Waiting for the first pages…" : "There are no pages. ", !isReading && all === 0 && status().sitemaps > 0 && to(link("sitemaps"), "See what each sitemap answered"));
		}
		this.timeline.show(data.timeline, data.bin);
		const { early, late, undated } = data;
		fill(this.dates, this.#dates("no date", { pages: undated, undated: "1", from: "", to: "" }), this.#dates("a date before 1995", early), this.#dates("a date in the future", late));
		this.#showCrumbs(data.section);
		this.treemap.show(data.sections, data.other);
		this.filters.suggestLanguages(data.languages.map(([name]) => name));
		const languages = data.languages.map(([name, pages]) => ({ label: name, value: pages, after: this.#pages({ language: name }, pages) }));
		const has = Object.entries(data.has).map(([name, pages]) => ({ label: capital(name), value: pages, after: pages > 0 && this.#pages({ has: name }, pages) }));
		fill(
			this.lists,
			card("Freshest sections", this.#dated(data.freshest)),
			card("Stalest sections", this.#dated(data.stalest)),
			card("Languages", languages.length > 0 ? barList(languages) : h("p.hint", "No page names a language: none has alternates or news.")),
			card("Pages with", barList(has)),
		);
	}

	/** @param {string} what @param {Query & {pages: number}} filter */
	#dates(what, { pages, ...filter }) {
		return pages > 0 && h("p.hint", `${count(pages, "page has", "pages have")} ${what}: `, this.#pages(filter, pages));
	}

	/** @param {Section[]} sections */
	#dated(sections) {
		if (sections.length === 0) return h("p.hint", "No section has a date.");
		const rows = sections.map((one) => h("tr", h("th.wrap", { scope: "row" }, to(this.#sectionLink(one), one.name || "(directly here)")), h("td", day(one.median)), h("td.number", number(one.pages))));
		return plainTable("Sections by date", ["Section", "Median date", "#Pages"], rows);
	}

	/** @param {Record<string, number> | null} severities not known yet, if null */
	#showTiles(severities) {
		const now = status();
		const outcome = now.outcome?.kind ?? (now.state === "failed" ? "failed" : "reading");
		const found = ["error", "warning", "info"].filter((name) => severities && severities[name] > 0);
		const badges = found.map((name) => h(`span.badge.${name}`, count(severities?.[name] ?? 0, name, name === "info" ? name : undefined)));
		const problems = now.has_problems ? to(link("problems"), badges.length > 0 ? badges : severities ? "none" : "…") : now.state === "failed" ? "not checked" : h("small", "after reading");
		const tiles = {
			Outcome: h("span", { class: `outcome ${outcome}` }, capital(outcome)),
			Pages: number(now.pages),
			Sitemaps: [to(link("sitemaps"), number(now.sitemaps)), now.failed > 0 && h("small.failed", ` ${number(now.failed)} failed`)],
			Size: bytes(now.bytes),
			Time: seconds(now.seconds),
			Problems: problems,
		};
		fill(this.tiles, Object.entries(tiles).map(([name, value]) => h("div", h("dt", name), h("dd", value))));
		fill(this.notes, now.notes.length > 0 && h("ul.notes", now.notes.map((note) => h("li", note))));
	}

	/** @param {string} section */
	#showCrumbs(section) {
		const parts = section ? section.split("/") : [];
		const names = ["All sections", ...parts];
		const items = names.map((name, index) => {
			const path = parts.slice(0, index).join("/");
			return h("li", index === parts.length ? h("span", { "aria-current": "location" }, name) : to(link("overview", { ...this.#params, section: path }), name));
		});
		fill(this.crumbs, h("ol", this.#params.section ? items : items.slice(-1))); // A site with one host starts there.
	}

	/** @param {Query} filter @param {number} pages */
	#pages(filter, pages) {
		return to(pagesLink(this.#params, filter), `show ${count(pages, "page")}`);
	}
}

/** @param {string} title @param {...Children} content */
function card(title, ...content) {
	const [first] = content;
	const isLabel = first instanceof HTMLLabelElement;
	return h("section.card", { "aria-label": title }, h("div.card-head", h("h2", title), isLabel && first), isLabel ? content.slice(1) : content);
}
