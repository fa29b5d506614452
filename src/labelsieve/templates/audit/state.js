// Choices of the reader, and the parts of the page to draw again.
const columns = data.columns, labels = data.labels, rows = data.rows;
const nColumns = columns.length, nLabels = labels.length, nRows = rows ? rows.i.length : 0, nSubsamples = data.resamples;
const phone = matchMedia("(max-width:640px)"), labelsPerPage = () => (phone.matches ? 9 : 12);

columns.forEach((column, place) => {
  column.place = place + 1;
  column.search = `${column.n} ${column.t}`.toLowerCase();
  // Label with the most evidence from the column.
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

// Subsamples that select one number of columns say nothing about another.
const among = (kept) => data.asked || kept;
const share = (column, kept) => column.b.filter((place) => place <= among(kept)).length / nSubsamples;
const groupShare = (column, kept) => {
  let hits = 0;
  kept = among(kept);
  for (let sample = 0; sample < nSubsamples; sample++)
    if (column.b[sample] <= kept || column.s.some(([other]) => columns[other].b[sample] <= kept)) hits++;
  return hits / nSubsamples;
};
const wilson = (p) => {
  const z = 3.8415, middle = (p + z / (2 * nSubsamples)) / (1 + z / nSubsamples);
  const half = (Math.sqrt(z) * Math.sqrt((p * (1 - p)) / nSubsamples + z / (4 * nSubsamples * nSubsamples))) / (1 + z / nSubsamples);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
};

// Each part is made once. A frame draws the parts that changed since the last one.
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
