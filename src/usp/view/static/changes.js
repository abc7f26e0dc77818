/** Changes: what was added, removed and changed from run to run, and the list between any two runs. */

import { get } from "./api.js";
import { LEFT, Plot, ticks, TOP } from "./chart.js";
import { external, fill, h, svg, to } from "./dom.js";
import { capital, minute, number } from "./format.js";
import { Listing } from "./listing.js";
import { exportMenu, fields, Search, showError } from "./parts.js";
import { link } from "./state.js";

const KINDS = /** @type {const} */ (["added", "removed", "changed", "moved"]);

export class ChangesView {
	/** @type {Run[]} */
	#runs = [];

	constructor() {
		this.chart = new Plot(190, { role: "group", "aria-label": "Changes of each run" }, () => this.#draw());
		/** @type {HTMLSelectElement} */
		this.old = h("select", { onchange: () => this.list.set({ old: this.old.value, row: "" }) });
		/** @type {HTMLSelectElement} */
		this.new = h("select", { onchange: () => this.list.set({ new: this.new.value, row: "" }) });
		this.search = new Search("Search URLs", (q, replace) => this.list.set({ q, row: "" }, replace));
		this.kinds = h("ul.tabs", { "aria-label": "Kind of change" });
		this.error = h("div");
		/** @type {Listing<Change>} */
		this.list = new Listing("changes", {
			label: "Changes",
			panel: "Change details",
			empty: "Nothing changed between these two runs, or nothing matches.",
			columns: [
				{ name: "change", title: "Change", width: 100, cell: (row) => h(`span.badge.is-${row.change}`, row.change) },
				{ name: "url", title: "URL", width: 320, grow: true, cell: (row) => row.url },
				{ name: "fields", title: "Fields", width: 200, cell: (row) => row.fields.join(", ").replace(/_/g, " ") },
				{ name: "site", title: "Site", width: 200, cell: (row) => row.site },
			],
			load: async (offset, limit, signal) => {
				await this.#load();
				if (this.#runs.length < 2) return { total: 0, rows: [] };
				const result = await get("/api/changes", { ...this.#query(), offset, limit }, signal);
				this.#showKinds(result.counts);
				return result;
			},
			detail: async (row) => changeNodes(await this.list.row(row)),
		});
		const legend = KINDS.slice(0, 3).map((kind) => h("li", h(`span.swatch.${kind}`, { "aria-hidden": "true" }), kind));
		const card = h("section.card", { "aria-label": "Runs" }, h("div.card-head", h("h2", "Runs"), h("ul.legend", legend)), this.chart.element);
		const toolbar = h("div.toolbar", h("label.inline", "From run", this.old), h("label.inline", "to run", this.new), this.search.element, this.kinds, exportMenu("/api/changes/export", () => this.#query()));
		this.body = h("div.view.fill", card, toolbar, this.list.element);
		this.element = h("div.view.fill", this.error, this.body);
	}

	destroy() {
		this.list.destroy();
	}

	/** @param {Params} params */
	update(params) {
		this.search.show(params.q ?? "");
		this.list.update(params);
		this.#showRuns();
	}

	async refresh() {
		this.#runs = [];
		await this.list.refresh();
	}

	async #load() {
		if (this.#runs.length > 0) return;
		try {
			this.#runs = (await get("/api/runs")).runs;
			const none = this.#runs.length === 0 ? "This is no crawl folder. Run usp crawl twice, and explore its folder." : "There is only one run. Run usp crawl again.";
			fill(this.error, this.#runs.length < 2 && h("p.notice", none));
			this.body.hidden = this.#runs.length < 2;
			this.#showRuns();
		} catch (error) {
			showError(this.error, error);
		}
	}

	/** @returns {Params} the two runs and the filters; by default the last two runs */
	#query() {
		const [before, last] = [this.#runs.at(-2), this.#runs.at(-1)].map((run) => String(run?.run ?? ""));
		const { old = before, new: next = last, kind = "", q = "" } = this.list.params;
		return { old, new: next, kind, q };
	}

	#showRuns() {
		const query = this.#query();
		for (const [select, value] of /** @type {[HTMLSelectElement, string][]} */ ([[this.old, query.old], [this.new, query.new]])) {
			if (select.options.length !== this.#runs.length) fill(select, this.#runs.map((run) => h("option", { value: run.run }, `${run.run} (${minute(run.started)})`)));
			select.value = value;
		}
		this.#draw();
	}

	/** @param {number} index of a run that has one before */
	#linkTo(index) {
		return link("changes", { old: this.#runs[index - 1].run, new: this.#runs[index].run });
	}

	/** @param {Record<string, number>} counts */
	#showKinds(counts) {
		const { row: _, kind: selected = "", ...rest } = this.list.params;
		const total = KINDS.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0);
		const items = ["", ...KINDS].map((kind) => h("li", to(link("changes", { ...rest, kind }), { "aria-current": kind === selected && "true" }, `${capital(kind || "all")} ${number(kind ? (counts[kind] ?? 0) : total)}`)));
		fill(this.kinds, items);
	}

	/** Draw what each run added and changed above the line, and what it removed below it. */
	#draw() {
		const { width, inner } = this.chart;
		const runs = this.#runs;
		const most = Math.max(1, ...runs.map((run) => (run.added ?? 0) + (run.changed ?? 0)));
		const least = Math.max(0, ...runs.map((run) => run.removed ?? 0));
		const y = (/** @type {number} */ value) => TOP + (inner * (most - value)) / (most + least);
		const step = width / Math.max(1, runs.length);
		const bars = runs.map((run, index) => {
			const size = Math.min(step * 0.7, 70);
			const x = LEFT + index * step + (step - size) / 2;
			const [added, changed, removed] = [run.added ?? 0, run.changed ?? 0, run.removed ?? 0];
			const bar = (/** @type {string} */ kind, /** @type {number} */ from, /** @type {number} */ until) => svg("rect", { class: kind, x, width: size, y: y(from), height: y(until) - y(from) });
			const parts = [bar("added", added, 0), bar("changed", added + changed, added), bar("removed", 0, -removed), svg("rect", { class: "hit", x: LEFT + index * step, width: step, y: TOP, height: inner })];
			if (index === 0) return svg("g", svg("title", `Run ${run.run} is the first`), parts);
			const label = `Run ${run.run}, ${minute(run.started)}: ${number(added)} added, ${number(changed)} changed, ${number(removed)} removed`;
			const isShown = this.#query().old === String(runs[index - 1].run) && this.#query().new === String(run.run);
			return svg("a", { href: this.#linkTo(index), "aria-label": label, class: isShown && "shown" }, svg("title", label), parts);
		});
		const axis = this.chart.axis([...ticks(most), ...ticks(least).slice(1).map((value) => -value)], y);
		const names = this.chart.names(runs.length, 60, (index) => `run ${runs[index].run}`);
		this.chart.element.replaceChildren(axis, svg("g", { class: "runs" }, bars), names);
	}
}

/** @param {Change} row */
function changeNodes({ change, url, site, fields: changed, old_sitemap, new_sitemap, old: before, new: after }) {
	const all = { site, ...(changed.length > 0 && { changed: changed.join(", ") }), before, after, old_sitemap, new_sitemap };
	return [h("p.lead", `${capital(change)}: `, external(url)), fields(Object.fromEntries(Object.entries(all).filter(([, value]) => value)))];
}
