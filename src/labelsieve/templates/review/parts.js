// Parts of the page, made from the state that the server sends.
const words = { right: "Right", wrong: "Wrong", unsure: "Unsure", "": "No verdict" };
const missingWords = { right: "Missing", wrong: "Not missing", unsure: "Unsure", "": "No verdict" };
const wordOf = (card, verdict) => (card.kind === "missing" ? missingWords : words)[verdict];
const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const leftIn = ({ left, flagged }) => (!left ? "done" : flagged === null ? `${left.toLocaleString("en")} left` : `${flagged.toLocaleString("en")} flagged`);
const key = (text) => html("kbd", null, text);
const code = (text) => html("code", null, text);
const button = (text, onclick, attributes, ...children) => html("button", { type: "button", class: "btn", onclick, ...attributes }, text, ...children);

const paths = { wrong: "M4 4l12 12M16 4L4 16", right: "M3 11l5 5L17 4", unsure: "M6.5 7a3.5 3.5 0 1 1 5 3.2c-1 .5-1.5 1.1-1.5 2.3M10 16.6v.1" };
const icon = (verdict) => svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: paths[verdict] }));

// A text with the words of the reasons marked.
const marked = (text, column, reasons) => {
  const sides = new Map();
  for (const side of ["against", "for"])
    for (const reason of reasons[side]) if (reason.column === column) for (const word of reason.words) sides.set(word, side);
  if (!sides.size) return [text];
  return text.split(/([\p{L}\p{N}_]+)/u).map((part) => {
    const side = sides.get(part.toLowerCase());
    return side ? html("mark", { class: side }, part) : part;
  });
};

const picture = (card, image, alt) => html("img", {
  src: `image/${card.key.split("-")[0]}/${image.column}`,
  alt,
  // Tiny images are enlarged.
  onload: (event) => event.target.classList.toggle("tiny", event.target.naturalWidth < 100),
});
const factList = (facts) => html("dl", { class: "facts" }, facts.map(([name, value]) => html("div", null, html("dt", null, named(name)), html("dd", null, named(value)))));
const reasonList = (reasons) => html("ul", null, reasons.length
  ? reasons.map((reason) => html("li", null, html("bdi", null, reason.text), html("span", null, reason.detail || "together with the other columns")))
  : html("li", null, "nothing strong in this row"));

const reasonBox = (card, isOpen, isDraw, toggle) => {
  const fold = button(isOpen ? "Hide reasons" : "Show reasons", toggle, { id: "why", class: isOpen ? "link small" : "btn", "aria-expanded": String(isOpen) }, isOpen ? null : [" ", key("R")]);
  if (!isOpen) return html("div", { class: "why fold" }, fold, isDraw && html("span", { class: "small" }, "Folded in the random draw, so that they do not sway the estimate."));
  return html("div", { class: "why two" },
    html("div", null, html("h3", null, html("i", { class: "sw r" }), "For ", named(card.label)), reasonList(card.reasons.for)),
    html("div", null, html("h3", null, html("i", { class: "sw w" }), "Against ", named(card.label), fold), reasonList(card.reasons.against)));
};

const question = (card) => {
  const row = card.named ? ["“", named(card.row), "”"] : card.row, label = html("em", null, named(card.label));
  return html("h2", { id: "question", tabindex: "-1" }, card.kind === "missing" ? ["Does ", row, " lack the label ", label, "?"] : ["Is ", label, " right for ", row, "?"]);
};

