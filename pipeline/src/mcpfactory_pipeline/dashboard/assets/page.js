// Two conveniences; every page is complete without them. Theme: the system's until the reader chooses. Filter: as one types.
"use strict";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function remembered() {
  try { return localStorage.getItem("theme"); } catch { return null; } // storage is off for files in some browsers
}

function show(theme) {
  if (theme) root.dataset.theme = theme;
}

show(remembered()); // before the body is drawn, so that nothing flashes

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const name = () => { button.textContent = current() === "dark" ? "Light theme" : "Dark theme"; };
  name();
  button.hidden = false;
  button.addEventListener("click", () => {
    show(current() === "dark" ? "light" : "dark");
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* chosen for this page only */ }
    name();
  });

  const form = document.querySelector("form.filter");
  const table = document.getElementById("board");
  if (!form || !table) return;
  const rows = [...table.tBodies[0].rows];
  const total = rows.length;
  form.hidden = false;
  form.querySelector("button").hidden = true;

  // A page that came filtered from the server lacks rows, so it is asked for again when the filter changes.
  const partial = new URLSearchParams(location.search);
  if (partial.get("q") || partial.get("status")) {
    form.addEventListener("change", () => form.requestSubmit());
    return;
  }
  const filter = () => {
    const words = form.q.value.trim().toLowerCase();
    const status = form.status.value;
    let shown = 0;
    for (const row of rows) {
      const fits = row.dataset.name.includes(words) && (!status || row.dataset.status === status);
      row.hidden = !fits;
      shown += fits;
    }
    document.getElementById("shown").textContent = `${shown} of ${total} shown`;
    document.getElementById("nothing").hidden = shown > 0;
    const hash = new URLSearchParams();
    if (words) hash.set("q", words);
    if (status) hash.set("status", status);
    history.replaceState(null, "", hash.size ? `#${hash}` : location.pathname);
  };
  const wanted = new URLSearchParams(location.hash.slice(1));
  form.q.value = wanted.get("q") || "";
  if (wanted.get("status")) form.status.value = wanted.get("status");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  if (location.hash) filter();
});
