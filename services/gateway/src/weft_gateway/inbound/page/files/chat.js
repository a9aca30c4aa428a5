// The chat: which model, the conversation, send and stop.

import { aliasState } from "./aliases.js";
import { LOST, streamAnswer } from "./answer.js";
import { keep, make, say, sayOrHide } from "./elements.js";
import { forgetTalk, keepTalk, keptTalk } from "./kept_talk.js";
import { count, replicaName, seconds, sentence, word } from "./words.js";

const SUGGESTIONS = ["What is the capital of France?", "What is the chemical symbol for gold?", "What is 7 plus 5?"];
const UNREACHED = "The gateway can't be reached.";
const CUT = "Cut off when the page was loaded again.";
/** @type {(id: string) => any} */
const at = (id) => document.getElementById(id);

/** @typedef {import("./kept_talk.js").Exchange} Exchange */

export class Chat {
  /** @type {{role: string, content: string}[]} */
  #messages = [];
  /** @type {Exchange[]} */
  #exchanges = []; // what a reload finds again: the questions that have an answer
  /** @type {Exchange | null} */
  #coming = null; // the exchange of the answer that comes
  /** @type {AbortController | null} */
  #running = null; // the AbortController of the answer that comes
  #chosen = ""; // a model that a person picked stays picked
  /** @type {{name: string, state: string, alias?: boolean}[]} */
  #models = []; // and aliases of them
  /** @type {Map<string, API.ShownReplicaLine>} */
  #replicas = new Map();
  #live = false;
  #changed;

