// How far each label can be believed. Shares of wrong candidates stand here only if a person checked some.
const mostLabels = 100;
const isChecked = labels.some((label) => label.w !== undefined);
// Below this area under the curve nothing can be said about a label.
const TELLING_AREA = 0.6;
const isTelling = (label) => label.auc !== null && label.auc >= TELLING_AREA;
const doubted = (label) => (label.w !== undefined ? label.w : label.m ? label.look / label.m : 0);
const labelOrder = labels.map((_, place) => place).sort((a, b) => doubted(labels[b]) - doubted(labels[a]) || a - b);

const labelRow = (place, most) => {
  const label = labels[place], telling = isTelling(label);
  const why = !label.m ? "no candidates" : label.auc === null ? "every row has it: nothing to compare" : "columns cannot tell it: doubts are guesses";
  const amount = isChecked
    ? [html("b", { class: "num" }, label.w === undefined ? "" : percent(label.w)), html("span", { class: "num" }, label.w === undefined ? "" : `≈ ${whole(label.w * label.m)}`)]
    : html("span", { class: "num wide" }, `${whole(label.look)} of ${whole(label.m)}`);
  const listedNow = byLabel[place].filter((row) => row < data.look).length;
  const review = () => { state.cut = Math.max(1, data.look); setLabel(place); byId("doubtful").scrollIntoView(); };
  return html("tr", { class: place === state.label ? "row on" : "row" },
    html("td", { class: "l-n" },
      html("button", { class: "lname", type: "button", title: label.n, "aria-pressed": String(place === state.label), onclick: () => setLabel(place === state.label ? -1 : place) }, named(label.n)),
      !telling && html("div", { class: "flag" }, why)),
    html("td", { class: "r num l-c" }, whole(label.m)),
    html("td", { class: "r num l-a" }, label.auc === null ? "–" : label.auc < 0.5 ? "< 0.50" : two(label.auc)),
    html("td", { class: "l-d" }, svg("svg", { width: 112, height: 26, role: "img", "aria-label": `its candidates by support, in thirty steps: ${label.h.join(", ")}` }, bars(label.h, 112, 26))),
    html("td", { class: "l-w" }, html("div", { class: "cell2" }, bar(doubted(label) / most, "ba"), amount)),
    html("td", { class: "l-r num" }, !telling ? html("span", { class: "small" }, "no basis")
      : listedNow ? html("button", { class: "link", type: "button", onclick: review }, `review ${whole(listedNow)}`)
      : html("span", { class: "small" }, "none")));
};

draw.labels = () => {
  const most = Math.max(1e-9, ...labels.map(doubted));
  byId("labelrows").replaceChildren(...labelOrder.slice(0, mostLabels).map((place) => labelRow(place, most)));
};