const barOf = (draw) => html("i", { css: { width: `${(100 * draw.done) / draw.size}%` } });
const cardView = (state, card, { isOpen, toggle, judge, bottom }) => {
  const verdict = (name, shortcuts, ...keys) => html("button", {
    type: "button", class: `v ${name}`, "data-verdict": name, "aria-keyshortcuts": shortcuts, "aria-pressed": card.verdict ? String(card.verdict === name) : null, onclick: () => judge(name),
  }, icon(name), wordOf(card, name), html("small", null, keys.map(key)));
  return [
    state.queue === "draw" && !state.draw.complete && html("div", { class: "phone small", "aria-hidden": "true" }, `${state.draw.done} of ${state.draw.size} reviewed`, html("div", { class: "prog" }, barOf(state.draw))),
    html("article", { "aria-labelledby": "question" },
      question(card),
      card.verdict && html("p", { class: "given" }, `Your verdict: ${wordOf(card, card.verdict)}. Another one replaces it.`),
      card.images.length > 0 && html("div", { class: "images" }, card.images.map((image) => picture(card, image, `${image.name} of ${card.row}`))),
      card.facts.length > 0 && factList(card.facts),
      card.texts.map((text) => html("div", { class: "text" }, html("h3", null, named(text.name)), html("p", null, marked(text.text, text.name, isOpen ? card.reasons : { for: [], against: [] })))),
      card.more.length > 0 && html("details", null, html("summary", null, `${counted(card.more.length, card.facts.length ? "more column" : "column")}`), factList(card.more)),
      html("div", { class: "chips" }, html("span", { id: "others" }, card.others.length ? "Other labels" : "No other label"), card.others.length > 0 && html("ul", { "aria-labelledby": "others" }, card.others.map((name) => html("li", null, named(name))))),
      reasonBox(card, isOpen, state.queue === "draw", toggle)),
    html("div", { class: "dock" },
      html("div", { class: "acts", role: "group", "aria-label": "Your verdict" },
        verdict("wrong", "ArrowLeft N", "←", "N"), verdict("unsure", "Space U", "space"), verdict("right", "ArrowRight Y", "→", "Y")),
      bottom),
  ];
};

const gridView = (state, label, { mark, rest, undo, next }) => {
  const open = state.grid.filter((card) => !card.verdict).length;
  return [
    html("div", { class: "gtop" }, html("h2", { id: "question", tabindex: "-1" }, "Which of these are not ", html("em", null, named(label)), "?"),
      html("p", null, "Most suspicious first. Press a row to mark it wrong, again to take it back.")),
    state.grid.length ? html("ul", { class: "grid", "aria-label": `Rows with ${label}` }, state.grid.map((card, place) => {
      const reason = card.reasons.against[0] || card.reasons.for[0], text = card.texts[0];
      return html("li", null, html("button", {
        type: "button", class: "g", "data-key": card.key, "data-verdict": card.verdict, "aria-pressed": String(card.verdict === "wrong"), tabindex: place ? "-1" : "0",
        "aria-label": `${card.row}: ${words[card.verdict].toLowerCase()}`, onclick: () => mark(card, "wrong"),
      },
      card.images.length > 0 && picture(card, card.images[0], ""),
      html("b", null, named(card.row)),
      card.facts.length > 0 && html("span", { class: "y" }, card.facts.slice(0, 4).map(([name, value]) => `${name} ${value}`).join(" · ")),
      text && html("span", { class: "clip" }, text.text),
      reason && html("span", { class: "y last" }, reason.detail ? `${reason.text}; ${reason.detail}` : reason.text),
      card.verdict && html("span", { class: "st" }, words[card.verdict])));
    })) : html("p", { class: "say" }, "All rows with this label have a verdict."),
    html("div", { class: "gfoot" }, html("span", { class: "small" }, `${open} of ${state.grid.length} without a verdict`),
      html("span", { class: "row" }, button("Undo ", undo, { id: "undo", class: "btn lg", disabled: !state.last.number }, key("Z")),
        open ? button(`Mark the other ${open} right`, rest, { id: "rest", class: "btn lg" }) : button("Next rows", next, { id: "rest", class: "btn lg" }))),
  ];
};

const progressBar = (draw) => html("div", { class: "prog", role: "progressbar", "aria-label": "Random draw", "aria-valuemin": 0, "aria-valuemax": draw.size, "aria-valuenow": draw.done }, barOf(draw));

const answerBox = (state, { preview, drawNext }) => [
  state.answers.map((text) => html("p", { class: "say" }, text)),
  html("p", { class: "row" },
    state.finish.removable > 0 && button("Preview", preview, { "aria-haspopup": "dialog" }),
    state.draw.can_draw && button("Draw more labels", drawNext, { id: "drawnext" })),
  state.draw.can_draw && html("p", { class: "small" }, "From the least supported fifth, where removals are likelier. A second attempt adds its own 10% of mistakes."),
];

