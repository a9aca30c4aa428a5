// The conversation of this tab, kept over a reload until the tab closes or somebody begins anew. Bounded, and without keys.

const KEPT = "weft-chat";
const MOST_EXCHANGES = 50;
const MOST_LETTERS = 200_000;
const KEY = /\bweft-[\w-]{8,}/g;

/** @typedef {{model: string, question: string, answer: string, note: string}} Exchange */

/** Keep the newest of `exchanges`. @param {Exchange[]} exchanges */
export function keepTalk(exchanges) {
  const newest = exchanges.slice(-MOST_EXCHANGES).map((each) => ({ ...each, question: keyless(each.question), answer: keyless(each.answer) }));
  while (newest.length && JSON.stringify(newest).length > MOST_LETTERS) newest.shift();
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(newest));
  } catch {
    // no room, or none allowed: then a reload begins anew
  }
}

/** What was kept; nothing where that is no conversation. @returns {Exchange[]} */
export function keptTalk() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    const whole = (/** @type {any} */ each) => ["model", "question", "answer", "note"].every((name) => typeof each?.[name] === "string");
    return Array.isArray(found) ? found.filter(whole) : [];
  } catch {
    return [];
  }
}

export function forgetTalk() {
  sessionStorage.removeItem(KEPT);
}

const keyless = (/** @type {string} */ text) => text.replaceAll(KEY, "weft-…");
