/** Talk to the server of `usp view`: JSON over the same origin. `types.d.ts` has the contract. */

/** An answer that is not a success. Its message is a sentence for the reader. */
export class ApiError extends Error {
	/** @param {string} message @param {number} status HTTP status, or 0 without an answer */
	constructor(message, status) {
		super(message);
		this.status = status;
	}
}

/** @param {unknown} error */
export function isAbort(error) {
	return error instanceof DOMException && error.name === "AbortError";
}

/** @param {unknown} error */
export function messageOf(error) {
	return error instanceof Error ? error.message : String(error);
}

/** @param {string} path @param {RequestInit} init @returns {Promise<any>} */
async function request(path, init) {
	let response;
	try {
		response = await fetch(path, { credentials: "same-origin", ...init });
	} catch (error) {
		if (isAbort(error)) throw error;
		throw new ApiError("usp view does not answer. Check that it still runs in your terminal.", 0);
	}
	/** @type {any} */
	let body = null;
	try {
		body = await response.json();
	} catch (error) {
		if (isAbort(error)) throw error;
	}
	if (response.ok && body !== null) return body;
	const reason = body && typeof body.error === "string" ? body.error : `The server answered ${response.status}.`;
	throw new ApiError(reason, response.status);
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
