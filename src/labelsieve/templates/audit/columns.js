// The table of columns.
let listedColumns = [], listedFor = "";
const chosenColumns = () => {
  const asked = [state.label, state.sort, state.ascending, state.search, state.sort === "stability" ? state.kept : 0].join("|");
  if (asked === listedFor) return listedColumns;
  listedFor = asked;
  const words = state.search.trim().toLowerCase(), turn = state.ascending ? 1 : -1;
  listedColumns = columns.filter((column) => (state.label < 0 || speaks(column, state.label)) && column.search.includes(words));
  const key = { place: (column) => column.place, evidence: (column) => -strength(column), stability: (column) => -share(column, state.kept) }[state.sort];
  const keys = key && new Map(listedColumns.map((column) => [column, key(column)]));
  listedColumns.sort((a, b) => turn * (keys ? keys.get(a) - keys.get(b) : a.n.localeCompare(b.n)) || a.place - b.place);
  return listedColumns;
};

const stability = (column) => {
  const chosen = share(column, state.kept), group = column.s.length ? groupShare(column, state.kept) : chosen;
  const [low, high] = wilson(chosen), x = (value) => 4 + 80 * value;
  const picture = svg("svg", { width: 88, height: 16, "aria-hidden": "true" },
    svg("line", { class: "track", x1: 4, x2: 84, y1: 8, y2: 8 }),
    svg("line", { class: "whisk", x1: x(low), x2: x(high), y1: 8, y2: 8 }),
    group > chosen && svg("circle", { class: "odot", cx: x(group), cy: 8, r: 3.4 }),
    svg("circle", { class: "dot", cx: x(chosen), cy: 8, r: 3.2 }));
  return { chosen, group, low, high, picture };
};

const stabilityCell = (column) => {
  if (!nSubsamples) return html("td", { class: "c-q" });
  const { chosen, group, low, high, picture } = stability(column);
  const title = `95 % interval ${percent(low)} to ${percent(high)}${group > chosen ? `; including substitutes: ${percent(group)}` : ""}`;
  return html("td", { class: "c-q", title }, html("div", { class: "cell2" }, picture, html("span", { class: "num" }, `${whole(chosen * nSubsamples)}/${nSubsamples}`)));
};

const errorRate = (column) => (column.q === undefined ? "" : ` · q ${column.qb ? "≤ " : ""}${column.q}`);
const describe = (column) => column.t + (column.f ? ` · ${column.f.length}${column.f.length > 11 ? "+" : ""} features` : "") + (column.x ? ` · ${whole(column.x)} empty` : "") + errorRate(column);

// Evidence and z² are shown as integers; scores of other methods can have any size.
const measured = (worth) => (state.label >= 0 || data.measure === "evidence" ? whole(worth) : minus(Number(worth.toPrecision(3))));

const columnRow = (column, most) => {
  const kept = column.place <= state.kept, worth = strength(column), isLower = state.label >= 0 && column.z[state.label] < 0;
  const isLast = state.sort === "place" && state.ascending && column.place === state.kept && state.kept < nColumns;
  const substitutes = column.s.length
    ? html("div", { class: "sub", title: column.s.map(([other, r]) => `${columns[other].n} (${two(r)})`).join("\n") },
        "≈ ", named(columns[column.s[0][0]].n), column.s.length > 1 ? ` +${column.s.length - 1}` : "")
    : html("span", { class: "vh" }, "none");
  return html("tr", { class: `row${kept ? "" : " out"}${isLast ? " cut" : ""}` },
    html("td", { class: "r num c-n" }, whole(column.place)),
    html("td", { class: "c-f" },
      html("button", { class: "fname", type: "button", title: column.n, onclick: () => openColumn(column.place - 1) },
        html("span", { class: "mark", "aria-hidden": "true" }), named(column.n), html("span", { class: "vh" }, kept ? " (kept)" : " (dropped)")),
      html("div", { class: `ftype${isLast ? " cutlab" : ""}` }, isLast ? "last one kept" : describe(column))),
    html("td", { class: "c-s" }, svg("svg", { width: 76, height: 24, "aria-hidden": "true" }, bars(column.h.c, 76, 24))),
    html("td", { class: "c-e" }, html("div", { class: "cell2" }, bar(worth / most, isLower ? "ba" : "bf"),
      html("span", { class: "num", title: isLower ? "lower where the label is present" : null }, (isLower ? "−" : "") + measured(worth)))),
    stabilityCell(column),
    html("td", { class: "c-u" }, substitutes));
};

draw.columns = () => {
  const listed = chosenColumns(), most = Math.max(Number.MIN_VALUE, ...columns.map(strength));
  state.page = clamp(state.page, 0, Math.max(0, Math.ceil(listed.length / state.size) - 1));
  const shown = state.printing
    ? listed.filter((column) => column.place <= Math.max(state.kept, 10)).slice(0, 150)
    : listed.slice(state.page * state.size, (state.page + 1) * state.size);
  const more = nColumns < data.d ? ` This page shows the first ${whole(nColumns)}.` : "";
  byId("columnwords").textContent = state.label < 0
    ? `${whole(state.kept)} of ${whole(data.d)} columns kept.${more}`
    : `${whole(listed.length)} of ${whole(data.d)} have evidence for “${short(labels[state.label].n)}”.`;
  byId("columnsort").value = state.sort;
  markSorted(byId("columntable"), state.sort, state.ascending === (state.sort === "place" || state.sort === "name"));
  byId("columnrows").replaceChildren(...shown.map((column) => columnRow(column, most)));
  byId("nocolumn").hidden = listed.length > 0;
  // Keep the height when the last page is shorter.
  const height = listed.length > state.size && !state.printing ? `${phone.matches ? 84 * state.size : 44 * state.size + 36}px` : "";
  byId("columnwrap").style.setProperty("min-height", height);
  pager(byId("columnpager"), {
    page: state.page, size: state.size, total: listed.length,
    go: (page) => { state.page = page; changed("columns"); },
    resize: (size) => { Object.assign(state, { size, page: 0 }); changed("columns"); },
  });
};

make.columns = () => {
  const sortBy = (key) => { Object.assign(state, { ascending: state.sort === key ? !state.ascending : true, sort: key, page: 0 }); changed("columns"); };
  for (const head of byId("columntable").querySelectorAll("th[data-sort]")) head.firstElementChild.addEventListener("click", () => sortBy(head.dataset.sort));
  byId("columnsort").addEventListener("change", (event) => { Object.assign(state, { sort: event.target.value, ascending: true, page: 0 }); changed("columns"); });
  byId("columnsearch").addEventListener("input", (event) => { Object.assign(state, { search: event.target.value, page: 0 }); changed("columns"); });
};
