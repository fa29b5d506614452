// Size curve, with a slider on the same logarithmic axis.
const sizes = data.curve.k, folds = data.curve.folds;
const meanCurve = sizes.map((_, place) => folds.reduce((sum, fold) => sum + fold[place], 0) / folds.length);
// Random columns and no columns, if computed.
const random = data.curve.random || [], randomCurve = random.map(([mean]) => mean), none = data.curve.none;
const plot = { width: 356, height: 226, left: 34, right: 12, top: 14, bottom: 30 };
const logEnd = Math.log(Math.max(2, nColumns));
const plotX = (size) => plot.left + ((plot.width - plot.left - plot.right) * Math.log(size)) / logEnd;
const sizeAt = (x) => Math.round(Math.exp(clamp((x - plot.left) / (plot.width - plot.left - plot.right), 0, 1) * Math.log(nColumns)));
const everyValue = [...(none === null ? [] : [none]), ...folds.flat(), ...random.map(([, low]) => low)];
const margin = Math.max(0.02, (Math.max(...everyValue) - Math.min(...everyValue)) * 0.08);
const lowest = Math.min(...everyValue) - margin, highest = Math.max(...everyValue) + margin;
const plotY = (value) => plot.top + ((plot.height - plot.top - plot.bottom) * (highest - value)) / (highest - lowest);
const pathOf = (values) => values.map((value, place) => `${place ? "L" : "M"}${plotX(sizes[place]).toFixed(1)} ${plotY(value).toFixed(1)}`).join("");

// Linear interpolation on the logarithmic axis.
const valueAt = (values, size) => {
  const next = sizes.findIndex((tried) => size <= tried);
  if (next === 0) return values[0];
  if (next < 0) return values[values.length - 1];
  const part = Math.log(size / sizes[next - 1]) / Math.log(sizes[next] / sizes[next - 1]);
  return values[next - 1] + part * (values[next] - values[next - 1]);
};

let cross;
make.curve = () => {
  const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((wide) => (highest - lowest) / wide <= 5) || 0.5;
  const heights = [];
  for (let value = Math.ceil(lowest / step) * step; value <= highest; value += step) heights.push(value);
  const marks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter((size) => size <= nColumns && (size === 1 || nColumns < 120 || /^1|^5/.test(size)));
  const near = (part) => Math.min(sizes.length - 1, Math.round(sizes.length * part));
  const right = plot.width - plot.right, floor = plot.height - plot.bottom;
  const band = random.map(([, low], place) => `${place ? "L" : "M"}${plotX(sizes[place])} ${plotY(low)}`).join("")
    + random.map(([, , high], place) => `L${plotX(sizes[place])} ${plotY(high)}`).reverse().join("") + "Z";
  const label = (x, y, kind, text, anchor = "start") => svg("text", { x, y, class: kind, "text-anchor": anchor }, text);
  cross = svg("g");
  const picture = svg("svg", {
    viewBox: `0 0 ${plot.width} ${plot.height}`, role: "img", class: "drag",
    "aria-label": `Average precision on held-out rows by number of kept columns; best ${two(valueAt(meanCurve, data.best))} at ${data.best} columns${none === null ? "" : `, without columns ${two(none)}`}`,
  },
    heights.map((value) => [
      svg("line", { class: "axis faint", x1: plot.left, x2: right, y1: plotY(value), y2: plotY(value) }),
      label(plot.left - 6, plotY(value) + 4, "lab-dim", step < 0.01 ? value.toFixed(3) : two(value), "end"),
    ]),
    random.length > 0 && svg("path", { class: "cband", d: band }),
    folds.map((fold) => svg("path", { class: "fold", d: pathOf(fold) })),
    random.length > 0 && svg("path", { class: "chance", d: pathOf(randomCurve) }),
    svg("path", { class: "mean", d: pathOf(meanCurve) }),
    sizes.map((size, place) => svg("circle", { class: "bf", cx: plotX(size), cy: plotY(meanCurve[place]), r: 2.2 })),
    marks.map((size) => label(plotX(size), floor + 17, "lab-dim", whole(size), "middle")),
    svg("line", { class: "axis", x1: plot.left, x2: right, y1: floor, y2: floor }),
    label(plotX(sizes[near(0.38)]) - 8, plotY(meanCurve[near(0.38)]) - 9, "lab-for", "this ranking", "end"),
    // Below its line, and above the label of the bottom line.
    random.length > 0 && label(plotX(sizes[near(0.5)]), Math.min(plotY(randomCurve[near(0.5)]) + 18, (none === null ? Infinity : plotY(none) - 20)), "lab-dim", "random columns", near(0.5) > 1 ? "middle" : "start"),
    none !== null && [
      svg("line", { class: "axis dotted", x1: plot.left, x2: right, y1: plotY(none), y2: plotY(none) }),
      label(right, plotY(none) - 5, "lab-dim", "no columns", "end"),
    ],
    cross);
  const drag = (event) => {
    const box = picture.getBoundingClientRect();
    setKept(sizeAt(((event.clientX - box.left) * plot.width) / box.width));
  };
  picture.addEventListener("pointerdown", (event) => { picture.setPointerCapture(event.pointerId); drag(event); });
  picture.addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });
  byId("curve").append(picture);

  const slider = byId("kept");
  slider.addEventListener("input", () => setKept(Math.exp((slider.value / 1000) * Math.log(nColumns))));
  // The arrow keys move by one column, however many there are.
  const page = Math.max(1, Math.round(nColumns / 20));
  const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page, Home: -nColumns, End: nColumns };
  slider.addEventListener("keydown", (event) => {
    if (!moves[event.key]) return;
    event.preventDefault();
    setKept(Math.max(1, state.kept + moves[event.key]));
  });
  byId("exact").max = nColumns;
  byId("exact").addEventListener("change", (event) => setKept(Number(event.target.value)));
  byId("best").addEventListener("click", () => setKept(data.best));
  byId("names").addEventListener("click", () =>
    save(columns.slice(0, state.kept).map((column) => `${column.n}\n`).join(""), "columns.txt", "text/plain"));
};

