"use strict";
// Draws the charts of the page from its JSON data. Names are only inserted as text.
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const DATA = JSON.parse(source.textContent);
  const SVG = "http://www.w3.org/2000/svg";
  // All charts share the set of visible methods.
  const shownMethods = new Set(DATA.series.map((one, place) => (one.first ? place : -1)).filter((place) => place >= 0));
  const views = [];

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const short = (text, limit) => (text.length <= limit ? text : `${text.slice(0, limit - 9)}…${text.slice(-8)}`);
  const round = (value) => Math.round(value * 10) / 10;

  function formatNumber(value) {
    const size = Math.abs(value);
    if (Number.isInteger(value)) return String(value).replace("-", "−");
    const text = size >= 1000 ? value.toFixed(0) : size >= 10 ? value.toFixed(1)
      : size >= 0.001 ? value.toFixed(size >= 1 ? 2 : 3) : value.toExponential(1);
    return text.replace("-", "−");
  }

  // A scale has a function from values to positions, ticks, and a function to format ticks.
  function linear(low, high, from, to, most) {
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05];
    const raw = (high - low) / Math.max(1, most);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((times) => times * power >= raw * 0.999);
    const ticks = [];
    for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick += 1) ticks.push(tick * step);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const at = (value) => from + ((value - low) / (high - low)) * (to - from);
    return { at, ticks, text: (tick) => tick.toFixed(Math.min(digits, 8)).replace("-", "−") };
  }
  function logarithmic(low, high, from, to, most) {
    if (low === high) [low, high] = [low / 2, high * 2];
    const [a, b] = [Math.log10(low), Math.log10(high)];
    const at = (value) => from + ((Math.log10(value) - a) / (b - a)) * (to - from);
    let ticks = [];
    for (const steps of [[1, 2, 5], [1, 3], [1]]) {
      ticks = [];
      for (let power = Math.floor(a); power <= Math.ceil(b); power += 1) {
        for (const step of steps) {
          const tick = step * 10 ** power;
          if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
        }
      }
      if (ticks.length <= most) break;
    }
    const every = Math.ceil(ticks.length / most);
    const text = (tick) => (tick >= 10000 || tick < 0.001 ? tick.toExponential(0).replace("-", "−") : String(+tick.toPrecision(3)));
    return { at, ticks: ticks.filter((_, place) => place % every === 0), text };
  }
  function scale(values, isLog, from, to, most, room = 0) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low === Infinity) [low, high] = [0, 1];
    if (isLog && low > 0) return logarithmic(low, high, from, to, most);
    const space = (high - low) * room;
    return linear(low - space, high + space, from, to, most);
  }

  // All charts share one tooltip.
  const tip = html("div", { id: "tip", role: "tooltip", hidden: "" });
  document.body.append(tip);
  function showTip(point, box) {
    tip.replaceChildren(html("b", {}, point.name), html("span", {}, point.where), html("span", {}, point.value));
    tip.hidden = false;
    const place = tip.getBoundingClientRect();
    const x = Math.min(Math.max(box.x + 12, 4), window.innerWidth - place.width - 4);
    const above = box.y - place.height - 12;
    tip.style.transform = `translate(${round(x)}px, ${round(above > 4 ? above : box.y + 16)}px)`;
  }
  const hideTip = () => { tip.hidden = true; };

  class View {
    constructor(figure, chart) {
      this.chart = chart;
      this.figure = figure;
      this.series = chart.series || DATA.series;
      this.shown = chart.series ? new Set(chart.series.keys()) : shownMethods;
      this.hot = null;
      this.controls = html("div", { class: "controls" });
      this.caption = html("figcaption", {});
      this.stage = html("div", { class: "stage" });
      this.live = html("p", { class: "unseen", "aria-live": "polite" });
      this.legend = html("div", { class: "legend", role: "group", "aria-label": "Lines shown" });
      figure.replaceChildren(this.controls, this.caption, this.stage, this.legend, this.live);
      this.selects = chart.choices.map((choice, place) => this.makeSelect(choice, place));
      if (chart.kind !== "dots") this.makeLegend();
      this.width = 0;
    }

    makeSelect(choice, place) {
      const select = html("select", {});
      choice.options.forEach((text, option) => {
        const isThere = Object.keys(this.chart.panels).some((key) => Number(key.split(",")[place]) === option);
        if (isThere) select.append(html("option", { value: option }, text));
      });
      if (this.chart.all === place && select.options.length > 1) {
        select.append(html("option", { value: -1 }, `all ${choice.name}s`));
      }
      const label = html("label", {}, `${choice.name[0].toUpperCase()}${choice.name.slice(1)} `, select);
      if (select.options.length > 1) this.controls.append(label);
      select.addEventListener("change", () => {
        this.draw();
        choose(choice.name, select.selectedOptions[0].text);
      });
      return select;
    }

    makeLegend() {
      this.buttons = new Map();
      const there = new Set(Object.values(this.chart.panels).flatMap((panel) => Object.keys(panel.rows).map(Number)));
      this.there = [...there].sort((a, b) => a - b);
      if (this.there.length < 2) return;
      for (const place of this.there) {
        const one = this.series[place];
        const key = svg("svg", { width: 22, height: 10, "aria-hidden": "true" },
          svg("line", { x1: 1, x2: 21, y1: 5, y2: 5, class: `line ${kind(one)}` }));
        const button = html("button", { type: "button", class: kind(one) }, key, html("bdi", {}, short(one.name, 34)));
        button.addEventListener("click", () => this.toggle(place));
        for (const [on, off] of [["mouseenter", "mouseleave"], ["focus", "blur"]]) {
          button.addEventListener(on, () => this.highlight(place));
          button.addEventListener(off, () => this.highlight(null));
        }
        this.buttons.set(place, button);
        this.legend.append(button);
      }
      for (const [text, wanted] of [["all", () => true], ["fewer", (place) => this.series[place].first]]) {
        if (text === "fewer" && this.there.every((place) => this.series[place].first)) continue;
        const button = html("button", { type: "button", class: "several" }, `show ${text}`);
        button.addEventListener("click", () => {
          for (const place of this.there) this.shown[wanted(place) ? "add" : "delete"](place);
          this.redrawShared();
        });
        this.legend.append(button);
      }
    }

    toggle(place) {
      if (!this.shown.delete(place)) this.shown.add(place);
      this.redrawShared();
    }

    redrawShared() {
      for (const view of views) if (view.shown === this.shown) view.draw();
    }

    // Highlights the line of one method.

    highlight(place) {
      this.hot = place;
      for (const node of this.stage.querySelectorAll("[data-s]")) {
        node.classList.toggle("hot", place !== null && node.dataset.s === String(place));
      }
      if (this.buttons) this.buttons.forEach((button, other) => button.classList.toggle("hot", other === place));
    }

    follow(name, text) {
      this.chart.choices.forEach((choice, place) => {
        const option = [...this.selects[place].options].find((one) => choice.name === name && one.text === text);
        if (option && !option.selected) {
          option.selected = true;
          this.draw();
        }
      });
    }

    // Returns the selected panels with their keys.
    panels() {
      const picked = this.selects.map((select) => Number(select.value));
      const { all } = this.chart;
      const spread = all !== undefined && picked[all] === -1 ? this.chart.choices[all].options.keys() : [null];
      const found = [];
      for (const place of spread) {
        const key = picked.map((option, index) => (index === all && place !== null ? place : option));
        const panel = this.chart.panels[key.join(",")];
        if (panel) found.push({ panel, key, title: place === null ? "" : this.chart.choices[all].options[place] });
      }
      return found;
    }

    draw() {
      const width = this.stage.clientWidth;
      if (!width) return;
      this.width = width;
      hideTip();
      const panels = this.panels();
      const chosen = this.selects.map((select) => select.selectedOptions[0]?.text).filter(Boolean).join(" · ");
      this.caption.textContent = panels.length ? chosen : `${chosen}: no complete results.`;
      // If the menus show the same, the caption is only for print.
      this.caption.className = panels.length && this.controls.children.length === this.selects.length ? "said" : "";
      const columns = panels.length > 1 ? Math.max(1, Math.floor(width / 300)) : 1;
      const each = Math.floor((width - 16 * (columns - 1)) / columns);
      const drawings = panels.map((one) => {
        const drawn = { lines: drawLines, dots: drawDots, scatter: drawScatter }[this.chart.kind](this, one, each, panels.length === 1);
        this.listen(drawn.node, drawn.points, chosen);
        const title = one.title ? [html("h4", {}, html("bdi", {}, one.title))] : [];
        return html("div", {}, ...title, drawn.node);
      });
      this.stage.className = columns > 1 ? "stage several" : "stage";
      this.stage.replaceChildren(...drawings);
      if (this.buttons) this.buttons.forEach((button, place) => button.setAttribute("aria-pressed", this.shown.has(place)));
      if (this.hot !== null) this.highlight(this.hot);
    }

    listen(node, points, chosen) {
      node.setAttribute("tabindex", "0");
      node.setAttribute("role", "application");
      node.setAttribute("aria-label", `Chart: ${chosen}. ${points.length} points. Use the arrow keys to move between points.`);
      let current = null;
      const go = (point, announce) => {
        current = point;
        this.highlight(point.series);
        node.querySelector(".ring")?.remove();
        node.append(svg("circle", { class: "ring", cx: point.x, cy: point.y, r: 6 }));
        const box = node.getBoundingClientRect();
        const times = box.width / node.viewBox.baseVal.width;
        showTip(point, { x: box.x + point.x * times, y: box.y + point.y * times });
        if (announce) this.live.textContent = `${point.name}, ${point.where}: ${point.value}`;
      };
      const leave = () => {
        current = null;
        this.highlight(null);
        node.querySelector(".ring")?.remove();
        hideTip();
      };
      const nearest = (x, y, among) => {
        let [best, least] = [null, Infinity];
        for (const point of among) {
          const distance = (point.x - x) ** 2 + (point.y - y) ** 2;
          if (distance < least) [best, least] = [point, distance];
        }
        return [best, least];
      };
      const seek = (event) => {
        const box = node.getBoundingClientRect();
        const times = node.viewBox.baseVal.width / box.width;
        const [point, distance] = nearest((event.clientX - box.x) * times, (event.clientY - box.y) * times, points);
        if (point && distance < 40 ** 2) { if (point !== current) go(point, false); } else leave();
      };
      node.addEventListener("pointermove", seek);
      node.addEventListener("pointerdown", seek);
      node.addEventListener("pointerleave", leave);
      node.addEventListener("blur", leave);
      node.addEventListener("keydown", (event) => {
        const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
        if (event.key === "Escape") leave();
        if (!move || !points.length) return;
        event.preventDefault();
        if (!current) {
          go(points.find((point) => this.series[point.series].control) || points[0], true);
          return;
        }
        const ahead = points.filter((point) => (move[0] ? point.series === current.series : point.series !== current.series)
          && (point.x - current.x) * move[0] + (point.y - current.y) * move[1] > 0.01);
        // Up and down prefer points directly above and below.
        const weight = move[0] ? 1 : 4;
        const [next] = nearest(current.x * weight, current.y, ahead.map((point) => ({ ...point, x: point.x * weight, whole: point })));
        if (next) go(next.whole, true);
      });
    }
  }

  const kind = (one) => (one.control ? "control" : one.reference ? "reference" : "plain");

  function frame(width, height, label) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: label });
  }

  function axes(node, x, y, box, names) {
    for (const tick of y.ticks) {
      node.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: round(y.at(tick)), y2: round(y.at(tick)) }),
        svg("text", { x: box.left - 6, y: round(y.at(tick)) + 4, class: "end" }, y.text(tick)));
    }
    for (const tick of x.ticks) {
      node.append(svg("line", { class: "grid", x1: round(x.at(tick)), x2: round(x.at(tick)), y1: box.top, y2: box.bottom }),
        svg("text", { x: round(x.at(tick)), y: box.bottom + 16, class: "middle" }, x.text(tick)));
    }
    if (names.x) node.append(svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 33, class: "middle name" }, names.x));
    if (names.y) node.append(svg("text", { x: box.left, y: box.top - 8, class: "name" }, names.y));
  }

  function drawLines(view, { panel, key }, width, isAlone) {
    const { chart, series } = view;
    const dataset = chart.all === undefined ? "" : chart.choices[chart.all].options[key[chart.all]];
    const rows = Object.entries(panel.rows).map(([place, row]) => [Number(place), row]).filter(([place]) => view.shown.has(place));
    const hasNames = isAlone && width >= 620;
    const height = isAlone ? Math.max(260, Math.min(430, width * 0.5)) : 200;
    const box = { left: 52, right: width - (hasNames ? 170 : 14), top: 26, bottom: height - (isAlone ? 44 : 24) };
    const node = frame(width, height, "lines");
    const most = Math.max(2, Math.floor((box.right - box.left) / 70));
    const x = scale(rows.flatMap(([, row]) => row.x || []), chart.log_x, box.left, box.right, most);
    const y = scale(rows.flatMap(([, row]) => row.y), chart.log_y, box.bottom, box.top, height > 220 ? 6 : 4, 0.05);
    const metric = chart.choices.findIndex((choice) => choice.better);
    const better = metric >= 0 ? `${chart.choices[metric].better[key[metric]]} is better` : chart.y || "";
    axes(node, x, y, box, { x: isAlone ? chart.x : "", y: better });
    const ends = [];
    const points = [];
    const everyX = [...new Set(rows.flatMap(([, row]) => row.x || []))].sort((a, b) => a - b);
    // Draw references first and the control last, so that it is on top.
    rows.sort(([a], [b]) => rank(series[a]) - rank(series[b]));
    for (const [place, row] of rows) {
      const one = series[place];
      const isFlat = row.x === null;
      const xs = isFlat ? everyX : row.x;
      const ys = isFlat ? xs.map(() => row.y[0]) : row.y;
      const there = xs.map((_, index) => index).filter((index) => ys[index] !== null);
      // Bands may exceed the panel because its range is that of the lines.
      const within = (place) => Math.min(Math.max(place, box.top), box.bottom);
      const at = (index, shift = 0) => `${round(x.at(xs[index]))},${round(within(y.at(ys[index] + shift)))}`;
      const error = (index) => (row.e ? row.e[isFlat ? 0 : index] : null);
      if (there.length && there.every((index) => error(index) !== null) && row.e) {
        const edge = [...there.map((index) => at(index, error(index))), ...[...there].reverse().map((index) => at(index, -error(index)))];
        node.append(svg("polygon", { class: `band ${kind(one)}`, "data-s": place, points: edge.join(" ") }));
      }
      node.append(svg("polyline", { class: `line ${kind(one)}`, "data-s": place, points: there.map((index) => at(index)).join(" ") }));
      for (const index of there) {
        const [px, py] = [round(x.at(xs[index])), round(y.at(ys[index]))];
        // With many points on a line, dots would overlap.
        if (!isFlat && there.length <= 40) node.append(svg("circle", { class: `dot ${kind(one)}`, "data-s": place, cx: px, cy: py, r: one.control ? 3.4 : 2.4 }));
        const spread = error(index);
        const where = [dataset, isFlat ? "any number of features" : `${chart.x}: ${formatNumber(xs[index])}`].filter(Boolean).join(", ");
        points.push({
          x: px, y: py, series: place, name: one.name, where,
          value: `${formatNumber(ys[index])}${spread === null ? "" : ` ± ${formatNumber(spread)} ${chart.spread}`}`,
        });
      }
      if (there.length) ends.push({ place, y: y.at(ys[there.at(-1)]) });
    }
    if (hasNames) {
      // Put names at the ends of their lines and move them apart if they overlap.
      ends.sort((a, b) => a.y - b.y);
      let before = -Infinity;
      for (const end of ends) {
        end.text = Math.max(end.y, before + 14);
        before = end.text;
      }
      const over = Math.max(0, before - box.bottom);
      for (const end of ends) {
        const one = series[end.place];
        node.append(svg("text", { class: `label ${kind(one)}`, "data-s": end.place, x: box.right + 8, y: round(end.text - over) + 4 }, short(one.name, 22)));
      }
    }
    return { node, points };
  }

  const rank = (one) => (one.control ? 2 : one.reference ? 0 : 1);

  function drawDots(view, { panel }, width) {
    const { chart, series } = view;
    const rows = Object.entries(panel.rows).map(([place, row]) => [Number(place), row]);
    if (chart.order) rows.sort(([, a], [, b]) => chart.order * (a.main - b.main));
    const most = Math.min(26, Math.floor(width / 24));
    const longest = Math.max(...rows.map(([place]) => Math.min(series[place].name.length, most)));
    const box = { left: 16 + 7.8 * longest, right: width - 16, top: 26, bottom: 30 + 24 * rows.length };
    const node = frame(width, box.bottom + (chart.band ? 46 : 26), "dots");
    const values = rows.flatMap(([, row]) => [row.main, ...row.items]);
    if (chart.start !== undefined) values.push(chart.start);
    const x = scale(values, chart.log_x, box.left, box.right, Math.max(2, Math.floor((box.right - box.left) / 60)), chart.start === undefined ? 0.03 : 0);
    if (chart.band) {
      const best = Math.min(...rows.map(([, row]) => row.main));
      const end = Math.min(box.right, x.at(best + chart.band));
      node.append(svg("rect", { class: "reach", x: round(x.at(best)), y: box.top, width: round(end - x.at(best)), height: box.bottom - box.top }),
        svg("text", { class: "name", x: 4, y: box.bottom + 36 }, `shaded: ${chart.band_words}`));
    }
    axes(node, x, { ticks: [] }, box, {});
    const points = [];
    rows.forEach(([place, row], line) => {
      const one = series[place];
      const y = box.top + 18 + 24 * line;
      const known = row.items.filter((value) => value !== null);
      node.append(svg("text", { class: `label end ${kind(one)}`, "data-s": place, x: box.left - 10, y: y + 4 }, short(one.name, most)));
      node.append(svg("line", { class: "span", "data-s": place, x1: round(x.at(Math.min(...known))), x2: round(x.at(Math.max(...known))), y1: y, y2: y }));
      row.items.forEach((value, item) => {
        if (value === null) return;
        node.append(svg("circle", { class: `item ${kind(one)}`, "data-s": place, cx: round(x.at(value)), cy: y, r: 2.6 }));
        points.push({ x: round(x.at(value)), y, series: place, name: one.name, where: panel.items[item], value: `${chart.item || ""} ${formatNumber(value)}`.trim() });
      });
      node.append(svg("circle", { class: `dot ${kind(one)}`, "data-s": place, cx: round(x.at(row.main)), cy: y, r: 5 }));
      points.push({ x: round(x.at(row.main)), y, series: place, name: one.name, where: chart.value, value: formatNumber(row.main) });
    });
    return { node, points };
  }

  function drawScatter(view, { panel }, width) {
    const { chart, series } = view;
    const rows = Object.entries(panel.rows).map(([place, row]) => [Number(place), row]).filter(([place]) => view.shown.has(place));
    const side = Math.min(width, 480);
    const node = frame(side, side, "scatter");
    const box = { left: 52, right: side - 14, top: 26, bottom: side - 44 };
    const values = rows.flatMap(([, row]) => [...row.x, ...row.y]);
    const x = scale(values, false, box.left, box.right, 6, 0.04);
    const y = scale(values, false, box.bottom, box.top, 6, 0.04);
    axes(node, x, y, box, { x: chart.x, y: `${chart.y} (equal on the line)` });
    node.append(svg("line", { class: "equal", x1: box.left, y1: box.bottom, x2: box.right, y2: box.top }));
    const points = [];
    for (const [place, row] of rows) {
      const one = series[place];
      row.x.forEach((value, item) => {
        if (value === null || row.y[item] === null) return;
        const [px, py] = [round(x.at(value)), round(y.at(row.y[item]))];
        node.append(svg("circle", { class: `dot ${kind(one)}`, "data-s": place, cx: px, cy: py, r: 4 }));
        points.push({ x: px, y: py, series: place, name: one.name, where: panel.items[item], value: `${formatNumber(row.y[item])} ours, ${formatNumber(value)} printed` });
      });
    }
    return { node, points };
  }

  // Show one metric table at a time, with menus for the metric and the standard deviation.
  const section = document.getElementById("metrics");
  const tables = section ? [...section.querySelectorAll(".table[data-metric]")] : [];
  const tableSelect = html("select", {});
  function showTable() {
    for (const table of tables) table.classList.toggle("other", table.dataset.metric !== tableSelect.value);
  }
  // Apply a choice to all menus with the same name.
  function choose(name, text) {
    for (const view of views) view.follow(name, text);
    if (name === "metric" && tables.some((table) => table.dataset.metric === text)) {
      tableSelect.value = text;
      showTable();
    }
  }
  if (tables.length) {
    for (const table of tables) tableSelect.append(html("option", {}, table.dataset.metric));
    tableSelect.addEventListener("change", () => choose("metric", tableSelect.value));
    const spread = html("select", {});
    for (const [value, text] of [["folds", "over folds"], ["sizes", "over sizes"], ["none", "hidden"]]) {
      spread.append(html("option", { value }, text));
    }
    spread.addEventListener("change", () => { section.dataset.spread = spread.value; });
    const controls = html("div", { class: "controls" });
    if (tables.length > 1) controls.append(html("label", {}, "Metric ", tableSelect));
    controls.append(html("label", {}, "± ", spread));
    tables[0].before(controls);
    showTable();
  }

  document.documentElement.dataset.ready = "";
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const view = new View(figure, DATA.charts[figure.dataset.chart]);
    views.push(view);
    view.draw();
    new ResizeObserver(() => { if (view.stage.clientWidth !== view.width) view.draw(); }).observe(view.stage);
  }
})();