  /** `changed` is called when a request begins or ends. @param {() => void} changed */
  constructor(changed) {
    this.#changed = changed;
    at("ask").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.#send();
    });
    at("message").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.#send();
      }
    });
    at("stop").addEventListener("click", () => this.#running?.abort());
    at("talk").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && this.#running?.abort());
    at("anew").addEventListener("click", () => this.#restart());
    at("model").addEventListener("change", () => (this.#chosen = at("model").value));
    addEventListener("pagehide", () => this.#coming?.answer && keepTalk([...this.#exchanges, { ...this.#coming, note: CUT }]));
    this.#welcome();
    this.#takeUp(keptTalk());
  }

  /** Take models and replicas from an answer of /api/status; null while the gateway is away. @param {API.StatusPage | null} status */
  show(status) {
    this.#live = status !== null;
    if (status) {
      const models = status.models.filter(({ spec }) => !(spec.engine_args.embeddings ?? spec.weights.embeds));
      const aliases = status.aliases.filter(({ targets }) => targets.some(({ model }) => models.some(({ name }) => name === model)));
      this.#models = [...models, ...aliases.map((alias) => ({ name: alias.name, state: aliasState(alias), alias: true }))];
      this.#replicas = new Map(status.replicas.map((replica) => [replica.id, replica]));
      this.#showPicker();
    }
    this.#showControls();
  }

  #showPicker() {
    const picker = at("model"), before = picker.value;
    /** @type {{name: string, state: string, alias?: boolean}[]} */
    const items = this.#models.length ? this.#models : [{ name: "", state: "none" }];
    keep(picker, items, ({ name }) => name, () => {
      const option = make("option");
      option.show = (/** @type {{name: string, state: string, alias?: boolean}} */ { name, state, alias }) => {
        option.value = name;
        const about = [alias ? "alias" : "", state === "ready" ? "" : word(state)].filter(Boolean).join(", ");
        say(option, state === "none" ? "none yet" : about ? `${name} (${about})` : name);
      };
      return option;
    });
    const names = this.#models.map((model) => model.name);
    const kept = names.includes(this.#chosen) ? this.#chosen : before;
    const ready = this.#models.find((model) => model.state === "ready")?.name;
    const value = this.#chosen && names.includes(this.#chosen) ? kept : (ready ?? names[0] ?? "");
    // A conversation stays with its model.
    if (!this.#messages.length || !names.includes(before)) picker.value = value;
    picker.disabled = names.length === 0;
  }

  #showControls() {
    const running = this.#running !== null;
    at("stop").hidden = !running;
    at("send").hidden = running;
    at("send").disabled = !this.#live || this.#models.length === 0;
    at("anew").hidden = at("talk").querySelector(".turn") === null;
    for (const button of at("talk").querySelectorAll(".suggestion")) button.disabled = at("send").disabled || running;
  }

  #welcome() {
    const buttons = SUGGESTIONS.map((text) => {
      const button = make("button", { cls: "suggestion", text, attrs: { type: "button" } });
      button.addEventListener("click", () => {
        at("message").value = text;
        this.#send();
      });
      return make("li", { children: [button] });
    });
    at("talk").replaceChildren(
      make("div", {
        cls: "welcome",
        children: [make("p", { text: "Ask the mesh something, for example:" }), make("ul", { children: buttons })],
      }),
    );
    this.#showControls();
  }

  /** Go on with a conversation that was kept. @param {Exchange[]} exchanges */
  #takeUp(exchanges) {
    if (!exchanges.length) return;
    at("talk").replaceChildren();
    for (const { model, question, answer, note } of exchanges) {
      const mine = turn("you", "You"), theirs = turn("them", model);
      say(mine.text, question);
      say(theirs.text, answer);
      say(theirs.note, note);
      theirs.item.classList.remove("coming");
      at("talk").append(mine.item, theirs.item);
      this.#messages.push({ role: "user", content: question }, { role: "assistant", content: answer });
    }
    this.#exchanges = exchanges;
    this.#chosen = exchanges[exchanges.length - 1].model;
    this.#showControls();
    scrollDown(true);
  }

  #restart() {
    this.#running?.abort();
    this.#messages = [];
    this.#exchanges = [];
    this.#coming = null;
    forgetTalk();
    this.#welcome();
    at("message").focus();
  }

  async #send() {
    const box = at("message"), text = box.value.trim(), model = at("model").value;
    if (!text || !model || this.#running || at("send").disabled) return;
    if (!this.#messages.length) at("talk").replaceChildren();
    box.value = "";
    const asked = { role: "user", content: text };
    const mine = turn("you", "You");
    say(mine.text, text);
    const theirs = turn("them", model);
    theirs.item.setAttribute("aria-busy", "true"); // read out once, when it is whole
    const state = this.#models.find(({ name }) => name === model)?.state ?? "ready";
    if (state !== "ready") say(theirs.note, `${model} is ${word(state)}; the question waits for it.`);
    at("talk").append(mine.item, theirs.item);
    scrollDown(true);

    const conversation = this.#messages;
    const talk = [...conversation, asked];
    conversation.push(asked);
    const running = (this.#running = new AbortController());
    const exchange = (this.#coming = { model, question: text, answer: "", note: "" });
    this.#showControls();
    setTimeout(this.#changed, 100); // when the gateway has it
    let answer = "", firstAt = 0, failed = false;
    const began = performance.now();
    try {
      const ending = await streamAnswer(model, talk, running.signal, (piece) => {
        firstAt ||= performance.now();
        exchange.answer = answer += piece;
        theirs.text.append(piece);
        scrollDown();
      });
      say(theirs.note, this.#note(ending, model, began, firstAt || performance.now()));
    } catch (error) {
      failed = !running.signal.aborted;
      say(theirs.note, failed ? "" : "Stopped.");
      if (failed) sayOrHide(theirs.error, error.name === "TypeError" ? (answer ? LOST : UNREACHED) : sentence(error.message));
    }
    theirs.item.removeAttribute("aria-busy");
    theirs.item.classList.remove("coming");
    if (this.#coming === exchange) this.#coming = null;
    if (answer) {
      conversation.push({ role: "assistant", content: answer });
      if (this.#messages === conversation) {
        this.#exchanges.push({ ...exchange, note: failed ? theirs.error.textContent : theirs.note.textContent });
        keepTalk(this.#exchanges);
      }
    } else {
      conversation.splice(conversation.indexOf(asked), 1); // an unanswered question is no part of the conversation
      if (this.#messages === conversation && !box.value) box.value = text;
    }
    if (this.#running === running) this.#running = null;
    this.#changed();
    this.#showControls();
    scrollDown(failed); // a question that comes back takes room from the talk, and the reason must be seen
  }

  /** @param {import("./answer.js").Ending} ending @param {string} model @param {number} began @param {number} firstAt */
  #note({ finish, usage, replica }, model, began, firstAt) {
    const parts = [];
    const { node_name: node, model_name: by } = this.#replicas.get(replica ?? "") ?? {};
    const answered = by && by !== model ? `${by} on ` : ""; // of an alias, one of its models
    if (usage) parts.push(count(usage.completion_tokens, "token"));
    parts.push(`${seconds((firstAt - began) / 1000)} to the first`);
    const took = (performance.now() - firstAt) / 1000;
    if (usage && usage.completion_tokens > 16 && took > 0.05) {
      parts.push(`${Math.round((usage.completion_tokens - 1) / took)} a second`);
    }
    if (node) parts.push(`from ${answered}${node}`);
    else if (replica) parts.push(`from ${replicaName(replica, model)}`);
    if (finish === "length") parts.push("cut off at the token limit");
    return parts.join(", ");
  }
}

/** One side's turn: who, the text, a note and an error below it. @param {string} cls @param {string} who */
function turn(cls, who) {
  const text = make("p", { cls: "text" }), note = make("p", { cls: "hint note" }), error = make("p", { cls: "reason bad" });
  error.hidden = true;
  const item = make("article", {
    cls: `turn ${cls}${cls === "them" ? " coming" : ""}`,
    children: [make("p", { cls: "from", text: who }), text, error, note],
  });
  return { item, text, note, error };
}

/** Keep the end in sight, unless somebody reads further up. */
function scrollDown(always = false) {
  const talk = at("talk");
  if (always || talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80) talk.scrollTop = talk.scrollHeight;
}