draw.curve = () => {
  const kept = state.kept, reached = valueAt(meanCurve, kept), inFolds = folds.map((fold) => valueAt(fold, kept));
  const slider = byId("kept");
  slider.value = nColumns > 1 ? Math.round((1000 * Math.log(kept)) / Math.log(nColumns)) : 0;
  slider.setAttribute("aria-valuetext", `${kept} of ${data.d} columns, expected average precision ${two(reached)}`);
  if (document.activeElement !== byId("exact")) byId("exact").value = kept;
  cross.replaceChildren(
    svg("line", { class: "cross", x1: plotX(kept), x2: plotX(kept), y1: plot.top, y2: plot.height - plot.bottom }),
    svg("circle", { class: "kdot", cx: plotX(kept), cy: plotY(reached), r: 5.5 }));
  byId("keptwords").textContent = `${whole(kept)} of ${whole(data.d)} kept`;
  byId("precision").textContent = two(reached);
  const shares = nSubsamples && among(kept) === kept ? columns.slice(0, kept).map((column) => share(column, kept)) : [];
  const sure = shares.filter((value) => value >= 0.9).length, unsure = shares.filter((value) => value < 0.5).length;
  const all = sizes[sizes.length - 1] === data.d ? `, all ${two(meanCurve[meanCurve.length - 1])}` : "";
  byId("curvewords").replaceChildren(
    `Expected average precision ${two(reached)} (folds ${two(Math.min(...inFolds))} to ${two(Math.max(...inFolds))})${random.length || all ? "; " : ". "}`,
    random.length ? `random columns of this number ${two(valueAt(randomCurve, kept))}${all}. ` : all && `${all.slice(2)}. `,
    ...(shares.length ? [
      html("b", null, `${whole(sure)} of ${whole(kept)}`),
      ` are selected in at least 90\u202f% of ${nSubsamples} subsamples${unsure ? `, ${whole(unsure)} in fewer than half.` : "."}`,
    ] : []));
  byId("best").disabled = kept === data.best;
};
