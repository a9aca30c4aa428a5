// The page's link to the gateway: how the mesh stands, looked at when something happened and every few seconds,
// and the events as they come. It heals by itself, and rests while nobody looks.

import { ask, asksForKey, eventsOf } from "./key.js";

const LOOK_S = 5;
const LOOK_LIMIT_S = 8;
const FIRST_RETRY_S = 0.5;
const LAST_RETRY_S = 4;
const SETTLE_S = 0.2; // events come in bursts; one look serves a burst
const STREAM_RETRY_S = 3;
const LOOKS_BEHIND = 3;
export const REMEMBERED = 60;

/**
 * @typedef {object} Standing
 * @property {"live" | "starting" | "locked" | "away"} state `locked`: a key is needed
 * @property {number | null} since
 * @property {string} why
 *
 * @typedef {object} Listeners
 * @property {(answer: API.StatusPage) => void} status where it differs from the last
 * @property {(commit: API.Commit) => void} commit
 * @property {() => void} forget where the log is another one
 * @property {(standing: Standing) => void} standing
 */

export class Link {
  #listeners;
  /** @type {AbortController | null} */
  #stream = null;
  #streamAgainAt = 0;
  /** @type {number | null} */
  #last = null; // sequence of the last commit that was shown
  #failures = 0;
  #wanted = false;
  #wake = () => {};
  #behind = 0;
  #settling = 0;
  /** @type {number | null} */
  #seenAt = null;
  /** @type {string | null} */
  #tag = null; // of the answer that is shown: what bears the same tag says the same

  /** @param {Listeners} listeners */
  constructor(listeners) {
    this.#listeners = listeners;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#rest() : this.look()));
    addEventListener("online", () => this.look());
  }

  /** Look now. */
  look() {
    this.#wanted = true;
    this.#wake();
  }

  async run() {
    for (;;) {
      this.#wanted = false;
      if (!document.hidden) await this.#round();
      if (!this.#wanted) await this.#pause();
    }
  }

  async #round() {
    /** @type {API.StatusPage} */
    let answer;
    let tag;
    try {
      const response = await ask("/api/status?view=page", { cache: "no-cache", signal: AbortSignal.timeout(LOOK_LIMIT_S * 1000) });
      if (!response.ok) throw await problemOf(response);
      tag = response.headers.get("etag");
      answer = await response.json();
    } catch (error) {
      this.#failures += 1;
      this.#tag = null;
      this.#closeStream();
      /** @type {Standing["state"]} */
      const state = error.code === "starting" ? "starting" : asksForKey(error) ? "locked" : "away";
      this.#listeners.standing({ state, since: this.#seenAt, why: error.status ? error.message : "" });
      return;
    }
    this.#failures = 0;
    this.#seenAt = Date.now() / 1000;
    if (this.#last !== null && answer.log.position < this.#last) {
      this.#closeStream();
      this.#last = null;
      this.#listeners.forget();
    }
    this.#listeners.standing({ state: "live", since: this.#seenAt, why: "" });
    if (!tag || tag !== this.#tag) this.#listeners.status(answer);
    this.#tag = tag;
    this.#checkStream(answer.log.position);
    this.#openStream(answer.log.position);
  }

  // A connection may be dead without a word, after a machine slept: then the log moves and the stream does not.
  /** @param {number} position */
  #checkStream(position) {
    this.#behind = this.#stream && position > (this.#last ?? position) ? this.#behind + 1 : 0;
    if (this.#behind > LOOKS_BEHIND) this.#closeStream();
  }

  /** @param {number} position */
  #openStream(position) {
    if (this.#stream || document.hidden || Date.now() < this.#streamAgainAt) return;
    const after = Math.max(this.#last ?? 0, position - REMEMBERED, 0);
    const stream = new AbortController();
    this.#stream = stream;
    this.#read(stream, after).catch(() => {}).then(() => {
      if (this.#stream !== stream) return; // closed on purpose
      this.#stream = null;
      this.#streamAgainAt = Date.now() + STREAM_RETRY_S * 1000 * (0.5 + Math.random());
      this.look();
    });
  }

  // By fetch: an EventSource can show no key.
  /** @param {AbortController} stream @param {number} after */
  async #read(stream, after) {
    const headers = { accept: "text/event-stream" };
    const response = await ask(`/api/events?after=${after}`, { headers, signal: stream.signal, cache: "no-store" });
    if (!response.ok) throw await problemOf(response);
    for await (const data of eventsOf(response.body)) {
      if (this.#stream !== stream) return;
      /** @type {API.Commit} */
      const commit = JSON.parse(data);
      this.#last = commit.sequence;
      this.#listeners.commit(commit);
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => this.look(), SETTLE_S * 1000);
    }
  }

  #closeStream() {
    this.#stream?.abort();
    this.#stream = null;
  }

  // A browser gives a host six connections: a tab that nobody sees must not hold one.
  #rest() {
    this.#closeStream();
  }

  #pause() {
    const backoff = Math.min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** (this.#failures - 1)) * (0.75 + Math.random() / 2);
    const wait = this.#failures ? backoff : LOOK_S;
    return new Promise((done) => {
      const timer = setTimeout(done, wait * 1000);
      this.#wake = () => {
        clearTimeout(timer);
        done(undefined);
      };
    });
  }
}

/**
 * What an error answer says, in both of the gateway's dialects: the API's problem and OpenAI's error object.
 * @param {Response} response
 * @returns {Promise<Error & {status?: number, code?: string | null}>}
 */
export async function problemOf(response) {
  /** @type {Partial<API.Problem> & {error?: {message: string, code: string | null}}} */
  let body = {};
  try {
    body = await response.json();
  } catch {
    // not ours: a proxy's page, or nothing
  }
  const said = body.error?.message ?? body.detail ?? `The gateway answered ${response.status}.`;
  return Object.assign(new Error(said), { status: response.status, code: (body.error ?? body).code });
}
