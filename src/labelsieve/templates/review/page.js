// What this tab shows. The server holds the verdicts and the order of the cards.
const page = { queue: "draw", label: data.labels.length ? data.labels[0].label : 0, skipped: [], trail: [], grid: null, open: {}, finish: false, withRemovals: false };
let state = null, busy = false, saved = data.resumed > 0, single = true, lost = null;
const nameOf = (label) => data.labels.find((entry) => entry.label === label).name;
const say = (text) => { byId("live").textContent = text; };
const isOpen = () => page.open[page.queue] ?? page.queue !== "draw";

// Problems stay on the page until a request succeeds.
const problem = (text, retry) => {
  const old = byId("problem");
  if (old) old.remove();
  if (!text) return;
  byId("main").prepend(html("p", { class: "banner", id: "problem", role: "alert" }, text, " ", retry && html("button", { type: "button", class: "link", onclick: retry }, "Try again")));
};

// Ask the server, which answers with the new state. Only one request runs at a time.
const ask = async (action, body = {}) => {
  if (busy) return false;
  busy = true;
  const { queue, label, skipped, grid } = page;
  const again = () => ask(action, body).then((done) => done && draw({ focus: true }));
  try {
    const answer = await fetch(action, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ queue, label, skipped, grid, ...body }) });
    const found = await answer.json();
    if (answer.ok) {
      if (action === "preview") return found;
      state = found;
      lost = null;
      problem("");
      return true;
    }
    problem(answer.status === 409 ? found.error : `Not saved. ${found.error}`, answer.status === 409 ? null : again);
    if (answer.status === 409) {
      busy = false;
      const message = found.error;
      page.grid = page.grid && [];
      if (await ask("view")) draw({ focus: true });
      problem(message);
    }
  } catch {
    lost = again;
    problem("Not saved. labelsieve does not answer. Is it still running?", again);
  } finally {
    busy = false;
  }
  return false;
};

const draw = ({ focus = false, key: focused = null } = {}) => {
  const shown = state.grid ? gridView(state, nameOf(page.label), { mark, rest, undo, next: newGrid })
    : page.finish || !state.card ? finishView(state, { withRemovals: page.withRemovals, choose, write, copy, go, preview, drawNext })
      : cardView(state, state.card, { isOpen: isOpen(), toggle, judge, bottom: bottom() });
  byId("stage").replaceChildren(...[shown].flat(Infinity).filter(Boolean));
  byId("aside").replaceChildren(...sideView(state, saved, !state.grid && (page.finish || !state.card), { preview, drawNext, finish, go }).flat(Infinity).filter(Boolean));
  byId("nav").replaceChildren(...state.queues.map((queue, place) => html("button", {
    type: "button", "aria-current": queue.id === state.queue ? "true" : null, title: queue.about, "aria-keyshortcuts": place + 1, onclick: () => go(queue.id),
  }, queue.name, html("i", null, leftIn(queue)))));
  const current = byId("nav").querySelector("[aria-current]");
  byId("nav").scrollLeft = Math.max(0, current.offsetLeft - byId("nav").offsetLeft - 40);
  byId("one").hidden = state.queue !== "label";
  byId("cards").setAttribute("aria-pressed", String(!state.grid));
  byId("grid").setAttribute("aria-pressed", String(Boolean(state.grid)));
  byId("label").value = page.label;
  document.documentElement.dataset.ready = state.version;
  const target = focused ? document.querySelector(`[data-key="${focused}"]`) : focus && byId("question");
  if (!target) return;
  if (focused) document.querySelectorAll(".g").forEach((card) => { card.tabIndex = card === target ? 0 : -1; });
  target.focus({ preventScroll: !focused });
  if (!focused) scrollTo(0, 0);
};

