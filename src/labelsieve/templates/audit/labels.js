// Quality of each label. Shares of wrong labels are shown only if some were reviewed.
const mostLabels = 100;
const isChecked = labels.some((label) => label.w !== undefined);
const flaggedShare = (label) => (label.w !== undefined ? label.w : label.m ? label.look / label.m : 0);
const labelOrder = labels.map((_, place) => place).sort((a, b) => flaggedShare(labels[b]) - flaggedShare(labels[a]) || a - b);

const labelRow = (place, most) => {
  const label = labels[place], telling = label.k;
  const why = !label.m ? "no row has it" : label.auc === null ? "every row has it" : "your columns do not predict it";
  const amount = isChecked
    ? [html("b", { class: "num" }, label.w === undefined ? "" : percent(label.w)), html("span", { class: "num" }, label.w === undefined ? "" : `≈ ${whole(label.w * label.m)}`)]
    : html("span", { class: "num wide" }, `${whole(label.look)} of ${whole(label.m)}`);
  const listedNow = byLabel[place].filter((row) => row < data.look).length;
  const review = () => { state.cut = Math.max(1, data.look); setLabel(place); byId("issues").scrollIntoView(); };
  return html("tr", { class: place === state.label ? "row on" : "row" },
    html("td", { class: "l-n" },
      html("button", { class: "lname", type: "button", title: label.n, "aria-pressed": String(place === state.label), onclick: () => setLabel(place === state.label ? -1 : place) }, named(label.n)),
      !telling && html("div", { class: "flag" }, why)),
    html("td", { class: "r num l-c" }, whole(label.m)),
    html("td", { class: "r num l-a" }, label.auc === null ? "–" : label.auc < 0.5 ? "< 0.50" : two(label.auc)),
    html("td", { class: "l-d" }, svg("svg", { width: 112, height: 26, role: "img", "aria-label": `number of its labels by support, in thirty steps: ${label.h.join(", ")}` }, bars(label.h, 112, 26))),
    html("td", { class: "l-w" }, html("div", { class: "cell2" }, bar(flaggedShare(label) / most, "ba"), amount),
      label.ci && html("div", { class: "small" }, `95% interval ${percent(label.ci[0])} to ${percent(label.ci[1])}`)),
    html("td", { class: "l-r num" }, !telling ? html("span", { class: "small" }, "not predicted")
      : listedNow ? html("button", { class: "link", type: "button", onclick: review }, `review ${whole(listedNow)}`)
      : html("span", { class: "small" }, "none")));
};

draw.labels = () => {
  const most = Math.max(1e-9, ...labels.map(flaggedShare));
  byId("labelrows").replaceChildren(...labelOrder.slice(0, mostLabels).map((place) => labelRow(place, most)));
};
