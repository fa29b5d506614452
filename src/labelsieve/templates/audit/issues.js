// Labels to review first, with reasons. Sentence, chart, table and CSV describe the same rows.
const byLabel = labels.map(() => []);
rows.l.forEach((label, row) => byLabel[label].push(row));
const idOf = (row) => data.ids[rows.i[row]];
const reasonsOf = (row) => {
  const triples = rows.w[row], found = [];
  for (let at = 0; at < triples.length; at += 3) found.push({ column: columns[triples[at]], value: data.values[triples[at + 1]], effect: triples[at + 2] / 1000 });
  // The other labels compete with the columns for the three places.
  if (rows.q[row] < -20) found.push({ column: null, value: rows.y[row] || "other labels of the row", effect: rows.q[row] / 1000 });
  return found.sort((a, b) => a.effect - b.effect).slice(0, 3);
};

let listedRows = [], rowsFor = "";
const chosenRows = () => {
  const asked = [state.label, state.cut, state.rowSearch, state.rowSort, state.rowAscending].join("|");
  if (asked === rowsFor) return listedRows;
  rowsFor = asked;
  const words = state.rowSearch.trim().toLowerCase();
  const matches = (row) => !words || labels[rows.l[row]].n.toLowerCase().includes(words) || idOf(row).toLowerCase().includes(words)
    || reasonsOf(row).some(({ column }) => column && column.search.includes(words))
    || (data.context && data.context[rows.i[row]].some((text) => text.toLowerCase().includes(words)));
  const pool = state.label < 0 ? rows.l.map((_, row) => row) : byLabel[state.label];
  listedRows = pool.filter((row) => row < state.cut && matches(row));
  const turn = state.rowAscending ? 1 : -1;
  if (state.rowSort === "row") listedRows.sort((a, b) => turn * (rows.i[a] - rows.i[b]) || a - b);
  else if (state.rowSort === "label") listedRows.sort((a, b) => turn * labels[rows.l[a]].n.localeCompare(labels[rows.l[b]].n) || a - b);
  else if (turn < 0) listedRows.reverse();
  return listedRows;
};

const drawCandidates = (listed) => {
  const width = 420, height = 190, [low, high] = data.range;
  const counts = state.label < 0 ? labels[0].h.map((_, place) => labels.reduce((sum, label) => sum + label.h[place], 0)) : labels[state.label].h;
  const key = rows.p || rows.j, most = Math.max(1, ...counts), step = (width - 16) / counts.length;
  const x = (value) => 8 + ((width - 16) * (value - low)) / (high - low), y = (count) => 18 + (height - 44) * (1 - count / most);
  const end = nRows ? key[clamp(state.cut, 1, nRows) - 1] / 1000 : low;
  const scale = rows.p ? "probability of being right" : "support";
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "fit", "aria-label": `All labels by ${scale}; the list ends at ${two(end)}` },
    counts.map((count, place) => count > 0 && svg("rect", {
      class: low + ((place + 0.5) * (high - low)) / counts.length <= end ? "ba" : "spark",
      x: 8 + place * step + 0.5, width: step - 1, y: y(count), height: Math.max(1, y(0) - y(count)),
    })),
    svg("line", { class: "axis", x1: 8, x2: width - 8, y1: y(0), y2: y(0) }),
    svg("line", { class: "cross", x1: x(end), x2: x(end), y1: 10, y2: y(0) }),
    svg("text", { x: x(end) + (x(end) > width / 2 ? -6 : 6), y: 14, class: "lab-strong", "text-anchor": x(end) > width / 2 ? "end" : "start" }, `${whole(listed.length)} listed`),
    svg("text", { x: 8, y: height - 8, class: "lab-dim" }, `${scale} ${two(low)}`),
    svg("text", { x: width - 8, y: height - 8, class: "lab-dim", "text-anchor": "end" }, two(high)));
};

const sayWhat = (listed) => {
  const ofLabel = state.label < 0 ? "" : ` of “${short(labels[state.label].n)}”`;
  const total = state.label < 0 ? data.candidates : labels[state.label].m;
  const found = [html("b", null, `${whole(listed.length)} of ${whole(total)}`), ` labels${ofLabel}, least supported first`];
  if (!listed.length) return ["No label", ofLabel, " is listed."];
  if (rows.p) {
    const wrong = listed.reduce((sum, row) => sum + 1 - rows.p[row] / 1000, 0);
    return [...found, ". About ", html("b", null, `${whole(wrong)} of them are wrong`), ` (${percent(wrong / listed.length)}).`];
  }
  return [...found, ". This is a review order, not an error count."];
};

const reasonCell = ({ column, value, effect }) => html("div", null,
  html("div", { class: "w1", title: column ? `${column.n} ${value}` : value }, column ? [named(column.n), html("span", null, ` ${minus(value)}`)] : named(value)),
  html("div", { class: "w2" }, html("span", { class: "mb", css: { width: `${Math.min(64, (64 * -effect) / 0.25)}px` } }), signed(effect)));