// Below the verdicts: what the queue is good for or the last verdict, and the way back and forth.
const bottom = () => html("div", { class: "last" },
  html("span", null, state.last.text ? `${state.last.text}. Saved.` : state.queues.find((queue) => queue.id === state.queue).about),
  html("span", { class: "row" },
    button("Previous ", previous, { id: "previous", disabled: !page.trail.length && !state.last.key, "aria-keyshortcuts": "K" }, key("K")),
    button("Next ", skip, { id: "next", "aria-keyshortcuts": "J" }, key("J")),
    button("Undo ", undo, { id: "undo", disabled: !state.last.number, "aria-keyshortcuts": "Z" }, key("Z"))));

const judge = async (verdict) => {
  const card = state.card, wasComplete = state.draw.complete;
  if (!card || page.finish) return;
  if (!(await ask("verdict", { cards: [[card.key, card.verdict]], verdict }))) return;
  saved = true;
  page.trail.push(card.key);
  delete page.open.draw;
  page.finish = state.draw.complete && !wasComplete;
  draw({ focus: true });
  const progress = page.finish ? "The draw is complete." : page.queue === "draw" ? `${state.draw.done} of ${state.draw.size} reviewed.` : "";
  say(`${wordOf(card, verdict)}. ${progress} Saved.`);
};
const undo = async () => {
  if (!state.last.number || !(await ask("undo", { last: state.last.number }))) return;
  page.finish = false;
  const undone = page.trail.pop();
  draw(state.grid ? { key: undone } : { focus: true });
  say("Undone. Saved.");
};
const skip = async () => {
  if (!state.card || page.finish) return;
  const { key: left } = state.card, isNew = !state.card.verdict;
  if (isNew) page.skipped.push(left);
  page.trail.push(left);
  if (await ask("view")) draw({ focus: true });
};
const previous = async () => {
  const card = page.trail.pop() || (state.last.key !== (state.card || {}).key && state.last.key);
  if (!card) return;
  page.skipped = page.skipped.filter((skipped) => skipped !== card);
  page.finish = false;
  if (await ask("view", { card })) draw({ focus: true });
};

const go = async (queue, label = page.label) => {
  const old = { ...page };
  Object.assign(page, { queue, label, skipped: [], finish: false, grid: queue === "label" && page.grid ? [] : null });
  if (!(await ask("view"))) return Object.assign(page, old);
  if (state.grid) page.grid = state.grid.map((card) => card.key);
  draw({ focus: true });
  const shown = state.queues.find((entry) => entry.id === queue);
  say(`${shown.name}: ${leftIn(shown)}. ${shown.about}`);
};
const setGrid = async (isGrid) => {
  page.grid = isGrid ? [] : null;
  await go("label");
};
const newGrid = () => setGrid(true);
const mark = async (card, verdict) => {
  const given = card.verdict === verdict ? "" : verdict;
  if (!(await ask("verdict", { cards: [[card.key, card.verdict]], verdict: given }))) return;
  saved = true;
  page.trail.push(card.key);
  draw({ key: card.key });
  say(`${card.row}: ${words[given].toLowerCase()}. Saved.`);
};
const rest = async () => {
  const open = state.grid.filter((card) => !card.verdict);
  if (!(await ask("verdict", { cards: open.map((card) => [card.key, ""]), verdict: "right" }))) return;
  saved = true;
  page.trail.push(open[0].key);
  draw({ focus: true });
  say(`${open.length} marked right. Saved.`);
};

const toggle = () => {
  page.open[page.queue] = !isOpen();
  draw();
  byId("why").focus({ preventScroll: true });
};
const finish = async () => {
  page.finish = true;
  page.grid = null;
  if (await ask("view")) draw({ focus: true });
};
const choose = (chosen) => { page.withRemovals = chosen; draw(); byId("removals-too").focus(); };
const write = async () => {
  if (!(await ask("write", { removals: page.withRemovals && state.finish.removable > 0 }))) return;
  draw();
  byId("written").focus();
  say(`Written: ${state.finish.copy}`);
};
const drawNext = async () => {
  page.queue = "draw";
  page.grid = null;
  if (!(await ask("draw"))) return;
  page.finish = false;
  draw({ focus: true });
};
const preview = async () => {
  const found = await ask("preview");
  if (!found) return;
  byId("removals").replaceChildren(...found.removals.map((entry) => html("tr", null, html("td", null, named(entry.row)), html("td", null, named(entry.label)), html("td", { class: "r" }, entry.support))));
  byId("previewnote").textContent = `${found.removals.length} of ${state.finish.removable}.`;
  byId("preview").showModal();
};
const copy = async (text, element) => {
  await navigator.clipboard.writeText(text);
  element.textContent = "Copied";
  say("Copied");
};

