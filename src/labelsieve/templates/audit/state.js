// What the reader has chosen, and which parts of the page must be drawn again for it.
const columns = data.columns, labels = data.labels, rows = data.rows;
const nColumns = columns.length, nLabels = labels.length, nRows = rows ? rows.i.length : 0, nHalves = data.resamples;
const phone = matchMedia("(max-width:640px)"), labelsPerPage = () => (phone.matches ? 9 : 12);

columns.forEach((column, place) => {
  column.place = place + 1;
  column.search = `${column.n} ${column.t}`.toLowerCase();
  // The label that the column says most about.
  if (column.z) column.best = column.z.reduce((best, value, label) => (Math.abs(value) > Math.abs(column.z[best]) ? label : best), 0);
});

const state = {
  kept: data.kept,
  label: -1,
  sort: "place", ascending: true, search: "", page: 0, size: phone.matches ? 10 : 20,
  mapPage: 0, labelPage: 0,
  cut: data.look || Math.min(nRows, 20), rowSearch: "", rowSort: "support", rowAscending: true, rowPage: 0, rowSize: phone.matches ? 10 : 25,
  printing: false,
};

const z2 = (column, label) => Math.abs(column.z[label]) / 10;
const speaks = (column, label) => z2(column, label) >= data.tau;
const strength = (column) => (state.label < 0 ? column.e : z2(column, state.label));

// Halves that were asked for one number of columns say nothing about another.
const among = (kept) => data.asked || kept;
const share = (column, kept) => column.b.filter((place) => place <= among(kept)).length / nHalves;
const groupShare = (column, kept) => {
  let hits = 0;
  kept = among(kept);
  for (let half = 0; half < nHalves; half++)
    if (column.b[half] <= kept || column.s.some(([other]) => columns[other].b[half] <= kept)) hits++;
  return hits / nHalves;
};
const wilson = (p) => {
  const z = 3.8415, middle = (p + z / (2 * nHalves)) / (1 + z / nHalves);
  const half = (Math.sqrt(z) * Math.sqrt((p * (1 - p)) / nHalves + z / (4 * nHalves * nHalves))) / (1 + z / nHalves);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
};

// Every part of the page makes itself once. One frame draws everything that changed since the last.
const make = {}, draw = {};
let waiting = new Set(), frame = 0;
const changed = (...parts) => {
  parts.forEach((part) => waiting.add(part));
  frame = frame || requestAnimationFrame(() => {
    const now = waiting;
    waiting = new Set();
    frame = 0;
    now.forEach((part) => draw[part] && draw[part]());
  });
};

const setKept = (wanted) => {
  const kept = clamp(Math.round(wanted) || 1, 1, nColumns);
  if (kept === state.kept) return changed("curve");
  state.kept = kept;
  changed("curve", "columns");
};

const setLabel = (label) => {
  Object.assign(state, { label, page: 0, rowPage: 0, mapPage: 0, sort: label < 0 ? "place" : "evidence", ascending: true });
  if (label >= 0) state.labelPage = Math.floor(label / labelsPerPage());
  byId("label").value = label;
  byId("bar").classList.toggle("on", label >= 0);
  byId("clear").hidden = label < 0;
  changed("columns", "map", "labels", "issues");
};
