// Make and draw all parts, then show the page.
byId("label").append(html("option", { value: -1 }, "all labels"), ...labels.map((label, place) => html("option", { value: place }, short(label.n))));
byId("label").value = -1;
byId("label").addEventListener("change", (event) => setLabel(Number(event.target.value)));
byId("clear").addEventListener("click", () => { setLabel(-1); byId("label").focus(); });
byId("drawer").addEventListener("click", (event) => { if (event.target === byId("drawer")) byId("drawer").close(); });

byId("print").addEventListener("click", () => print());
const forPrint = (printing) => {
  if (state.printing === printing) return;
  state.printing = printing;
  ["columns", "map", "issues"].forEach((part) => draw[part] && draw[part]());
};
addEventListener("beforeprint", () => forPrint(true));
addEventListener("afterprint", () => forPrint(false));
phone.addEventListener("change", () => changed("columns", "map", "issues"));

Object.values(make).forEach((part) => part());
Object.values(draw).forEach((part) => part());
document.documentElement.dataset.ready = "1";