const issueRow = (row) => {
  const label = labels[rows.l[row]], support = rows.j[row] / 1000;
  return html("tr", { class: "row" },
    html("td", { class: "rid d-i" }, html("button", { class: "fname", type: "button", title: `reasons for ${idOf(row)}, ${label.n}`, onclick: () => openRow(row) }, named(idOf(row)))),
    html("td", { class: "d-l", title: label.n }, named(label.n)),
    html("td", { class: "d-j" }, html("div", { class: "cell2" },
      svg("svg", { width: "100%", height: 8, "aria-hidden": "true", class: "grow" },
        svg("rect", { class: "ground", width: "100%", height: 8, rx: 1 }),
        svg("rect", { class: "bf", width: `${100 * clamp(rows.p ? rows.p[row] / 1000 : support, 0, 1)}%`, height: 8, rx: 1 })),
      html("span", { class: "num" }, rows.p ? percent(rows.p[row] / 1000) : two(support)))),
    html("td", { class: "d-w" }, html("div", { class: "why" }, reasonsOf(row).map(reasonCell))));
};

draw.issues = () => {
  const listed = chosenRows();
  state.rowPage = clamp(state.rowPage, 0, Math.max(0, Math.ceil(listed.length / state.rowSize) - 1));
  const shown = state.printing ? listed.slice(0, 30) : listed.slice(state.rowPage * state.rowSize, (state.rowPage + 1) * state.rowSize);
  const said = sayWhat(listed), slider = byId("cut");
  byId("say").replaceChildren(...said);
  slider.value = state.cut;
  slider.setAttribute("aria-valuetext", `${state.cut} of ${data.candidates} labels, least supported first`);
  byId("cutwords").textContent = whole(state.cut);
  byId("picture").replaceChildren(drawCandidates(listed));
  markSorted(byId("issuetable"), state.rowSort, state.rowAscending);
  byId("issuerows").replaceChildren(...shown.map(issueRow));
  byId("printed").textContent = `${whole(shown.length)} of ${whole(listed.length)} are printed.`;
  byId("noissue").hidden = listed.length > 0;
  const height = listed.length > state.rowSize && !state.printing ? `${phone.matches ? 158 * state.rowSize : 54 * state.rowSize + 36}px` : "";
  byId("issuewrap").style.setProperty("min-height", height);
  byId("export").textContent = `Export ${whole(listed.length)} as CSV`;
  byId("export").disabled = !listed.length;
  pager(byId("issuepager"), {
    page: state.rowPage, size: state.rowSize, total: listed.length,
    go: (page) => { state.rowPage = page; changed("issues"); },
    resize: (rowSize) => { Object.assign(state, { rowSize, rowPage: 0 }); changed("issues"); },
  });
};

// Text that a spreadsheet could run as a formula.
const csvCell = (value) => {
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};
const csvText = () => {
  const reasons = [1, 2, 3].flatMap((number) => [`reason_${number}`, `value_${number}`, `effect_${number}`]);
  const lines = [["row", "label", "support", ...(rows.p ? ["probability"] : []), ...reasons]];
  for (const row of chosenRows()) {
    const found = reasonsOf(row), cells = [idOf(row), labels[rows.l[row]].n, rows.j[row] / 1000, ...(rows.p ? [rows.p[row] / 1000] : [])];
    for (let at = 0; at < 3; at++) cells.push(...(found[at] ? [found[at].column ? found[at].column.n : "(other labels)", found[at].value.replace(/^= /, ""), found[at].effect] : ["", "", ""]));
    lines.push(cells);
  }
  return lines.map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");
};

make.issues = () => {
  const slider = byId("cut"), setCut = (cut) => { Object.assign(state, { cut: clamp(cut, 1, Math.max(1, nRows)), rowPage: 0 }); changed("issues"); };
  slider.max = Math.max(1, nRows);
  slider.addEventListener("input", () => setCut(Number(slider.value)));
  const page = Math.max(1, Math.round(nRows / 10)), moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page, Home: -nRows, End: nRows };
  slider.addEventListener("keydown", (event) => {
    if (!moves[event.key]) return;
    event.preventDefault();
    setCut(state.cut + moves[event.key]);
  });
  const sortBy = (key) => { Object.assign(state, { rowAscending: state.rowSort === key ? !state.rowAscending : true, rowSort: key, rowPage: 0 }); changed("issues"); };
  for (const head of byId("issuetable").querySelectorAll("th[data-sort]")) head.firstElementChild.addEventListener("click", () => sortBy(head.dataset.sort));
  byId("issuesearch").addEventListener("input", (event) => { Object.assign(state, { rowSearch: event.target.value, rowPage: 0 }); changed("issues"); });
  byId("export").addEventListener("click", () => save(csvText(), "label-issues.csv", "text/csv"));
};
