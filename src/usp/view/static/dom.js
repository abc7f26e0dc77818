/** Build DOM nodes. Everything a site wrote becomes text: no function here parses HTML. */

/** @param {Element} node @param {unknown[]} args */
function build(node, args) {
	const first = args[0];
	const hasProps = typeof first === "object" && first !== null && !(first instanceof Node) && !Array.isArray(first);
	append(node, hasProps ? args.slice(1) : args); // Before the properties: `value` of a select needs its options.
	if (hasProps) assign(node, first);
}

/** Set attributes and listeners: `onclick` is a listener, `true` an empty attribute, `null` and `false` none. @param {Element} node @param {object} props */
function assign(node, props) {
	for (const [name, value] of Object.entries(props)) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (name === "value") Reflect.set(node, name, value);
		else node.setAttribute(name, value === true ? "" : String(value));
	}
}

/** Return a text. Characters that turn its direction are shown as �. @param {unknown} value */
export function text(value) {
	return document.createTextNode(String(value).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd"));
}

/** @param {Element} node @param {unknown[]} children */
function append(node, children) {
	for (const child of children.flat(Infinity))
		if (child !== null && child !== undefined && child !== false) node.append(child instanceof Node ? child : text(child));
}

/**
 * Return a new HTML element: `h("p.hint", {id: "a"}, "text", node)`. The properties may be left out.
 * @template {HtmlTag | `${HtmlTag}.${string}`} S
 * @param {S} tag
 * @param {...(Props | Children)} args
 * @returns {HtmlOf<S>}
 */
export function h(tag, ...args) {
	const [name, ...classes] = tag.split(".");
	const node = document.createElement(name);
	if (node instanceof HTMLButtonElement) node.type = "button";
	if (classes.length > 0) node.className = classes.join(" ");
	build(node, args);
	return /** @type {HtmlOf<S>} */ (node);
}

/** Return a new SVG element. @template {keyof SVGElementTagNameMap} K @param {K} tag @param {...(Props | Children)} args @returns {SVGElementTagNameMap[K]} */
export function svg(tag, ...args) {
	const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
	build(node, args);
	return node;
}

/** Return a link inside the explorer. It keeps the focus when its view is drawn again. @param {string} href @param {...(Props | Children)} args */
export function to(href, ...args) {
	const node = h("a", ...args);
	node.href = href;
	node.dataset.key = `${href} ${node.textContent?.replace(/\d/g, "")}`; // The numbers change while pages arrive.
	return node;
}

/**
 * Replace the children of `node`. The focus and open `<details>` survive if the new nodes have the same `data-key`.
 * @param {Element} node
 * @param {...Children} children
 */
export function fill(node, ...children) {
	const focused = document.activeElement;
	const key = focused && node.contains(focused) ? focused.getAttribute("data-key") : null;
	const open = [...node.querySelectorAll("details[open]")].map((item) => item.getAttribute("data-key"));
	node.replaceChildren();
	append(node, children);
	for (const item of node.querySelectorAll("details[data-key]"))
		if (open.includes(item.getAttribute("data-key"))) item.setAttribute("open", "");
	if (key === null) return;
	for (const item of node.querySelectorAll("[data-key]"))
		if (item instanceof HTMLElement && item.dataset.key === key) return item.focus({ preventScroll: true });
}

/** Return whether a value is a URL that may become a link. `javascript:` and its like may not. @param {unknown} value @returns {value is string} */
export function isWeb(value) {
	return typeof value === "string" && /^https?:\/\//i.test(value);
}

/** Return a link to a URL of the web, or plain text if it is anything else. @param {string} url @returns {Node} */
export function external(url) {
	return isWeb(url) ? h("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, url) : text(url);
}

/** @param {() => void} action @param {number} wait */
export function debounce(action, wait) {
	let timer = 0;
	return () => {
		clearTimeout(timer);
		timer = setTimeout(action, wait);
	};
}
