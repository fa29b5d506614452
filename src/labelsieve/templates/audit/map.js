// Columns by labels. One tab stop: arrow keys move, Enter opens, Escape hides the note.
const inks = { for: "31,119,180", against: "213,94,0" };
const columnsPerPage = 16;
const strongest = Math.max(1, ...columns.flatMap((column) => column.z.map(Math.abs)));
const linear = (part) => { const value = part / 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
const luminance = (alpha) => [31, 119, 180].reduce((sum, part, place) => sum + [0.2126, 0.7152, 0.0722][place] * linear(255 - alpha * (255 - part)), 0);
let mapPlace = [0, 0];

const mapCell = (column, label, row, place) => {
  const z = column.z[label] / 10, isLower = z < 0, alpha = Math.sqrt(Math.abs(column.z[label]) / strongest), shown = speaks(column, label);
  // Text color with enough contrast.
  const ink = isLower ? (alpha > 0.75 ? "lo" : "") : (luminance(alpha) < 0.18 ? "hi" : "");
  return html("td", {
    class: [ink, shown ? "on" : "", state.label >= 0 && label !== state.label ? "off" : ""].join(" ").trim() || null,
    tabindex: row === mapPlace[0] && place === mapPlace[1] ? 0 : -1,
    "data-column": column.place - 1, "data-label": label, "data-row": row, "data-place": place,
    "aria-label": `${column.n}, ${labels[label].n}: z squared ${Math.abs(z).toFixed(1)}, ${isLower ? "lower" : "higher"} with the label`,
    css: shown ? { "background-color": `rgba(${isLower ? inks.against : inks.for},${alpha.toFixed(2)})` } : {},
  }, shown ? (isLower ? "−" : "") + whole(Math.abs(z)) : "");
};

draw.map = () => {
  const listed = state.label < 0 ? columns : columns.filter((column) => speaks(column, state.label)).sort((a, b) => z2(b, state.label) - z2(a, state.label));
  const perPage = labelsPerPage(), table = byId("maptable");
  state.mapPage = clamp(state.mapPage, 0, Math.max(0, Math.ceil(listed.length / columnsPerPage) - 1));
  state.labelPage = clamp(state.labelPage, 0, Math.ceil(nLabels / perPage) - 1);
  const shown = listed.slice(state.mapPage * columnsPerPage, (state.mapPage + 1) * columnsPerPage);
  const across = labels.map((_, label) => label).slice(state.labelPage * perPage, (state.labelPage + 1) * perPage);
  const hadFocus = table.contains(document.activeElement) && document.activeElement.tagName === "TD";
  mapPlace = [clamp(mapPlace[0], 0, Math.max(0, shown.length - 1)), clamp(mapPlace[1], 0, across.length - 1)];
  table.className = state.label >= 0 ? "sel" : "";
  const head = (label) => html("th", { class: label === state.label ? "l on" : "l", scope: "col" },
    html("button", { type: "button", "aria-pressed": String(label === state.label), title: `filter the page to ${labels[label].n}`, onclick: () => setLabel(label === state.label ? -1 : label) },
      named(short(labels[label].n))));
  table.replaceChildren(
    html("colgroup", null, html("col", { css: { width: phone.matches ? "36%" : "21%" } }), across.map(() => html("col"))),
    html("thead", null, html("tr", null, html("td", { class: "corner" }), across.map(head))),
    html("tbody", null, shown.map((column, row) => html("tr", null,
      html("th", { class: "f", scope: "row", title: column.n }, named(column.n)),
      across.map((label, place) => mapCell(column, label, row, place))))));
  if (hadFocus) focusMap();
  pager(byId("mappager"), { page: state.mapPage, size: columnsPerPage, total: listed.length, go: (page) => { state.mapPage = page; changed("map"); } });
  byId("labelpager").hidden = nLabels <= perPage;
  if (nLabels > perPage) pager(byId("labelpager"), { page: state.labelPage, size: perPage, total: nLabels, go: (page) => { state.labelPage = page; changed("map"); } });
};

const focusMap = () => {
  const table = byId("maptable"), cell = table.querySelector(`td[data-row="${mapPlace[0]}"][data-place="${mapPlace[1]}"]`);
  if (!cell) return;
  const before = table.querySelector('td[tabindex="0"]');
  if (before) before.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
};

const hideTip = () => { byId("tip").hidden = true; };
const showTip = (event) => {
  const cell = event.target.closest && event.target.closest("#maptable td[data-column]"), tip = byId("tip");
  if (!cell) return hideTip();
  const column = columns[Number(cell.dataset.column)], label = Number(cell.dataset.label), z = column.z[label] / 10;
  const name = `“${short(labels[label].n)}”`, size = Math.abs(z).toFixed(1), r = Math.sign(z) * Math.sqrt(Math.abs(z) / data.n);
  tip.replaceChildren(
    html("b", null, named(column.n.length > 60 ? `${column.n.slice(0, 60)}…` : column.n)),
    html("div", null, speaks(column, label)
      ? `${z < 0 ? "lower" : "higher"} where ${name} is a candidate: z² ${size}, correlation ${signed(r)}`
      : `no evidence for ${name} (z² ${size}, below ${data.tau})`),
    html("div", null, `rank ${whole(column.place)}, ${column.place <= state.kept ? "kept" : "dropped"}`));
  tip.hidden = false;
  const box = cell.getBoundingClientRect(), above = box.top - tip.offsetHeight - 8;
  tip.style.setProperty("left", `${clamp(box.left + box.width / 2 - tip.offsetWidth / 2, 8, innerWidth - tip.offsetWidth - 8)}px`);
  tip.style.setProperty("top", `${above > 60 ? above : box.bottom + 8}px`);
};

make.map = () => {
  const table = byId("maptable"), cellOf = (event) => event.target.closest("td[data-column]");
  const open = (cell) => { hideTip(); openColumn(Number(cell.dataset.column), Number(cell.dataset.label)); };
  ["mouseover", "focusin"].forEach((kind) => table.addEventListener(kind, showTip));
  ["mouseleave", "focusout"].forEach((kind) => table.addEventListener(kind, hideTip));
  addEventListener("scroll", () => {
    const focused = document.activeElement;
    if (byId("tip").hidden) return;
    if (focused && focused.matches("#maptable td:focus-visible")) showTip({ target: focused });
    else hideTip();
  }, { passive: true });
  table.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    mapPlace = [Number(cell.dataset.row), Number(cell.dataset.place)];
    open(cell);
  });
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  table.addEventListener("keydown", (event) => {
    const cell = cellOf(event), move = moves[event.key];
    if (!cell) return;
    if (move) {
      event.preventDefault();
      const last = [table.querySelectorAll("tbody tr").length - 1, table.querySelectorAll("th.l").length - 1];
      mapPlace = [0, 1].map((axis) => clamp(Number(axis ? cell.dataset.place : cell.dataset.row) + move[axis], 0, last[axis]));
      focusMap();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(cell);
    } else if (event.key === "Escape") hideTip();
  });
  byId("ramp").append(...[-1, -0.6, -0.3, 0, 0.3, 0.6, 1].map((part) =>
    html("i", { css: { "background-color": part ? `rgba(${part < 0 ? inks.against : inks.for},${Math.abs(part)})` : "var(--panel)" } })));
};
