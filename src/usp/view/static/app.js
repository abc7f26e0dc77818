/** Start the explorer: routing by the hash, live status. Views meet in the URL. */

import { ChangesView } from "./changes.js";
import { fill, h } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { follow, status } from "./live.js";
import { OverviewView } from "./overview.js";
import { PagesView } from "./pages.js";
import { ProblemsView } from "./problems.js";
import { SitemapsView } from "./sitemaps.js";
import { SqlView } from "./sql.js";
import { current, filtersOf, link } from "./state.js";

const PAUSE = 2000;

/** @type {Record<string, {title: string, make: () => View}>} */
const VIEWS = {
	overview: { title: "Overview", make: () => new OverviewView() },
	sitemaps: { title: "Sitemaps", make: () => new SitemapsView() },
	pages: { title: "Pages", make: () => new PagesView() },
	problems: { title: "Problems", make: () => new ProblemsView() },
	changes: { title: "Changes", make: () => new ChangesView() },
	sql: { title: "SQL", make: () => new SqlView() },
};

/** @param {string} id */
function byId(id) {
	return /** @type {HTMLElement} */ (document.getElementById(id));
}

const main = byId("main");
/** @type {View | null} */
let view = null;
let shown = "";
let version = -1;
let isRefreshing = false;
let isConnected = true;

function route() {
	const { view: name, params } = current();
	const known = Object.hasOwn(VIEWS, name) ? name : "overview";
	if (known !== shown) {
		const isFirst = shown === "";
		view?.destroy?.();
		view = VIEWS[known].make();
		view.element.prepend(h("h1", { tabindex: "-1" }, VIEWS[known].title));
		shown = known;
		fill(main, view.element);
		scrollTo(0, 0);
		if (!isFirst) main.querySelector("h1")?.focus({ preventScroll: true });
	}
	showNavigation();
	view?.update(params);
}

function showNavigation() {
	const { params } = current();
	const filters = shown === "overview" || shown === "pages" ? filtersOf(params) : {};
	const names = Object.keys(VIEWS).filter((name) => name !== "changes" || status().has_changes || shown === "changes");
	const items = names.map((name) => {
		const href = link(name, name === "overview" || name === "pages" ? filters : {});
		return h("li", h("a", { href, "data-key": `nav-${name}`, "aria-current": name === shown ? "page" : null }, VIEWS[name].title));
	});
	fill(byId("nav"), items);
	byId("nav").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
	document.title = `${VIEWS[shown]?.title ?? "Overview"} · ${status().targets.join(", ") || "usp view"}`;
}

/** @param {Status} now */
function progress(now) {
	const read = `${count(now.pages, "page")} in ${count(now.sitemaps, "sitemap")}`;
	if (!isConnected) return `${read}. Connection lost: check that usp view still runs in your terminal.`;
	if (now.state === "loading") return `${read}, still reading…`;
	if (now.state === "checking") return `${read}, checking for problems…`;
	if (now.state === "failed") return "Failed.";
	return `${read}, ${bytes(now.bytes)}${now.failed > 0 ? `; ${number(now.failed)} failed` : ""}`;
}

/** Say the progress. Screen readers read it aloud, so this is done every two seconds. */
function announce() {
	const text = progress(status());
	if (byId("progress").textContent !== text) byId("progress").textContent = text;
}

/** @param {Status} now */
function showBanner(now) {
	const banner = byId("banner");
	const text = now.state === "failed" ? `usp could not read everything: ${now.error}` : (now.outcome?.meaning ?? "");
	if (banner.textContent === text) return;
	banner.hidden = text === "";
	banner.className = now.state === "failed" || now.pages === 0 ? "banner bad" : "banner";
	banner.textContent = text;
}

/** @param {Status} now */
function onStatus(now) {
	const isFirst = version < 0;
	byId("target").textContent = now.targets.join(", ");
	showBanner(now);
	showNavigation();
	if (isFirst) announce();
	document.body.classList.toggle("busy", now.state === "loading" || now.state === "checking");
	if (isFirst) version = now.version;
	else if (now.version !== version) refresh();
}

/** Let the view read its data again, every two seconds at most. */
async function refresh() {
	if (isRefreshing) return;
	isRefreshing = true;
	while (version !== status().version) {
		version = status().version;
		await Promise.all([view?.refresh().catch(() => undefined), new Promise((resolve) => setTimeout(resolve, PAUSE))]);
	}
	isRefreshing = false;
}

byId("skip").addEventListener("click", (event) => {
	event.preventDefault(); // The hash is the route.
	main.querySelector("h1")?.focus();
});
await follow(onStatus, (value) => (isConnected = value));
setInterval(announce, PAUSE);
addEventListener("hashchange", route);
route();