const moveInGrid = (event, pressed) => {
  const cards = [...document.querySelectorAll(".g")], at = cards.indexOf(event.target.closest(".g"));
  const wide = getComputedStyle(document.querySelector(".grid")).gridTemplateColumns.split(" ").length;
  const step = { arrowright: 1, arrowleft: -1, arrowdown: wide, arrowup: -wide }[pressed], verdict = { n: "wrong", y: "right", u: "unsure" }[pressed];
  if (step) {
    event.preventDefault();
    cards.forEach((card) => { card.tabIndex = -1; });
    const next = cards[clamp(at < 0 ? 0 : at + step, 0, cards.length - 1)];
    next.tabIndex = 0;
    next.focus();
  } else if (verdict && at >= 0) mark(state.grid[at], verdict);
};
addEventListener("keydown", (event) => {
  const pressed = event.key.toLowerCase(), target = event.target;
  if (!state || event.ctrlKey || event.metaKey || event.altKey || (!single && !pressed.startsWith("arrow"))) return;
  const dialog = document.querySelector("dialog[open]");
  if (dialog || target.matches("select, input[type=text]")) {
    if (dialog && pressed === "?") dialog.close();
    return;
  }
  if (event.repeat && !state.grid) return event.preventDefault(); // a held key gives one verdict
  const isGrid = state.grid && document.querySelector(".grid");
  const verdict = { arrowright: "right", y: "right", arrowleft: "wrong", n: "wrong", " ": "unsure", u: "unsure" }[pressed];
  const action = { z: undo, f: finish, j: skip, k: previous, "?": () => byId("keys").showModal() }[pressed];
  if (pressed === " " && target.closest("button, a, input, summary")) return;
  if (action) action();
  else if ("1234".includes(pressed)) go(state.queues[pressed - 1].id);
  else if (pressed === "g" && page.queue === "label") setGrid(!state.grid);
  else if (isGrid) return moveInGrid(event, pressed);
  else if (pressed === "r" && byId("why")) toggle();
  else if (verdict && state.card && !page.finish) judge(verdict);
  else return;
  event.preventDefault();
});

// Another tab may have changed the review. The card stays if it still waits for a verdict.
const refresh = async () => {
  if (busy || !state || document.hidden) return;
  try {
    const { version } = await (await fetch("version")).json();
    if (lost) { lost = null; problem(""); }
    if (version === state.version || busy) return;
    const card = state.card && !page.finish ? state.card : null;
    if (!(await ask("view", card ? { card: card.key } : {}))) return;
    if (card && state.card.verdict !== card.verdict) await ask("view");
    draw();
    say("Updated from another tab.");
  } catch {
    lost = refresh;
    problem("labelsieve does not answer. Is it still running?", refresh);
  }
};
setInterval(refresh, 3000);
addEventListener("focus", refresh);
document.addEventListener("visibilitychange", refresh);

byId("help").addEventListener("click", () => byId("keys").showModal());
document.querySelectorAll("[data-close]").forEach((close) => close.addEventListener("click", () => close.closest("dialog").close()));
byId("single").addEventListener("change", (event) => { single = event.target.checked; });
byId("label").append(...data.labels.map((entry) => html("option", { value: entry.label }, `${entry.name} (${entry.n})`)));
byId("label").addEventListener("change", (event) => go("label", Number(event.target.value)));
byId("cards").addEventListener("click", () => setGrid(false));
byId("grid").addEventListener("click", () => setGrid(true));
ask("view").then((done) => {
  if (!done) return;
  if (data.resumed) say(`Continuing with ${counted(data.resumed, "verdict")}.`);
  draw();
});
