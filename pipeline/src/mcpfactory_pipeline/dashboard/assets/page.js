// Conveniences; every page works without this script. Theme: the system's theme until the reader selects one. Filter:
// typing requests the same page again with the filter; exported pages contain all rows and filter them locally.
"use strict";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

function remembered() {
  try { return localStorage.getItem("theme"); } catch { return null; } // some browsers disable storage for files
}

function show(theme) {
  if (theme) root.dataset.theme = theme;
}

show(remembered()); // before the body is rendered, to avoid flicker

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const name = () => { button.title = current() === "dark" ? "Light theme" : "Dark theme"; button.setAttribute("aria-label", button.title); };
  name();
  button.hidden = false;
  button.addEventListener("click", () => {
    show(current() === "dark" ? "light" : "dark");
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* the theme applies to this page only */ }
    name();
  });

  improve(document);
  document.addEventListener("keydown", press);
  document.addEventListener("submit", sendOnce);
  addEventListener("pageshow", (event) => { if (event.persisted) document.querySelectorAll(".sent").forEach((note) => note.remove()); }); // after a return with the back button
  document.addEventListener("change", countMarks);
  comeBack();
  knowWho();

  const form = document.querySelector("form.filter");
  if (!form) return;
  form.hidden = false;
  form.querySelector("button").hidden = true; // typing filters
  if ("local" in form.dataset) filterRows(form);
  else askAgain(form);
});

// All tabs have the same login: if it changes, reload the pages that were loaded with the earlier login.
function knowWho() {
  const place = document.querySelector(".who");
  if (!place?.querySelector("span, a")) return; // a dashboard without actions
  const who = place.querySelector("span")?.textContent || "";
  const other = (now) => { if (now !== null && now !== who) location.replace(location.pathname + location.search); };
  try { localStorage.setItem("who", who); } catch { return; /* without storage, tabs are independent */ }
  addEventListener("storage", (event) => { if (event.key === "who") other(event.newValue); });
  addEventListener("pageshow", (event) => { if (event.persisted) other(localStorage.getItem("who")); });
}

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
      if (mine !== latest) return; // a newer request was sent
      if (!found) { location.reload(); return; } // the list is empty now, so the page has another layout
      filtering = url !== (location.search || location.pathname);
      renew(page);
      filtering = false;
      history.replaceState(null, "", url);
    } catch { form.submit(); }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 80); });
  form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  form.addEventListener("refresh", ask); // event of live.js after a change
}

// Replace the parts of the page that a response contains: title, heading, counts of the filter, results.
function renew(page) {
  document.title = page.title;
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const old = document.querySelector(`[data-live="${fresh.dataset.live}"]`);
    if (old && old.innerHTML !== fresh.innerHTML) replaceContent(old, fresh);
  }
}

// Unsent input by the id of its field: a field that disappears and returns gets its input again.
const typed = new Map();

