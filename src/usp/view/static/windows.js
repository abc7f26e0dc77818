/** Load rows in windows, on demand. Keep the windows of late, and cancel loads that nobody waits for any more. */

import { isAbort } from "./api.js";

const WINDOW = 100;
const KEEP = 60;

/** @template T */
export class Windows {
	/** @type {Map<number, {rows: T[], generation: number}>} */
	#windows = new Map();
	/** @type {Map<number, AbortController>} */
	#loading = new Map();
	/** @type {(() => void)[]} */
	#waiting = [];
	#generation = 0;

	/** @param {Load<T>} load @param {(result: Rows<T>) => void} onRows @param {(error: unknown) => void} onError */
	constructor(load, onRows, onError) {
		this.load = load;
		this.onRows = onRows;
		this.onError = onError;
	}

	get isBusy() {
		return this.#loading.size > 0;
	}

	/** Return a row if it is loaded. It may be out of date. @param {number} index */
	at(index) {
		return this.#windows.get(Math.floor(index / WINDOW))?.rows[index % WINDOW];
	}

	/** Load every row again when it is needed, and keep the old one until then. */
	renew() {
		this.#generation += 1;
		this.#cancel(() => true);
	}

	/** Forget all rows. */
	clear() {
		this.renew();
		this.#windows.clear();
	}

	/** Load the rows from `first` up to `last`, and cancel the loads of others. @param {number} first @param {number} last */
	need(first, last) {
		const from = Math.floor(first / WINDOW);
		const end = Math.floor(Math.max(first, last - 1) / WINDOW);
		this.#cancel((page) => page < from || page > end);
		for (let page = from; page <= end; page += 1)
			if (this.#windows.get(page)?.generation !== this.#generation && !this.#loading.has(page)) this.#fetch(page);
	}

	/** @returns {Promise<void>} */
	idle() {
		return this.isBusy ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve();
	}

	/** @param {(page: number) => boolean} which */
	#cancel(which) {
		for (const [page, controller] of this.#loading) {
			if (!which(page)) continue;
			this.#loading.delete(page);
			controller.abort();
		}
		this.#wake();
	}

	#wake() {
		if (!this.isBusy) for (const resolve of this.#waiting.splice(0)) resolve();
	}

	/** @param {number} page */
	async #fetch(page) {
		const controller = new AbortController();
		const generation = this.#generation;
		this.#loading.set(page, controller);
		/** @type {Rows<T> | null} */
		let result = null;
		let failure;
		try {
			result = await this.load(page * WINDOW, WINDOW, controller.signal);
		} catch (error) {
			failure = error;
		}
		if (controller.signal.aborted || isAbort(failure)) return;
		this.#loading.delete(page);
		// After a failure keep the old rows, and do not ask in a loop.
		const rows = result?.rows ?? this.#windows.get(page)?.rows ?? [];
		this.#windows.delete(page);
		this.#windows.set(page, { rows, generation });
		for (const old of this.#windows.keys()) {
			if (this.#windows.size <= KEEP) break;
			this.#windows.delete(old);
		}
		if (result) this.onRows(result);
		else this.onError(failure);
		this.#wake();
	}
}
