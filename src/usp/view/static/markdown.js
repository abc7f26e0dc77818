/** Turn the page of a rule into DOM nodes: headings, paragraphs, `code`, URLs and fenced blocks. Nothing is parsed as HTML. */

import { external, h } from "./dom.js";

/** Return the nodes of one line of text. @param {string} text @returns {(Node | string)[]} */
function inline(text) {
	const pattern = /`([^`]+)`|https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:)]/g;
	/** @type {(Node | string)[]} */
	const nodes = [];
	let end = 0;
	for (const match of text.matchAll(pattern)) {
		const [whole, code] = match;
		nodes.push(text.slice(end, match.index), code === undefined ? external(whole) : h("code", code));
		end = match.index + whole.length;
	}
	nodes.push(text.slice(end));
	return nodes;
}

/**
 * Return the nodes of a Markdown text. `level` is the level of its first heading on this page.
 * @param {string} source
 * @param {number} level
 * @returns {HTMLElement[]}
 */
export function markdown(source, level) {
	const lines = source.split("\n");
	/** @type {HTMLElement[]} */
	const nodes = [];
	let at = 0;
	while (at < lines.length) {
		const line = lines[at];
		const heading = /^(#{1,6})\s+(.*)$/.exec(line);
		if (line.trim() === "") at += 1;
		else if (line.startsWith("```")) {
			const name = line.slice(3).replace(/^\S+ */, ""); // Behind the language.
			const body = [];
			for (at += 1; at < lines.length && !lines[at].startsWith("```"); at += 1) body.push(lines[at]);
			at += 1;
			if (name) nodes.push(h("p.code-name", name));
			nodes.push(h("pre", { tabindex: "0", role: "region", "aria-label": name || "Code" }, h("code", body.join("\n"))));
		} else if (heading) {
			const tag = /** @type {"h2"} */ (`h${Math.min(6, level + heading[1].length - 1)}`);
			nodes.push(h(tag, inline(heading[2])));
			at += 1;
		} else {
			const body = [];
			for (; at < lines.length && lines[at].trim() !== "" && !/^(```|#{1,6}\s)/.test(lines[at]); at += 1) body.push(lines[at].trim());
			nodes.push(h("p", inline(body.join(" "))));
		}
	}
	return nodes;
}
