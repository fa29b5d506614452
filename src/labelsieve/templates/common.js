"use strict";
// Elements consist of text nodes and attributes, so no name from the data is read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
};
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
// Isolates the writing direction of a name.
const named = (text) => html("bdi", null, text);

const themes = ["auto", "light", "dark"];
byId("theme")?.addEventListener("click", () => {
  const root = document.documentElement, next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % 3];
  root.dataset.theme = next;
  byId("theme").textContent = `Theme: ${next}`;
});
