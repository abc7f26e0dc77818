/** Problems: the codes with their counts, the page of the rule, the list of problems, and the document around one. */

import { get, Latest } from "./api.js";
import { external, fill, h, to } from "./dom.js";
import { count, number, shorten } from "./format.js";
import { Listing } from "./listing.js";
import { status } from "./live.js";
import { markdown } from "./markdown.js";
import { fields, plainTable, severityBadge, showError } from "./parts.js";
import { link, sitemapOf } from "./state.js";

export class ProblemsView {
	#rule = "";
	#latest = new Latest();

	constructor() {
		this.codes = h("div");
		this.summary = h("p.summary", { role: "status" });
		this.rule = h("div.rule");
		this.ruleCard = h("details.card", { hidden: true, open: true }, h("summary", "About this rule"), this.rule);
		/** @type {HTMLSelectElement} */
		this.sitemap = h("select", { onchange: () => this.list.set({ sitemap: this.sitemap.value, row: "" }) });
		/** @type {Listing<Problem>} */
		this.list = new Listing("problems", {
			label: "Problems",
			panel: "Place of the problem",
			empty: "No problems here.",
			columns: [
				{ name: "code", title: "Code", width: 60, cell: (row) => row.code },
				{ name: "severity", title: "Severity", width: 97, cell: (row) => severityBadge(row.severity) },
				{ name: "message", title: "Problem", width: 260, grow: true, cell: (row) => row.message },
				{ name: "line", title: "Line", width: 70, isNumber: true, cell: (row) => number(row.line) },
				{ name: "sitemap_url", title: "Sitemap", width: 245, cell: (row) => h("span", { title: row.sitemap_url }, shorten(row.sitemap_url.replace(/^https?:\/\//, ""), 27)) },
			],
			load: async (offset, limit, signal) => {
				const { code, sitemap } = this.list.params;
				const result = await get("/api/problems/list", { code, sitemap, offset, limit }, signal);
				this.#summarise(result.total, result.count);
				return result;
			},
			detail: async (row, signal) => {
				const content = await detail(await this.list.row(row), this.list.params, signal);
				requestAnimationFrame(() => this.list.element.querySelector(".line mark")?.scrollIntoView({ block: "nearest" }));
				return content;
			},
		});
		this.error = h("div");
		const side = h("div.side", h("label.inline", "Sitemap", this.sitemap), this.codes, this.ruleCard);
		const places = h("div.problem-list", h("div.toolbar", h("h2", "Places"), this.summary), this.list.element);
		this.element = h("div.view.fill", this.error, h("div.two-columns", side, places));
	}

	destroy() {
		this.#latest.stop();
		this.list.destroy();
	}

	/** @param {Params} params */
	update(params) {
		if (!this.list.update(params)) return;
		this.#showCodes();
		this.#showRule(params.code ?? "");
	}

	async refresh() {
		await Promise.all([this.#showCodes(), this.list.refresh()]);
	}

	/** @param {number} kept @param {number} all */
	#summarise(kept, all) {
		const rest = all > kept && `. The first ${number(kept)} are listed: a report keeps the first ones of each code and sitemap.`;
		fill(this.summary, count(all, "problem"), rest);
	}

	async #showCodes() {
		const { state, has_problems: isChecked } = status();
		const wait = state === "failed" ? "The sitemaps could not be read, so nothing was checked." : "The check runs after the sitemaps are read. This page fills by itself.";
		fill(this.error, !isChecked && h("p.notice", wait));
		try {
			const data = await get("/api/problems", { sitemap: this.list.params.sitemap }, this.#latest.start());
			fill(this.codes, this.#codeTable(data.codes));
			this.#showSitemaps(data.sitemaps);
		} catch (error) {
			showError(this.error, error);
		}
	}

	/** @param {CodeCount[]} codes */
	#codeTable(codes) {
		const { code: selected = "", sitemap } = this.list.params;
		const all = { code: "", title: "All problems", severity: "", count: codes.reduce((sum, item) => sum + item.count, 0), sitemaps: 0 };
		const rows = [all, ...codes].map(({ code, severity, title, count: found, sitemaps }) => {
			const isCurrent = code === selected;
			const name = h("th", { scope: "row" }, to(link("problems", { code, sitemap }), { "aria-current": isCurrent && "true" }, code || "All"));
			const cells = [h("td", severity && severityBadge(severity)), h("td.wrap", title), h("td.number", number(found)), h("td.number", sitemaps > 0 && number(sitemaps))];
			return h("tr", { class: isCurrent && "current" }, name, cells);
		});
		return plainTable("Problems by code", ["Code", "Severity", "Problem", "#Count", "#Sitemaps"], rows);
	}

	/** @param {SitemapCount[]} sitemaps */
	#showSitemaps(sitemaps) {
		const { sitemap = "" } = this.list.params;
		const options = sitemaps.slice(0, 500).map((item) => h("option", { value: sitemapOf(item) }, `${shorten(item.url, 60)} (${number(item.errors + item.warnings + item.infos)})`));
		if (sitemap && !options.some(({ value }) => value === sitemap)) options.push(h("option", { value: sitemap }, sitemap));
		if (document.activeElement === this.sitemap && this.sitemap.options.length === options.length + 1) return;
		fill(this.sitemap, h("option", { value: "" }, "All sitemaps"), options);
		this.sitemap.value = sitemap;
	}

	/** @param {string} code */
	async #showRule(code) {
		if (code === this.#rule) return;
		this.#rule = code;
		this.ruleCard.hidden = code === "";
		fill(this.rule);
		if (code === "") return;
		try {
			const { markdown: text } = await get(`/api/rules/${encodeURIComponent(code)}`);
			if (this.#rule === code) fill(this.rule, markdown(text, 2), h("p", to(link("pages", { problem: code }), "show the pages with this problem")));
		} catch (error) {
			showError(this.rule, error);
		}
	}
}

/** @param {Problem} row @param {Params} params @param {AbortSignal} signal */
async function detail(row, params, signal) {
	const { code, severity, message, sitemap, sitemap_url: url, line, column, text } = row;
	const about = {
		sitemap: h("span", external(url), sitemap !== null && [" ", to(link("pages", { sitemap: sitemapOf({ id: sitemap, url }) }), "its pages")]),
		...(line !== null && { place: `line ${number(line)}${column === null ? "" : `, column ${number(column)}`}` }),
		...(text && { text: h("code", text) }),
		...(row.page && { page: external(row.page) }),
	};
	const lead = h("p.lead", to(link("problems", { code, sitemap: params.sitemap }), code), " ", severityBadge(severity), " ", message);
	if (line === null || sitemap === null) return [lead, fields(about), h("p.hint", "This problem has no place in a document.")];
	const place = h("div");
	try {
		fill(place, excerptNode(await get("/api/document", { sitemap, line, column }, signal), row));
	} catch (error) {
		showError(place, error);
	}
	return [lead, place, fields(about)];
}

/** Show lines of a document, with the line and the place of the problem marked. @param {Excerpt} excerpt @param {Problem} problem */
function excerptNode({ lines }, { line: problemLine, column, text: found }) {
	const items = lines.map(([line, text, isCut, skipped]) => {
		const isHere = line === problemLine;
		const at = isHere && column !== null && column <= skipped + text.length ? column - skipped - 1 : -1;
		const end = at + (found && text.startsWith(found, at) ? found.length : 1);
		const content = at < 0 ? [text] : [text.slice(0, at), h("mark", text.slice(at, end)), text.slice(end)];
		const mark = h("span.here", isHere && ["▶", h("span.visually-hidden", "The problem is here: ")]);
		return h(isHere ? "li.line.current" : "li.line", { "aria-current": isHere && "true" }, mark, h("span.line-number", line), h("code", skipped > 0 && h("em", "… "), content, isCut && h("em", " … (cut)")));
	});
	return h("div.scroll.code", { tabindex: "0", role: "region", "aria-label": "Lines of the document" }, h("ol.lines", items));
}
