/** Follow the status of the server by server-sent events, and hand it to everyone who asks. */

import { get } from "./api.js";

/** @type {Status} */
let latest = {
	targets: [], state: "loading", error: null, version: 0, pages: 0, sitemaps: 0, failed: 0, bytes: 0, seconds: 0,
	outcome: null, notes: [], has_problems: false, has_changes: false, formats: [], codes: {},
};

/** @returns {Status} */
export function status() {
	return latest;
}

/**
 * Call `onStatus` with every new status, and `onConnection` when the connection is lost or back.
 * @param {(status: Status) => void} onStatus
 * @param {(isConnected: boolean) => void} onConnection
 */
export async function follow(onStatus, onConnection) {
	/** @param {Status} value */
	const take = (value) => {
		latest = value;
		onStatus(value);
	};
	try {
		take(await get("/api/status"));
	} catch {
		onConnection(false);
	}
	const events = new EventSource("/api/events");
	events.addEventListener("message", (event) => take(JSON.parse(event.data)));
	events.addEventListener("open", () => onConnection(true));
	events.addEventListener("error", () => onConnection(false));
}
