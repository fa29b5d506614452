// Ranks the methods in the chosen cells. Study.standing and Study.duels in report/leaderboard.py compute the same.
(() => {
  const FILTERS = ["datasets", "noises", "classifiers", "metrics"];
  const selects = FILTERS.map((name) => document.querySelector(`[data-filter="${name}"]`));
  const [studySelect, opponentSelect, chart] = ["study", "opponent", "chart"].map(byId);
  const table = document.querySelector("table.sortable");
  const [DATASET, METRIC, IS_COMMON, VALUES] = [0, 3, 4, 5];
  const ROW = 20, LANE = 7;
  let study = null;

  const refill = (select, names, all) => {
    const options = names.map((name, place) => html("option", { value: place }, name));
    if (all && names.length > 1) options.unshift(html("option", { value: -1 }, "all"));
    select.replaceChildren(...options);
  };
  const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const count = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
  const cost = (cell, method) => (study.metrics[cell[METRIC]].direction === "lower" ? 1 : -1) * cell[VALUES][method];

  function selectedCells() {
    const wanted = selects.map((select) => Number(select.value));
    const cells = study.cells.filter((cell) => wanted.every((place, level) => place < 0 || cell[level] === place));
    const common = cells.filter((cell) => cell[IS_COMMON]);
    return common.length ? common : cells;
  }

  // Ties share their mean rank.
  function ranks(costs) {
    const order = [...costs.keys()].sort((a, b) => costs[a] - costs[b]);
    const found = new Array(costs.length);
    for (let first = 0, end = 0; first < order.length; first = end) {
      while (end < order.length && costs[order[end]] === costs[order[first]]) end += 1;
      for (const place of order.slice(first, end)) found[place] = (first + 1 + end) / 2;
    }
    return found;
  }

  function compare() {
    const cells = selectedCells();
    const everyone = [...study.methods.keys()];
    const complete = everyone.filter((method) => cells.every((cell) => cell[VALUES][method] !== null));
    const datasets = [...new Set(cells.map((cell) => cell[DATASET]))];
    const byDataset = datasets.map((dataset) => {
      const rows = cells.filter((cell) => cell[DATASET] === dataset).map((cell) => ranks(complete.map((method) => cost(cell, method))));
      return complete.map((_, place) => mean(rows.map((row) => row[place])));
    });
    const rows = complete.map((method, place) => ({ method, ...study.methods[method], rank: mean(byDataset.map((row) => row[place])) }));
    rows.sort((a, b) => a.rank - b.rank);
    const cd = rows.length > 1 && datasets.length > 1 ? data.critical[rows.length] / Math.sqrt(datasets.length) : null;
    return { cells, datasets, rows, cd, leftOut: everyone.filter((method) => !complete.includes(method)) };
  }

  function duel(cells, method, opponent) {
    let [wins, losses] = [0, 0];
    for (const cell of cells) {
      const lead = Math.round((cost(cell, opponent) - cost(cell, method)) * 1e12) / 1e12;
      if (lead >= data.tie) wins += 1;
      if (lead <= -data.tie) losses += 1;
    }
    return `${wins} / ${cells.length - wins - losses} / ${losses}`;
  }

  function draw() {
    const found = compare();
    const kept = opponentSelect.selectedOptions[0]?.text ?? data.ours;
    refill(opponentSelect, found.rows.map((row) => row.name).sort(), false);
    const names = [kept, data.ours, found.rows[0]?.name];
    const name = names.find((one) => found.rows.some((row) => row.name === one));
    for (const option of opponentSelect.options) option.selected = option.text === name;
    found.opponent = found.rows.find((row) => row.name === name);
    describe(found);
    fillTable(found);
    drawRanks(found);
  }

  function describe({ rows, cells, datasets, cd, leftOut }) {
    const test = cd === null ? "One dataset is not enough for a test." : `Average ranks must differ by ${two(cd)} to be significant (Nemenyi, 5%).`;
    byId("status").textContent = rows.length > 1
      ? `${whole(rows.length)} methods and references ranked in ${count(cells.length, "comparison")} on ${count(datasets.length, "dataset")}. ${test}`
      : "Fewer than two methods have results for all of these choices.";
    const texts = leftOut.length ? [`Not ranked because results are missing: ${listed(leftOut.map((method) => study.methods[method].name))}.`] : [];
    const wanted = Number(selects[DATASET].value);
    const skipped = study.datasets.filter((_, place) => wanted < 0 && !datasets.includes(place));
    if (skipped.length) texts.push(`Not included because some methods have no results there: ${listed(skipped)}. Choose a dataset to see its ranks.`);
    byId("left-out").textContent = texts.join(" ");
  }

  function fillTable({ rows, cells, datasets, opponent }) {
    const wanted = Number(selects[METRIC].value);
    const usual = study.metrics.findIndex((metric) => metric.name === "average_precision");
    const metric = wanted >= 0 ? wanted : Math.max(usual, 0);
    const number = (text) => html("td", { class: "n" }, text);
    byId("mean-head").querySelector("button").textContent = `mean ${study.metrics[metric].title}`;
    byId("duel-head").querySelector("button").textContent = `wins / ties / losses against ${opponent?.name ?? "another"}`;
    table.tBodies[0].replaceChildren(...rows.map(({ method, name, reference, rank }) => {
      const costs = study.costs.filter((one) => one[0] === method && datasets.includes(one[1]));
      const [seconds, memory] = [2, 3].map((place) => costs.map((one) => one[place]).filter((value) => value !== null));
      const values = cells.filter((cell) => cell[METRIC] === metric).map((cell) => cell[VALUES][method]);
      return html("tr", { class: reference ? "reference" : null }, html("th", { scope: "row" }, named(name)), number(two(rank)),
        number(values.length ? minus(mean(values).toFixed(3)) : "–"),
        number(seconds.length ? String(+mean(seconds).toPrecision(2)) : "–"),
        number(memory.length ? String(+Math.max(...memory).toPrecision(3)) : "–"),
        number(method === opponent.method ? "–" : duel(cells, method, opponent.method)));
    }));
    table.dispatchEvent(new Event("refilled"));
  }

  // Groups of methods that do not differ significantly, as first and last place.
  function groups(rows, cd) {
    const found = [];
    let reached = 0;
    rows.forEach((row, first) => {
      const end = first + rows.slice(first).filter((other) => other.rank - row.rank < cd).length;
      if (end > reached && end - first > 1) found.push([first, end - 1]);
      reached = Math.max(reached, end);
    });
    return found;
  }

  function drawRanks({ rows, cd, opponent }) {
    const width = chart.clientWidth;
    if (!width || rows.length < 2) return chart.replaceChildren();
    const bars = cd === null ? [] : groups(rows, cd);
    const letters = width < 500 ? 18 : 30;
    const cut = (text) => (text.length > letters ? `${text.slice(0, letters - 9)}…${text.slice(-8)}` : text);
    const left = 56 + 6.6 * Math.max(...rows.map((row) => cut(row.name).length));
    const right = Math.min(width, 900) - 12 - LANE * bars.length;
    const top = 24, bottom = top + ROW * rows.length;
    const worst = Math.max(2, Math.ceil(rows.at(-1).rank));
    const x = (rank) => Math.round(10 * (left + ((rank - 1) / (worst - 1)) * (right - left - 8))) / 10;
    const parts = [];
    const step = Math.max(1, Math.ceil((28 * (worst - 1)) / (right - left)));
    for (let tick = 1; tick <= worst; tick += step) {
      parts.push(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top - 4, y2: bottom }), svg("text", { class: "middle", x: x(tick), y: top - 8 }, tick));
    }
    if (cd !== null) {
      const end = x(Math.min(worst, rows[0].rank + cd));
      parts.push(svg("rect", { class: "reach", x: x(rows[0].rank), y: top - 4, width: Math.max(0, end - x(rows[0].rank)), height: bottom - top + 4 }));
    }
    rows.forEach((row, place) => {
      const y = top + ROW * place + ROW / 2;
      const kind = row === opponent ? "control" : row.reference ? "reference" : "plain";
      parts.push(svg("text", { class: `label end ${kind}`, x: left - 52, y: y + 4 }, cut(row.name)), svg("text", { class: "end", x: left - 10, y: y + 4 }, two(row.rank)),
        svg("circle", { class: `dot ${kind}`, cx: x(row.rank), cy: y, r: 5 }));
    });
    bars.forEach(([first, last], lane) => {
      const place = right + 6 + LANE * lane;
      parts.push(svg("line", { class: "group", x1: place, x2: place, y1: top + ROW * first + 3, y2: top + ROW * (last + 1) - 3 }));
    });
    const label = `Average ranks: ${listed(rows.map((row) => `${row.name} ${two(row.rank)}`))}.`;
    const size = { width: Math.min(width, 900), height: bottom + 6 };
    chart.replaceChildren(svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": label }, parts),
      html("figcaption", { class: "facts" }, cd === null ? "" : "Shaded: not significantly worse than the best. A bar on the right joins methods that do not differ significantly."));
  }

  function open() {
    const place = Number(studySelect.value);
    study = data.studies[place];
    for (const section of document.querySelectorAll("[data-study]")) section.hidden = Number(section.dataset.study) !== place;
    FILTERS.forEach((name, level) => refill(selects[level], study[name].map((one) => one.title ?? one), true));
    draw();
  }

  document.documentElement.dataset.ready = "";
  refill(studySelect, data.studies.map((one) => one.name), false);
  studySelect.addEventListener("change", open);
  for (const select of [...selects, opponentSelect]) select.addEventListener("change", draw);
  open();
  let width = chart.clientWidth;
  new ResizeObserver(() => {
    if (chart.clientWidth === width) return;
    width = chart.clientWidth;
    draw();
  }).observe(chart);
})();