const sideView = (state, saved, isSummary, actions) => {
  const { draw, counts } = state, all = counts.right + counts.wrong + counts.unsure;
  const line = (kind, text, n) => [html("dt", null, kind && html("i", { class: `sw ${kind}` }), text), html("dd", null, n)];
  const where = html("div", { class: "save" }, html("span", { "aria-hidden": "true" }, saved ? "✓" : ""), html("span", { title: data.file }, saved ? "Saved to " : "Verdicts are saved to ", code(data.file.split("/").pop())));
  if (isSummary) return [
    html("section", null, html("h2", null, "Queues"),
      html("dl", { class: "tally" }, state.queues.map((queue) => line("", html("button", { type: "button", class: "link", onclick: () => actions.go(queue.id) }, queue.name), leftIn(queue)))),
      html("p", { class: "small" }, "You can close this page and come back.")),
    where,
  ];
  return [
    html("section", null,
      !draw.complete && [html("h2", null, draw.number > 1 ? `Draw ${draw.number}` : "Random draw"),
        html("p", { class: "big" }, `${draw.done} of ${draw.size} `, html("span", null, "reviewed")), progressBar(draw),
        html("p", { class: "small" }, "The estimate appears when the draw is complete.")],
      state.answers.length > 0 && [html("h2", null, "From the random draw"), answerBox(state, actions)]),
    html("section", null, html("h2", null, "Your verdicts, all queues"),
      html("dl", { class: "tally" }, line("", "Reviewed", all), line("r", "Right", counts.right), line("w", "Wrong", counts.wrong), line("u", "Unsure", counts.unsure),
        counts.missing + counts.not_missing > 0 && line("", "Missing labels found", counts.missing)),
      html("p", null, html("button", { type: "button", class: "link", id: "finish", onclick: actions.finish, "aria-keyshortcuts": "F" }, "Finish and see the summary"))),
    where,
  ];
};

const command = (text, copy) => html("div", { class: "cmd" }, code(text), button("Copy", (event) => copy(text, event.target), { "aria-label": "Copy the command" }));

const finishView = (state, { withRemovals, choose, write, copy, go, ...actions }) => {
  const { counts, draw, finish } = state, n = finish.removable, all = counts.right + counts.wrong + counts.unsure;
  const next = state.queues.find((queue) => queue.left && queue.id !== "label");
  const tile = (number, text) => html("li", null, html("b", null, number), text);
  return html("div", { id: "summary" },
    html("h2", { id: "question", tabindex: "-1" }, draw.complete ? "The draw is complete" : "Summary so far"),
    draw.complete ? html("div", { class: "head" }, answerBox(state, actions)) : html("p", { class: "say" }, `${draw.done} of ${draw.size} labels of the random draw are reviewed. The estimate appears when the draw is complete.`),
    html("ul", { class: "four" }, tile(all, "reviewed"), tile(counts.right, "right"), tile(counts.wrong, "wrong"), tile(counts.unsure, "unsure")),
    n > 0 && html("label", { class: "check" }, html("input", { type: "checkbox", id: "removals-too", checked: withRemovals, onchange: (event) => choose(event.target.checked) }), ` Also remove the ${counted(n, "label")} without a verdict`),
    html("p", { class: "row" }, button("Write cleaned copy", write, { id: "write", class: "btn main lg" }), next && button(`Review: ${next.name.toLowerCase()}`, () => go(next.id), { class: "btn lg" })),
    html("p", { class: "small" }, `Removes the ${counted(counts.wrong, "label")} that you judged wrong${withRemovals ? ` and the ${counted(n, "label")} without a verdict` : ""}. `,
      counts.missing > 0 && `Adds the ${counted(counts.missing, "missing label")} that you confirmed. `, "Your data file does not change. ", finish.replaces && !finish.written && ["Replaces ", code(finish.copy), "."]),
    finish.written && html("div", { class: "done", tabindex: "-1", id: "written" }, html("b", null, "Written: ", code(finish.copy)), html("p", null, `${finish.written.summary}.`), finish.written.notes.map((note) => html("p", { class: "small" }, note))),
    finish.commands[0].length > 0 && [html("h3", null, "The same from the shell"), finish.commands[withRemovals ? 1 : 0].map((text) => command(text, copy))]);
};
