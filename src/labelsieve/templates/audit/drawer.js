// Side panel: details of a column, or the parts of the support of a label.
const showDrawer = (content) => {
  const drawer = byId("drawer");
  drawer.replaceChildren(html("div", { class: "dr" },
    html("button", { class: "close", type: "button", "aria-label": "close", onclick: () => drawer.close() }, "×"), content));
  if (!drawer.open) drawer.showModal();
};

const shareBars = (counts, total, top, kind, text, y) => {
  const width = 460, height = 74, step = width / counts.length;
  return svg("g", { transform: `translate(0 ${y})` },
    counts.map((count, place) => {
      const part = count / Math.max(1, total), tall = count ? Math.max(1, (height * part) / top) : 0;
      return [
        svg("rect", { class: kind, x: place * step + 1, y: height - tall, width: Math.max(1, step - 2), height: tall }),
        counts.length <= 8 && part >= 0.005 && svg("text", { x: (place + 0.5) * step, y: height - tall - 4, "text-anchor": "middle" }, percent(part)),
      ];
    }),
    svg("line", { class: "axis", x1: 0, x2: width, y1: height, y2: height }),
    svg("text", { x: width, y: -6, "text-anchor": "end", class: kind === "bf" ? "lab-for" : "lab-dim" }, text));
};

const distributionOf = (column, label) => {
  const { c: all, l: perLabel, t: texts, d: discrete } = column.h, own = perLabel && perLabel[label];
  const ticks = discrete
    ? texts.map((text, place) => svg("text", { x: ((place + 0.5) * 460) / texts.length, y: 193, "text-anchor": "middle", class: "lab-dim" }, text.length > 56 / texts.length ? `${text.slice(0, Math.max(1, Math.floor(56 / texts.length)))}…` : minus(text)))
    : [svg("text", { x: 0, y: 193, class: "lab-dim" }, minus(texts[0])), svg("text", { x: 460, y: 193, class: "lab-dim", "text-anchor": "end" }, minus(texts[1]))];
  if (!own) return [
    svg("svg", { viewBox: "0 0 460 74", "aria-hidden": "true", class: "fit" }, bars(all, 460, 74)),
    html("p", { class: "small" }, "All rows. To keep the file small, distributions by label are stored for the first columns only."),
  ];
  const others = all.map((count, place) => count - own[place]), sum = (counts) => counts.reduce((total, count) => total + count, 0);
  const top = Math.max(1e-9, ...own.map((count) => count / Math.max(1, sum(own))), ...others.map((count) => count / Math.max(1, sum(others))));
  return svg("svg", { viewBox: "0 -24 460 222", role: "img", class: "fit", "aria-label": `share of rows by value, with and without ${labels[label].n}` },
    shareBars(own, sum(own), top, "bf", `with (${whole(sum(own))} rows)`, 0),
    shareBars(others, sum(others), top, "spark", `without (${whole(sum(others))} rows)`, 104),
    ticks);
};

const openColumn = (place, wanted) => {
  const column = columns[place], label = wanted === undefined ? (state.label >= 0 ? state.label : column.best) : wanted;
  const order = labels.map((_, at) => at).sort((a, b) => Math.abs(column.z[b]) - Math.abs(column.z[a])).slice(0, 12);
  const most = Math.max(1, Math.abs(column.z[order[0]]));
  const serve = (at, number) => {
    const z = column.z[at] / 10;
    return html("button", { class: "serve", type: "button", "aria-pressed": String(at === label), onclick: () => { openColumn(place, at); byId("drawer").querySelectorAll(".serve")[number].focus(); } },
      html("span", null, named(labels[at].n)),
      svg("svg", { width: "100%", height: 10, "aria-hidden": "true" }, svg("rect", { class: `${z < 0 ? "ba" : "bf"}${speaks(column, at) ? "" : " pale"}`, width: `${(100 * Math.abs(column.z[at])) / most}%`, height: 10, rx: 1 })),
      html("span", { class: "r num" }, (z < 0 ? "−" : "") + Math.abs(z).toFixed(Math.abs(z) < 10 ? 1 : 0)));
  };
  showDrawer([
    html("p", { class: "small" }, `${describe(column)} · rank ${whole(column.place)} of ${whole(data.d)} · ${column.place <= state.kept ? "kept" : "dropped"} at ${whole(state.kept)}`),
    html("h2", { id: "drawertitle" }, named(column.n)),
    column.o && html("p", { class: "flag" }, column.o),
    html("h3", null, "With and without “", named(short(labels[label].n)), "”"), column.h.n && html("p", { class: "small" }, named(column.h.n)), distributionOf(column, label),
    html("h3", null, "Labels"), html("div", null, order.map(serve)),
    html("p", { class: "small" }, `z² with each label. Blue: higher with the label. Orange: lower. Pale: below ${data.tau}, no evidence.`),
    column.f && [html("h3", null, "Encoded features"), html("ul", { class: "plain" }, column.f.map(([name, evidence, best, z]) =>
      html("li", null, named(name), html("span", { class: "small" }, `  evidence ${whole(evidence)}, ${z < 0 ? "less" : "more"} with “${short(labels[best].n)}”`))))],
    nSubsamples > 0 && stabilityPart(column),
    html("h3", null, "Substitutes"), column.s.length
      ? html("ul", { class: "plain" }, column.s.slice(0, 12).map(([other, r]) => html("li", null,
          html("button", { class: "link", type: "button", onclick: () => openColumn(other, label) }, named(columns[other].n)),
          html("span", { class: "small" }, `  correlation ${two(r)}, rank ${columns[other].place}, ${columns[other].place <= state.kept ? "kept" : "dropped"}`))))
      : html("p", { class: "small" }, "No other column correlates at 0.90 or more."),
  ]);
  byId("drawer").scrollTop = 0;
};

