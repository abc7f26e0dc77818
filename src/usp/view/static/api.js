/** Talk to the server of `usp view`: JSON over the same origin. `types.d.ts` has the contract. */

/** @param {unknown} error */
export function isAbort(error) {
	return error instanceof DOMException && error.name === "AbortError";
}

/** @param {unknown} error */
export function messageOf(error) {
	return error instanceof Error ? error.message : String(error);
}

/** Return the answer. An error has a sentence for the reader. @param {string} path @param {RequestInit} init @returns {Promise<any>} */
async function request(path, init) {
	let response;
	try {
		response = await fetch(path, { credentials: "same-origin", ...init });
	} catch (error) {
		if (isAbort(error)) throw error;
		throw new Error("usp view does not answer. Check that it still runs in your terminal.");
	}
	/** @type {any} */
	let body = null;
	try {
		body = await response.json();
	} catch (error) {
		if (isAbort(error)) throw error;
	}
	if (response.ok && body !== null) return body;
	throw new Error(body?.error ?? `The server answered ${response.status}.`);
}

/** Return `path` with the parameters that have a value. @param {string} path @param {Query} params */
export function address(path, params) {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(params))
		if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
	const text = query.toString();
	return text ? `${path}?${text}` : path;
}

/** @param {string} path @param {Query} [params] @param {AbortSignal} [signal] @returns {Promise<any>} */
export function get(path, params = {}, signal) {
	return request(address(path, params), { signal });
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] @returns {Promise<any>} */
export function post(path, body, signal) {
	const headers = { "Content-Type": "application/json", "X-Usp": "1" };
	return request(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** Keep only the newest of several requests: `start()` aborts the one before. */
export class Latest {
	/** @type {AbortController | null} */
	#controller = null;

	/** @returns {AbortSignal} */
	start() {
		this.stop();
		this.#controller = new AbortController();
		return this.#controller.signal;
	}

	stop() {
		this.#controller?.abort();
	}
}
