// Conveniences; every page is complete without them. Theme: the system's until the reader chooses. Filter: as one types,
// by asking the server for the same page again; exported pages have all rows and filter these.
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
  if (!form) return;
  form.hidden = false;
  form.querySelector("button").hidden = true;
  if ("local" in form.dataset) filterRows(form);
  else askAgain(form);
});

function askAgain(form) {
  let latest = 0;
  let timer = 0;
  const ask = async () => {
    const values = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const url = values.size ? `?${values}` : location.pathname;
    const mine = ++latest;
    try {
      const answer = await fetch(url, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("results");
      if (mine !== latest) return; // a newer question was asked meanwhile
      if (!found) { location.reload(); return; } // the last thing is done, and the page is another
      replaceContent(document.getElementById("results"), found);
      history.replaceState(null, "", url);
    } catch { form.submit(); }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 80); });
  form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  form.addEventListener("refresh", ask); // live.js: something changed
}

// New content for a part of the page: where the reader was, and what was open, stays.
function replaceContent(old, fresh) {
  const at = old.contains(document.activeElement) ? document.activeElement : null;
  const open = new Map([...old.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const scrolled = [...old.querySelectorAll(".wide")].map((one) => one.scrollLeft);
  old.replaceChildren(...fresh.childNodes);
  for (const one of old.querySelectorAll("details[id]")) if (open.has(one.id)) one.open = open.get(one.id);
  old.querySelectorAll(".wide").forEach((one, number) => { one.scrollLeft = scrolled[number] || 0; });
  if (!at) return;
  const href = at.getAttribute("href");
  const label = at.getAttribute("aria-label");
  const same = [...old.querySelectorAll("a, summary, button, [tabindex]")].find(
    (one) => one.localName === at.localName && one.getAttribute("href") === href && one.getAttribute("aria-label") === label,
  );
  same?.focus({ preventScroll: true });
}

function filterRows(form) {
  const rows = [...document.getElementById("board").tBodies].flatMap((body) => [...body.rows]);
  const total = rows.length;
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
}
