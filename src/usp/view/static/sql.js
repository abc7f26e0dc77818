/**
 * SQL: an editor, the tables to query, examples, and the result as a table or a chart.
 *
 * The query is part of the URL. A deep link fills the editor but does not run: only the reader runs queries.
 */

import { get, messageOf, post } from "./api.js";
import { external, fill, h, isWeb } from "./dom.js";
import { count, number, seconds } from "./format.js";
import { barList, showError } from "./parts.js";
import { go } from "./state.js";
import { Table } from "./table.js";

const BARS = 100;

/** The result of the last query, for the back button. @type {{query: string, result: Result} | null} */
let last = null;

export class SqlView {
	/** @type {Params} */
	#params = {};
	/** @type {string | null} */
	#running = null;
	#isCancelled = false;
	/** @type {Table<unknown[]> | null} */
	#table = null;
	/** @type {{as: string, result: Result} | null} */
	#shown = null;

	constructor() {
		const onkeydown = (/** @type {KeyboardEvent} */ event) => {
			if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
			event.preventDefault();
			this.#run();
		};
		this.editor = h("textarea", { id: "sql-editor", rows: "6", spellcheck: "false", autocapitalize: "off", "aria-describedby": "sql-help", onkeydown });
		this.run = h("button.primary", { onclick: () => this.#run() }, "Run");
		this.cancel = h("button", { disabled: true, onclick: () => this.#cancel() }, "Cancel");
		/** @type {HTMLSelectElement} */
		this.as = h("select", { onchange: () => go("sql", { ...this.#params, as: this.as.value === "chart" ? "chart" : "" }, true) }, h("option", { value: "table" }, "table"), h("option", { value: "chart" }, "bar chart"));
		this.message = h("p.summary", { role: "status" });
		this.output = h("div.split");
		this.tables = h("div");
		this.examples = h("ul.examples");
		const help = h("span.hint", { id: "sql-help" }, "Ctrl+Enter or ⌘+Enter runs the query. It stops after 30 seconds.");
		const toolbar = h("div.toolbar", this.run, this.cancel, h("label.inline", "Show as", this.as), help);
		const column = h("div.main-column", h("label", { for: "sql-editor" }, "Query"), this.editor, toolbar, this.message, this.output);
		const side = h("div.side", h("section.card", h("h2", "Examples"), this.examples), h("section.card", h("h2", "Tables"), this.tables));
		this.element = h("div.view.fill", h("div.two-columns.sql", column, side));
		this.#help();
	}

	destroy() {
		this.#cancel();
		this.#table?.destroy();
	}

	/** @param {Params} params */
	update(params) {
		this.#params = params;
		this.as.value = params.as === "chart" ? "chart" : "table";
		if (params.query && this.editor !== document.activeElement) this.editor.value = params.query;
		if (last && params.query === last.query) this.#show(last.result);
		else if (this.#running === null) fill(this.message, "Run the query to see the result, or choose an example.");
	}

	async refresh() {
		if (this.tables.childElementCount === 0) await this.#help();
	}

	async #help() {
		try {
			/** @type {Examples} */
			const { tables, examples } = await get("/api/sql/examples");
			fill(this.examples, examples.map(({ title, query }) => h("li", h("button.plain", { onclick: () => this.#use(query) }, title))));
			const list = Object.entries(tables).map(([name, columns], index) => {
				const types = columns.map(([column, type]) => [h("dt", column), h("dd", { title: type }, type.length > 24 ? `${type.slice(0, 23)}…` : type)]);
				return h("details", { "data-key": `table-${name}`, open: index === 0 }, h("summary", h("code", name), h("small", ` ${count(columns.length, "column")}`)), h("dl.columns", types));
			});
			fill(this.tables, list);
			const isUnused = this.editor.value === "" && this.editor !== document.activeElement;
			if (isUnused && examples.length > 0) this.editor.value = examples[0].query;
		} catch (error) {
			showError(this.tables, error);
		}
	}

	/** @param {string} query */
	#use(query) {
		this.editor.value = query;
		this.editor.focus();
		this.#run();
	}

	async #run() {
		const query = this.editor.value.trim();
		if (query === "" || this.#running !== null) return;
		const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
		this.#setRunning(id);
		this.#isCancelled = false;
		try {
			/** @type {Result} */
			const result = await post("/api/sql", { query, id });
			if (this.#running !== id) return;
			last = { query, result };
			this.#setRunning(null);
			if (this.#params.query === query) this.#show(result);
			else go("sql", { ...this.#params, query });
		} catch (error) {
			if (this.#running !== id) return;
			this.#setRunning(null);
			fill(this.message, messageOf(error));
			this.message.classList.toggle("error", !this.#isCancelled);
		}
	}

	/** @param {string | null} id */
	#setRunning(id) {
		this.#running = id;
		const [off, on] = id === null ? [this.cancel, this.run] : [this.run, this.cancel];
		const hadFocus = document.activeElement === off;
		off.disabled = true;
		on.disabled = false;
		if (hadFocus) on.focus(); // A disabled button loses the focus.
		if (id === null) return;
		this.message.classList.remove("error");
		fill(this.message, "Running…");
	}

	#cancel() {
		this.#isCancelled = true;
		if (this.#running !== null) post("/api/sql/cancel", { id: this.#running }).catch((error) => showError(this.message, error));
	}

	/** @param {Result} result */
	#show(result) {
		const as = this.as.value;
		if (this.#shown?.result === result && this.#shown.as === as) return;
		this.#shown = { as, result };
		this.message.classList.remove("error");
		const cut = result.is_cut ? ` Only the first ${number(result.rows.length)} rows are shown; add a LIMIT, or aggregate.` : "";
		fill(this.message, `${count(result.rows.length, "row")} in ${seconds(result.seconds)}.${cut}`);
		this.#table?.destroy();
		this.#table = null;
		if (as === "chart") return fill(this.output, chart(result));
		this.#table = resultTable(result);
		fill(this.output, this.#table.element);
		this.#table.reset();
	}
}

/** @param {Result} result */
function chart({ columns, rows }) {
	const value = columns.findLastIndex(({ type }) => type === "number");
	const labels = columns.flatMap(({ type }, index) => (index !== value && type !== "other" ? [index] : []));
	if (value < 0 || labels.length === 0) return h("p.notice", "A chart needs a column of numbers, and one to name the bars.");
	const bars = rows.slice(0, BARS).map((row) => ({ label: labels.map((index) => cellText(row[index])).join(" · "), value: Number(row[value] ?? 0), text: cellText(row[value]) }));
	const note = rows.length > BARS ? ` The first ${BARS} rows.` : "";
	return h("div.card.chart", h("p.hint", `${columns[value].name} by ${labels.map((index) => columns[index].name).join(" and ")}.${note}`), barList(bars));
}

/** @param {Result} result @returns {Table<unknown[]>} */
function resultTable({ columns, rows }) {
	const width = (/** @type {number} */ index) => Math.min(420, 36 + 8 * Math.max(columns[index].name.length, ...rows.slice(0, 50).map((row) => cellText(row[index]).length)));
	return new Table({
		label: "Result",
		empty: "The query returned no rows.",
		columns: columns.map(({ name, type }, index) => ({
			name: String(index),
			title: name,
			width: width(index),
			grow: index === columns.findIndex((column) => column.type !== "number"),
			isNumber: type === "number",
			cell: (row) => (isWeb(row[index]) ? external(row[index]) : cellText(row[index])),
		})),
		key: (_, index) => index,
		load: async (offset, limit) => ({ total: rows.length, rows: rows.slice(offset, offset + limit) }),
	});
}

/** @param {unknown} value */
function cellText(value) {
	if (value === null || value === undefined) return "null";
	if (typeof value === "number") return Number.isInteger(value) ? number(value) : String(value);
	return typeof value === "object" ? JSON.stringify(value) : String(value);
}