const stabilityPart = (column) => {
  const { chosen, group, low, high } = stability(column), x = (place) => 4 + (452 * (place - 1)) / Math.max(1, data.d - 1);
  return [
    html("h3", null, "Stability"),
    html("p", null, `Among the first ${whole(among(state.kept))} in `, html("b", null, `${whole(chosen * nSubsamples)} of ${nSubsamples}`), ` subsamples (95% interval ${percent(low)} to ${percent(high)})`,
      group > chosen ? [", including substitutes in ", html("b", null, `${whole(group * nSubsamples)} of ${nSubsamples}`)] : "", "."),
    !data.asked && svg("svg", { viewBox: "0 0 460 40", role: "img", class: "fit", "aria-label": "its rank in each subsample" },
      svg("rect", { class: "zone", x: 0, y: 4, width: x(state.kept) + 2, height: 18 }),
      column.b.map((place) => svg("line", { class: "tick", x1: x(place), x2: x(place), y1: 5, y2: 21 })),
      svg("line", { class: "axis", x1: 0, x2: 460, y1: 22, y2: 22 }),
      svg("text", { x: 0, y: 37, class: "lab-dim" }, "rank 1"),
      svg("text", { x: 460, y: 37, class: "lab-dim", "text-anchor": "end" }, `rank ${whole(data.d)}`)),
  ];
};

// Parts of the support of a label; they add up.
const openRow = (row) => {
  const label = labels[rows.l[row]], parts = [["share of the other rows with this label", rows.b[row]]];
  const triples = rows.w[row];
  for (let at = 0; at < triples.length; at += 3) parts.push([[named(columns[triples[at]].n), ` ${minus(data.values[triples[at + 1]])}`], triples[at + 2]]);
  parts.push(["all other columns", rows.o[row]]);
  if (rows.c) parts.push(["nonlinear effects", rows.c[row]]);
  parts.push([["other labels of the row", rows.y[row] && [": ", named(rows.y[row])]], rows.q[row]]);
  const others = data.of[rows.i[row]].filter((other) => other !== rows.l[row]);
  const context = data.context ? data.shown.map((name, at) => [name, data.context[rows.i[row]][at]]) : [];
  const most = Math.max(1, ...parts.map(([, effect]) => Math.abs(effect)));
  const line = ([what, effect], place) => html("div", { class: "part" }, html("span", null, what),
    svg("svg", { width: "100%", height: 10, "aria-hidden": "true" }, svg("rect", { class: effect < 0 ? "ba" : "bf", width: `${(100 * Math.abs(effect)) / most}%`, height: 10, rx: 1 })),
    html("span", { class: "r num" }, place ? signed(effect / 1000) : two(effect / 1000)));
  showDrawer([
    html("p", { class: "small" }, `number ${whole(row + 1)} of ${whole(data.candidates)} labels · ${whole(rows.g[row])} ${rows.g[row] === 1 ? "label" : "labels"} in this row`),
    html("h2", { id: "drawertitle" }, named(idOf(row)), " · ", named(label.n)),
    others.length > 0 && html("p", { class: "also" }, "Also has ", others.map((other, at) => [at > 0 && ", ", named(labels[other].n)]), "."),
    context.map(([name, text]) => html("p", { class: "context" }, html("span", { class: "small" }, named(name), ": "), named(text))),
    html("h3", null, "Parts of the support"),
    html("div", { id: "parts" }, parts.map(line)),
    html("div", { class: "part sum" }, html("b", null, "support"), html("span"), html("b", { class: "r num" }, two(rows.j[row] / 1000))),
    rows.p && html("p", null, "Probability of being right, from reviewed labels: ", html("b", null, percent(rows.p[row] / 1000)), "."),
    html("p", { class: "small" }, "Predicted from the other rows. Support near 1 speaks for the label, support near 0 or below against it.",
      data.kernel === "linear" ? "" : " A Gaussian kernel determined the support. The nonlinear part cannot be split by column."),
  ]);
};
