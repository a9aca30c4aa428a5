// Puts the page together.

import { Chat } from "./chat.js";
import { copies, pill, say, sayOrHide } from "./elements.js";
import { Events } from "./events.js";
import { lookAtFiles } from "./files.js";
import { keepKey } from "./key.js";
import { Link } from "./link.js";
import { showMesh } from "./mesh.js";
import { clock } from "./words.js";

/** @type {(id: string) => any} */
const at = (id) => document.getElementById(id);
const chat = new Chat(() => link.look());
const events = new Events(at("events"));
const away = at("away");

const link = new Link({
  status(answer) {
    events.learn(answer);
    showMesh(answer);
    chat.show(answer);
    pill(at("link"), answer.mesh.health === "ok" ? "good" : "warn", answer.mesh.health === "ok" ? "all well" : "degraded");
  },
  commit: (commit) => events.add(commit),
  forget: () => events.clear(),
  standing({ state, since, why }) {
    document.body.dataset.link = state;
    at("lock").hidden = state !== "locked";
    if (state === "locked") {
      pill(at("link"), "warn", "key needed");
      sayOrHide(at("lock-why"), at("lock").dataset.tried ? why : "");
      away.hidden = true;
      chat.show(null);
      return;
    }
    if (state === "live") {
      away.hidden = true;
      lookAtFiles();
      return;
    }
    pill(at("link"), state === "starting" ? "wait" : "bad", state === "starting" ? "starting" : "not connected");
    const told = state === "starting" ? "It is starting and reads the event log." : why;
    const seen = since ? `What you see is from ${clock(since)}.` : "";
    say(at("away-text"), [told, seen, "Trying again by itself."].filter(Boolean).join(" "));
    away.hidden = false;
    chat.show(null);
  },
});

at("lock").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  const key = at("key").value.trim();
  if (!/^[!-~]+$/.test(key)) return sayOrHide(at("lock-why"), "A key has no spaces and no letters beyond ASCII.");
  keepKey(key);
  at("key").value = "";
  at("lock").dataset.tried = "yes";
  link.look();
});

copies(at("copy-deploy"), at("deploy-line"));
say(at("base-url"), `${location.origin}/v1`);

link.run();
