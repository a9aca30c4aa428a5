// How states and figures are said: a tone for the colour, a word for everyone.

/** @type {Record<string, string[]>} */
const TONES = {
  good: ["ready", "here", "healthy", "fulfilled", "brake_lifted", "approved", "resumed", "uncordoned", "verified"],
  wait: [
    "loading", "placing", "placed", "added", "pending", "installing", "fetching", "stopping", "draining", "joined",
    "assigned", "starting", "scaled", "coming", "wanted",
  ],
  warn: ["unplaceable", "unhealthy", "degraded", "cordoned", "brake_set", "evicted", "pressure_changed", "lost"],
  bad: ["unservable", "failed", "offline", "cut_off", "rejected", "refused", "file_missing", "files_failed", "revoked"],
};
const TONE = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.map((word) => [word, tone])));

/** good, wait, warn, bad or idle. @param {string} state */
export const toneOf = (state) => TONE.get(state) ?? "idle";

/** A state or a fact's type as people say it. @param {string} state */
export const word = (state) => String(state).replaceAll("_", " ");

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes with a unit, three digits at most. @param {number} bytes */
export function size(bytes) {
  let value = bytes, unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** A number of things. @param {number} number @param {string} one */
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

/** The clock time of seconds since 1970. @param {number} at */
export const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");

/** Seconds as people say short times. @param {number} s */
export const seconds = (s) => (s < 1 ? `${Math.round(s * 1000)} ms` : `${s.toFixed(s < 10 ? 1 : 0)} s`);

/** A text as one word of a shell line. @param {string} text */
export const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** `<model>-7` as `<name> #7`: people know models by name. @param {string} id @param {string | undefined} modelName */
export function replicaName(id, modelName) {
  return `${modelName || id.slice(0, id.lastIndexOf("-"))} #${id.slice(id.lastIndexOf("-") + 1)}`;
}

/** A phrase as a sentence. @param {string} text */
export function sentence(text) {
  if (!text) return "";
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