// Replace a part of the page, but keep focus, scroll positions, open details and unsent input.
function replaceContent(old, fresh) {
  const at = old.contains(document.activeElement) ? document.activeElement : null;
  const selected = at?.matches("[name=reason]") ? [at.selectionStart, at.selectionEnd] : null;
  const open = new Map([...old.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const current = old.querySelector(".row.current .open")?.getAttribute("href");
  const marked = marks(old);
  const scrolled = [...old.querySelectorAll(".wide")].map((one) => one.scrollLeft);
  for (const one of old.querySelectorAll("[name=reason]")) typed.set(one.id, one.value);
  old.replaceChildren(...fresh.childNodes);
  improve(old);
  for (const one of old.querySelectorAll("details[id]")) if (open.has(one.id)) one.open = open.get(one.id);
  for (const one of old.querySelectorAll("[name=item]")) one.checked = marked.includes(one.value) || hidden.has(one.value); // a changed item has another value
  if (marked.length + hidden.size) unmarked(marked, marks(old));
  else countMarks();
  for (const one of old.querySelectorAll("[name=reason]")) one.value = typed.get(one.id) || "";
  old.querySelectorAll(".wide").forEach((one, number) => { one.scrollLeft = scrolled[number] || 0; });
  if (current) [...old.querySelectorAll(".row .open")].find((one) => one.getAttribute("href") === current)?.closest(".row").classList.add("current");
  if (!at) return;
  const names = (one) => [one.localName, one.id, one.getAttribute("href"), one.getAttribute("aria-label"), one.dataset.key, one.value].join("\n");
  const same = [...old.querySelectorAll("a, summary, button, input, [tabindex]")].find((one) => names(one) === names(at) && one.getClientRects().length);
  (same || document.getElementById("content")).focus({ preventScroll: true }); // never focus a button with another effect
  if (same && selected) same.setSelectionRange(...selected);
}

function marks(part) {
  return [...part.querySelectorAll("[name=item]:checked")].map((one) => one.value);
}

// Items that lost their mark without an action of the reader: server and channel → True if the row still exists.
const lost = new Map();

// Marked items that the reader's filter hides: they are marked again as soon as they are listed again.
const hidden = new Set();
let filtering = false;

function unmarked(before, now) {
  const listed = new Set([...document.querySelectorAll("[data-place]")].map((one) => one.dataset.place));
  for (const value of new Set([...hidden, ...before])) {
    const there = listed.has(placeOf(value));
    if (!there && (filtering || hidden.has(value))) { hidden.add(value); continue; }
    hidden.delete(value);
    if (!now.includes(value)) lost.set(placeOf(value), there);
  }
  countMarks();
}

function placeOf(mark) {
  return mark.split(" ", 2).join(" "); // server and channel; the rest identifies the facts that the reader saw
}

function countMarks(event) {
  const note = document.querySelector("#several > [role=status]");
  if (!note || event && event.target.name !== "item") return;
  const now = marks(document);
  for (const value of now) lost.delete(placeOf(value)); // marked again, with the current facts
  const said = [[true, "changed meanwhile"], [false, "not listed any more"]].map(([there, words]) => {
    const names = [...lost.keys()].filter((place) => lost.get(place) === there).map((place) => place.split(" ")[0]);
    return names.length ? `${names.length} of ${now.length + hidden.size + lost.size} marked ${words}: ${names.join(", ")}` : "";
  });
  said.push(hidden.size ? `${hidden.size} marked hidden by the filter` : "");
  note.textContent = [...said, now.length ? `${now.length} marked` : ""].filter(Boolean).join("; ") || "Marked items";
  note.parentElement.classList.toggle("told", lost.size + hidden.size > 0);
  const rows = [...document.querySelectorAll("[name=item]")], fit = now.length ? rows.filter((one) => one.checked) : rows;
  for (const one of note.parentElement.querySelectorAll("[data-for]")) one.hidden = one.disabled = !fit.some((row) => row.dataset.next === one.dataset.for);
}

// After a return to a list, select the row that the reader left.
function comeBack() {
  const place = `row ${location.pathname}`;
  addEventListener("pagehide", () => {
    const row = document.querySelector(".row.current") || document.activeElement.closest(".row");
    const left = [[...document.querySelectorAll("[data-rows] .row")].indexOf(row), row?.querySelector(".open")?.getAttribute("href") || ""];
    try { sessionStorage.setItem(place, JSON.stringify(left)); } catch { /* no storage in this browser */ }
  });
  const decided = document.getElementById("done"); // the page after a decision
  if (!decided && performance.getEntriesByType("navigation")[0]?.type === "navigate") return;
  let left = [-1, ""];
  try { left = JSON.parse(sessionStorage.getItem(place)) || left; } catch { /* no storage in this browser */ }
  const rows = [...document.querySelectorAll("[data-rows] .row")];
  const same = left[1] && rows.find((one) => one.querySelector(".open")?.getAttribute("href") === left[1]);
  const next = same || (decided && left[0] >= 0 && rows[Math.min(left[0], rows.length - 1)]);
  if (next) stand(next);
}

function stand(row) {
  document.querySelector(".row.current")?.classList.remove("current");
  row.classList.add("current");
  row.querySelector("a")?.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
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

// Show times in the reader's time zone, with UTC in a tooltip; add a button that copies the full hash.
function improve(part) {
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of part.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = `${full.format(at)} (${time.dateTime.replace("T", " ").replace("Z", "")} UTC)`;
    if (!("age" in time.dataset)) time.textContent = full.format(at);
  }
  for (const label of [...part.querySelectorAll(".utc")]) { // labels with the time zone of adjacent times
    label.textContent = label.textContent.replace("UTC", full.resolvedOptions().timeZone.replaceAll("_", " "));
    label.classList.remove("utc"); // done once
  }
  if (!navigator.clipboard) return; // for example, pages opened as files
  for (const hash of part.querySelectorAll("code[data-copy]")) {
    if (hash.closest("summary")) continue; // a summary is a button, and buttons must not be nested
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.setAttribute("aria-label", `Copy ${hash.dataset.copy}`);
    button.innerHTML = '<svg class="icon" aria-hidden="true"><use href="#i-copy"/></svg>';
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(hash.dataset.copy);
      button.setAttribute("aria-label", "Copied");
    });
    delete hash.dataset.copy;
    hash.after(button);
  }
}

// Keys: j and k move between rows, Enter opens the row. Other letters click the element with that key, in the current row or, without rows, on the page.
function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const rows = [...document.querySelectorAll("[data-rows] .row")].filter((row) => row.offsetParent);
  const at = rows.findIndex((row) => row.classList.contains("current"));
  if (rows.length && (event.key === "j" || event.key === "k")) {
    stand(rows[Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), rows.length - 1)]);
    event.preventDefault();
    return;
  }
  const place = rows.length ? rows[at] : document.getElementById("content");
  if (event.repeat || !/^[a-z]$/.test(event.key)) return; // a repeated key was pressed on the previous page
  const found = place?.querySelector(`[data-key="${event.key}"]`);
  if (!found) return;
  event.preventDefault();
  found.click();
}

// Send a confirmation only once, even if a key or the mouse is pressed repeatedly before the response.
function sendOnce(event) {
  const form = event.target;
  if (!form.matches(".deed[method=post]")) return;
  if (form.querySelector(".sent")) { event.preventDefault(); return; }
  const note = document.createElement("p");
  note.className = "sent quiet";
  note.setAttribute("role", "status");
  form.append(note);
  note.textContent = "Sent; the answer is on its way. Load the page again if none comes.";
}
