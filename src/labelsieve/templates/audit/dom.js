const numbers = new Intl.NumberFormat("en");
const whole = (value) => numbers.format(Math.round(value));
const percent = (share) => `${Math.round(100 * share)}\u202f%`;
const minus = (text) => String(text).replace("-", "−");
const two = (value) => minus(value.toFixed(2));
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const short = (text) => (text.length > 40 ? `${text.slice(0, 38)}…` : text);

// Bars of counts as one path.
const bars = (counts, width, height, kind = "spark") => {
  const most = Math.max(1, ...counts), step = width / Math.max(counts.length, 3), left = (width - step * counts.length) / 2;
  let path = "";
  counts.forEach((count, place) => {
    if (!count) return;
    const tall = Math.max(1, (height * count) / most).toFixed(1);
    path += `M${(left + place * step + 0.5).toFixed(1)} ${height}v-${tall}h${Math.max(0.5, step - 1).toFixed(1)}v${tall}z`;
  });
  return svg("path", { d: path, class: kind });
};

// Bar whose length is a share of the width.
const bar = (part, kind) => svg("svg", { width: "100%", height: 12, "aria-hidden": "true", class: "grow" },
  svg("rect", { class: kind, width: `${clamp(100 * part, 0.4, 100)}%`, height: 12, rx: 1 }));

// Buttons and a count below a table. The focus stays on the button that was pressed.
const pager = (element, { page, size, total, go, resize }) => {
  const pages = Math.max(1, Math.ceil(total / size)), focused = [...element.children].indexOf(document.activeElement);
  const range = total ? `${whole(page * size + 1)}–${whole(Math.min(total, (page + 1) * size))} of ${whole(total)}` : "nothing matches";
  const button = (label, sign, disabled, to) => html("button", { class: "btn", type: "button", disabled, "aria-label": label, onclick: () => go(to) }, sign);
  element.replaceChildren(
    button("previous page", "‹", page < 1, page - 1),
    button("next page", "›", page >= pages - 1, page + 1),
    html("span", { "aria-live": "polite" }, range),
    html("span", { class: "sp" }),
  );
  if (resize) {
    const choice = html("select", { "aria-label": "rows per page", onchange: (event) => resize(Number(event.target.value)) },
      [10, 20, 25, 50, 100].map((count) => html("option", { value: count }, `${count} per page`)));
    choice.value = size;
    element.append(choice);
  }
  if (focused >= 0) {
    const pressed = element.children[focused];
    (pressed.disabled ? element.children[1 - focused] || pressed : pressed).focus();
  }
};

const markSorted = (table, key, ascending) => {
  for (const head of table.querySelectorAll("th[data-sort]")) {
    if (head.dataset.sort === key) head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }
};

const save = (text, ending, type) => {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = html("a", { href: address, download: `${data.title.replace(/[^\w.-]+/g, "_") || "audit"}.${ending}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
